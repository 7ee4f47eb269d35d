"""Writes what a pack holds as a folder of problems and candidates, with import.json and a config beside them."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness import places, wording
from harness.catalog import claims, sources
from harness.catalog.claims import Imported, ImportedProblem, Left, Manifest, Origin
from harness.catalog.facts import ReadsTexts
from harness.config import PackConfig
from harness.drafts import draft
from harness.errors import UsageError
from harness.packs import files, formats
from harness.packs.checkout import Checkout
from harness.packs.files import Unusable
from harness.packs.names import Names, of_sample, safe
from harness.packs.remainder import Remainder
from harness.packs.sample import Sample

PROBLEMS, SOLUTIONS = "problems", "solutions"
# Unprintable for YAML, or the end of a line.
NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def run(
    source: Path,
    out: Path,
    wishes: PackConfig,
    checkout: Path | None,
    reader: ReadsTexts,
    home: Path | None = None,
) -> Manifest:
    """Import a file or folder into the new folder `out`, and return what import.json says.

    The config that is written names `home` in place of `out`, where that is to be copied to. Problems are those of the
    KernelBench `checkout`, or without one the pack's own. Raises UsageError if `out` is not empty, if there is no such
    source, or if nothing can be imported; then nothing is written. A folder without import.json is an import that was
    killed.
    """
    if checkout and wishes.reference_field:
        raise UsageError("--kernelbench and --reference-field: choose whose problems the candidates are to solve")
    if os.path.lexists(out) and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{wording.plain(str(out), 300)} is not an empty folder; name another")
    home = home or out
    if not wording.is_unicode(str(places.real(home))):
        # The config could not name it.
        raise UsageError(f"{wording.plain(str(home), 300)}: its path is not valid UTF-8; name another folder")
    folder = _Folder(out, source, Checkout(checkout) if checkout else None)
    try:
        return _filled(folder, formats.samples(source, wishes, reader), source, out, home)
    except BaseException:
        for place in (PROBLEMS, SOLUTIONS):
            shutil.rmtree(out / place, ignore_errors=True)
        raise


def _filled(folder: _Folder, found: Iterable[Sample | Left], source: Path, out: Path, home: Path) -> Manifest:
    folder.fill(found)
    if not folder.candidates:
        first = next((f": {one.origin}: {one.reason}" for one in folder.left.all()), "")
        raise UsageError(f"{wording.plain(str(source), 300)} has nothing to import{first}")
    manifest = Manifest(
        source=wording.plain(source.absolute().name, 300, kept=""),
        candidates=folder.candidates,
        problems=folder.problems,
        left=folder.left.all(),
    )
    data = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
    if len(data) > claims.MOST_BYTES:
        raise UsageError(
            f"{wording.plain(str(source), 300)} has too many candidates to import at once; import parts of it"
        )
    _write(config(out), _config(home))
    _write(out / claims.MANIFEST, data)
    return manifest


def config(out: Path) -> Path:
    """The config that runs the imported folder `out`."""
    return out / f"{safe(out.absolute().name)}.yaml"


class _Folder:
    """The folder that an import fills."""

    def __init__(self, out: Path, source: Path, checkout: Checkout | None) -> None:
        self.candidates: list[Imported] = []
        self.problems: list[ImportedProblem] = []
        self.left = Remainder()
        self._out = out
        self._source_name = safe(source.absolute().stem)
        self._checkout = checkout
        self._names = Names()
        # Of samples that their source gives neither name nor number, by folder.
        self._nameless = Counter[str]()
        # Set and name of each problem that is written, by what its source calls it and its content.
        self._known: dict[tuple[str, str, bytes], tuple[str, str]] = {}

    def fill(self, found: Iterable[Sample | Left]) -> None:
        for one in found:
            if isinstance(one, Left):
                self.left.append(one)
                continue
            try:
                self._add(one)
            except Unusable as error:
                self.left.append(Left(origin=one.origin, reason=str(error)))

    def _add(self, sample: Sample) -> None:
        if len(sample.code) > sources.MOST_BYTES:
            raise Unusable(f"it is larger than {sources.MOST_BYTES >> 20} MiB")
        owner, name = self._problem(sample)
        folder = f"{SOLUTIONS}/{owner}/{name}"
        place = f"{folder}/{self._names.free(folder, self._called(sample, folder))}.py"
        _write(self._out / place, sample.code)
        self.candidates.append(
            Imported(
                file=place,
                sha256=hashlib.sha256(sample.code).hexdigest(),
                problem=f"{owner}/{name}",
                origin=sample.origin,
                claim=sample.claim,
            )
        )

    def _called(self, sample: Sample, folder: str) -> str:
        number = sample.number
        if number is None and not sample.name:
            number = self._nameless[folder]
            self._nameless[folder] += 1
        return safe(sample.name) if number is None else of_sample(sample.name, number)

    def _problem(self, sample: Sample) -> tuple[str, str]:
        """Set and name of the sample's problem, which is written if it is not there. Raises Unusable."""
        if self._checkout:
            path = self._checkout.find(sample.identity)
            owner, name, data = path.parent.name, path.stem, files.contents(files.single(path))
            origin = Origin(file=f"{path.parent.name}/{path.name}")
        elif sample.reference is None:
            missing = sample.no_reference or "the pack does not hold its problem"
            raise Unusable(f"{missing}; name a checkout of KernelBench with --kernelbench")
        else:
            level = sample.identity.level
            owner = self._source_name if level is None else f"level{level}"
            # Not `task_19`: a folder of such files would be taken for a pack itself.
            name = sample.identity.problem or Path(sample.origin.file).stem
            data, origin = sample.reference, sample.origin
        key = (owner, sample.identity.problem, data)
        if key not in self._known:
            folder = f"{PROBLEMS}/{owner}"
            name = self._names.free(folder, safe(name))
            self._known[key] = owner, name
            place = f"{folder}/{name}.py"
            _write(self._out / place, data)
            self.problems.append(
                ImportedProblem(
                    file=place,
                    sha256=hashlib.sha256(data).hexdigest(),
                    origin=origin,
                    kernelbench=self._checkout is not None,
                )
            )
        return self._known[key]


def _config(home: Path) -> bytes:
    """Every place whole, so that the run can be started from any folder."""
    lines = [f"{name}: [{_quoted(str(places.real(home) / name))}]\n" for name in (PROBLEMS, SOLUTIONS)]
    return ("# Everything that was imported here, at the sizes that its problems have.\n" + "".join(lines)).encode()


def _quoted(text: str) -> str:
    """A text of JSON is one of YAML, without what YAML does not take as it is."""
    return NOT_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", msgspec.json.encode(text).decode())


def _write(place: Path, data: bytes) -> None:
    """Raises UsageError if the folder cannot be written; a full disk stays an OSError, which the command names."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with draft(place) as path:
            path.write_bytes(data)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise UsageError(f"{wording.plain(str(place), 300)} cannot be written: {error.strerror}") from error
