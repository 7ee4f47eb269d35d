"""Packs that a run names among its problems and solutions: imported into the cache, and run from there.

Each run imports them anew, and what the cache has is only what that gives: a repository may bring its own cache folder,
and the judge runs what is said to be a pack's problem.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness import drafts, wording
from harness.catalog import claims, search
from harness.catalog import problems as catalog
from harness.catalog import solutions as discovery
from harness.catalog.claims import Left, Manifest
from harness.catalog.facts import ReadsTexts
from harness.config import Config, PackConfig
from harness.drafts import make_folder
from harness.errors import UsageError
from harness.packs import files, formats, generations, identity, importing
from harness.packs.checkout import Checkout, levels_in
from harness.packs.files import File
from harness.packs.names import safe
from harness.processes import folders
from harness.store import cache_folder
from harness.version import VERSION

# The messages of an import name its flags.
HINT = "in a run, --kernelbench is a checkout among --problems, and --code-field is --set packs.code_field"


class _Found(NamedTuple):
    """The folder of an import, a line about it, and whether candidates were left."""

    folder: Path
    note: str
    lacks: bool


class Resolved(NamedTuple):
    """A config without packs, a line about each pack, and a line about each of which candidates were left."""

    config: Config
    notes: list[str]
    left_out: list[str]


def resolved(config: Config, reader: ReadsTexts) -> Resolved:
    """The config with imported folders in place of packs.

    Candidates solve the problems of the KernelBench checkout that `problems` names or lies in. A pack brings problems
    of its own only where `problems` names the pack itself: the judge runs a problem's text, so neither the name nor the
    content of anything among `solutions` may make it one. Raises UsageError where a pack cannot be imported.
    """
    inside = {entry: root for entry in config.problems if (root := _levels_above(_path(entry)))}
    outside = [entry for entry in config.problems if entry not in inside]
    checkout = next(iter(inside.values()), None)
    own = [] if config.solves else [entry for entry in outside if _is_pack(entry)]
    problems = [str(place) for entry, root in inside.items() for place in _problems_of(_path(entry), root)]
    problems += [entry for entry in outside if entry not in own]
    solved = _solved(config, own, problems)
    if not own and not solved:
        return Resolved(config, [], [])
    if not checkout:
        _check_trusted(solved, own)
    found = {entry: _imported(_path(entry), config, checkout, reader) for entry in dict.fromkeys([*own, *solved])}
    if not checkout:
        problems += [str(found[entry].folder / importing.PROBLEMS) for entry in own]
    solutions = [
        str(found[entry].folder / importing.SOLUTIONS) if entry in found else entry for entry in config.solutions
    ]
    changed = msgspec.structs.replace(config, problems=problems, solutions=solutions)
    notes = [one.note for one in found.values()]
    return Resolved(changed, notes, [one.note for one in found.values() if one.lacks])


def _solved(config: Config, own: list[str], problems: list[str]) -> list[str]:
    """The packs among `solutions`: what `problems` names as one, and what else is one and not laid out for these."""
    if config.solves:
        return []
    places = {_path(entry).absolute() for entry in own}
    named = [entry for entry in config.solutions if _path(entry).absolute() in places]
    packs = [entry for entry in config.solutions if entry not in named and _is_pack(entry)]
    # Most runs have none, and need not look for problems twice.
    names = _names(problems) if packs else set()
    return [
        entry for entry in config.solutions if entry in named or (entry in packs and not _is_laid_out(entry, names))
    ]


def _check_trusted(solved: list[str], own: list[str]) -> None:
    """Raises UsageError for a pack whose problems would be its own, without a word of the user for that."""
    places = {_path(entry).absolute() for entry in own}
    if other := next((entry for entry in solved if _path(entry).absolute() not in places), ""):
        raise UsageError(
            f"{wording.plain(other, 300)} is a pack, and whose problems it solves is not said: name a checkout of "
            "KernelBench among --problems, or the pack itself if you trust whoever wrote it, because the judge runs "
            "its problems. Candidates that are no pack are <set>/<name>/<candidate>.py of a selected problem"
        )


def _names(patterns: list[str]) -> set[str]:
    """The names of the problems that these patterns select; of one that selects nothing, who reads it says why."""
    found = set[str]()
    for pattern in patterns:
        with contextlib.suppress(UsageError):
            found |= catalog.among([pattern]).keys()
    return found


def _is_laid_out(entry: str, names: set[str]) -> bool:
    """Whether it is or holds `<set>/<name>/<candidate>.py` of a problem of these names.

    Then it is no pack, whatever other files are called: one candidate's name must not decide about all others.
    """
    try:
        return any(place.problem in names for place in discovery.discover([entry]))
    except UsageError:
        return False


def _path(entry: str) -> Path:
    """Of what is no path, one that leads nowhere: who reads the files says why."""
    try:
        return Path(entry or "\0").expanduser()
    except RuntimeError:
        return Path(entry)


def _levels_above(path: Path) -> Path | None:
    """The folder with level1 and the others of the KernelBench checkout that the path is or lies in."""
    for place in (path, *path.absolute().parents):
        try:
            root = levels_in(place)
        except UsageError:
            continue
        # Only what is among its levels: a checkout's neighbours are no part of it.
        return root if place == path or path.resolve().is_relative_to(root.resolve()) else None
    return None


def _problems_of(path: Path, root: Path) -> list[Path]:
    """What of a checkout a path names: all levels where it is the checkout itself."""
    whole = path.resolve() in (root.resolve(), root.resolve().parent)
    return sorted(root.glob("level[0-9]*")) if whole else [path]


def _is_pack(entry: str) -> bool:
    """Whether a path is no Python file or folder of a run's own layout but something that is imported.

    That is a table or text; a folder with such files and no Python file; and Python files whose own names say level and
    problem, or a folder with one of those.
    """
    path = _path(entry)
    # Not Path's: those raise for a name that is too long for the system.
    if os.path.isfile(path):
        return _says_its_problem([path.name]) or (
            path.suffix.lower() != ".py" and path.suffix.lower() in formats.BY_SUFFIX
        )
    if not os.path.isdir(path):
        return False
    suffixes = set()
    for below in _files_below(path):
        if _says_its_problem([*reversed(below.split(os.sep)), path.absolute().name]):
            return True
        suffixes.add(os.path.splitext(below)[1].lower())
    return ".py" not in suffixes and bool(suffixes & formats.BY_SUFFIX.keys())


def _says_its_problem(parts: Sequence[str]) -> bool:
    """Of a Python file's name and those of its folders, innermost first.

    Not `19_ReLU/anything.py`, which is a run's own layout.
    """
    if generations.KERNEL.fullmatch(parts[0]):
        return True
    own_layout = len(parts) > 1 and identity.NUMBERED.match(parts[1])
    named = identity.PROBLEM.search(parts[0]) and any(map(identity.LEVEL.search, parts))
    return parts[0].endswith(".py") and bool(named) and not own_layout


def _files_below(folder: Path) -> Iterator[str]:
    """Their paths from the folder on, without hidden ones."""
    start = len(os.path.join(folder, ""))
    for _, entries in search.folders([str(folder)], (".", "_")):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                yield entry.path[start:]


def _imported(source: Path, config: Config, checkout: Path | None, reader: ReadsTexts) -> _Found:
    wishes = config.packs
    kept = cache_folder.part(cache_folder.PACKS, config.compile.cache_dir)
    try:
        folder = kept / f"{safe(source.absolute().stem)}-{_digest(source, wishes, checkout)[:16]}"
        make_folder(kept)
        with _locked(kept / f"{folder.name}.lock"), _scratch() as scratch:
            if folder.is_symlink():
                folder.unlink()
            manifest = importing.run(source, scratch / folder.name, wishes, checkout, reader, home=folder)
            # Another run may be at work in it.
            before = _tree(folder) == _tree(scratch / folder.name)
            if not before:
                _replace(folder, scratch / folder.name)
    except UsageError as error:
        raise UsageError(f"{error} ({HINT})") from error
    except OSError as error:
        place = wording.plain(str(error.filename or kept), 300)
        raise UsageError(f"{place} cannot be written: {error.strerror or error}") from error
    how = "as imported before, in" if before else "imported into"
    note = f"pack {source}: {_counted(manifest)}; {how} {folder}"
    return _Found(folder, note, any(formats.is_read(one.origin.file) for one in manifest.alone()))


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """While no other run imports the same pack."""
    lock = drafts.kept(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    folder = folders.temporary("pack")
    try:
        yield folder
    finally:
        folders.remove_at_end(folder)


def _tree(folder: Path) -> dict[str, str]:
    """What lies in a folder, by path: a file's digest, or that it is none, which nothing imported is."""
    found = {}
    for _, entries in search.folders([str(folder)], ()):
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                with open(entry.path, "rb") as file:
                    found[os.path.relpath(entry.path, folder)] = hashlib.file_digest(file, "sha256").hexdigest()
            elif not entry.is_dir(follow_symlinks=False):
                found[os.path.relpath(entry.path, folder)] = "no file"
    return found


def _replace(folder: Path, imported: Path) -> None:
    """Have in `folder` what was imported, and nothing else."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(imported, folder)


def _counted(manifest: Manifest) -> str:
    whose = "KernelBench's" if all(one.kernelbench for one in manifest.problems) else "its own"
    left = f", {len(manifest.left)} left (import.json says why)" if manifest.left else ""
    candidates, problems = len(manifest.candidates), len(manifest.problems)
    solved = f"{problems} problem{'' if problems == 1 else 's'} ({whose})"
    return f"{candidates} candidate{'' if candidates == 1 else 's'} for {solved}{left}"


def _digest(source: Path, wishes: PackConfig, checkout: Path | None) -> str:
    """Of all that an import depends on: where the source is, its files and the checkout's with their content."""
    known = hashlib.sha256()
    for word in (VERSION, claims.SCHEMA, msgspec.to_builtins(wishes), str(source.absolute())):
        known.update(f"{word!r}\n".encode())
    found = files.walk(source)
    theirs = Checkout(checkout).files() if checkout else []
    for file in itertools.chain(found, map(files.single, theirs)):
        path, content = (file.origin.file, "") if isinstance(file, Left) else (str(file.path), _content(file))
        known.update(f"{path!r} {content}\n".encode())
    return known.hexdigest()


def _content(file: File) -> str:
    """The digest of a file that an import reads; of one that it cannot read, why not."""
    if not formats.is_read(file.path.name):
        return ""
    try:
        return hashlib.sha256(files.contents(file, files.MOST_TABLE_BYTES)).hexdigest()
    except files.Unusable as error:
        return repr(str(error))
