"""Packs that a run names among its problems and solutions: imported into the cache, once, and run from there."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness import places, wording
from harness.catalog import claims, search
from harness.catalog.claims import Manifest
from harness.catalog.facts import ReadsTexts
from harness.config import Config
from harness.errors import UsageError
from harness.packs import formats, generations, identity, importing
from harness.packs.checkout import levels_in
from harness.packs.names import safe
from harness.version import VERSION

# The messages of an import name its flags.
HINT = "in a run, --kernelbench is a checkout among --problems, and --code-field is --set packs.code_field"


class _Found(NamedTuple):
    """The folder of an import, and a line about it."""

    folder: Path
    note: str


def resolved(config: Config, reader: ReadsTexts) -> tuple[Config, list[str]]:
    """The config with imported folders in place of packs, and a line about each pack.

    Candidates solve the problems of the KernelBench checkout that `problems` names or lies in, or else the pack's own,
    which are added to `problems`. Raises UsageError where a pack cannot be imported.
    """
    inside = {entry: root for entry in config.problems if (root := _levels_above(_path(entry)))}
    outside = [entry for entry in config.problems if entry not in inside]
    packs = [] if config.solves else list(dict.fromkeys(filter(_is_pack, [*outside, *config.solutions])))
    if not packs:
        return config, []
    checkout = next(iter(inside.values()), None)
    found = {entry: _imported(_path(entry), config, checkout, reader) for entry in packs}
    problems = [str(place) for entry, root in inside.items() for place in _problems_of(_path(entry), root)]
    problems += [entry for entry in outside if entry not in found]
    if not checkout:
        problems += [str(one.folder / importing.PROBLEMS) for one in found.values()]
    solutions = [
        str(found[entry].folder / importing.SOLUTIONS) if entry in found else entry for entry in config.solutions
    ]
    changed = msgspec.structs.replace(config, problems=problems, solutions=solutions)
    return changed, [one.note for one in found.values()]


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
    for below in _files_below(path, (".", "_")):
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


def _files_below(folder: Path, hidden: tuple[str, ...]) -> Iterator[str]:
    """Their paths from the folder on."""
    start = len(os.path.join(folder, ""))
    for _, entries in search.folders([str(folder)], hidden):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                yield entry.path[start:]


def _imported(source: Path, config: Config, checkout: Path | None, reader: ReadsTexts) -> _Found:
    wishes = config.packs
    known = hashlib.sha256(repr([VERSION, claims.SCHEMA, msgspec.to_builtins(wishes), *_state(source)]).encode())
    known.update(repr(_state(checkout) if checkout else []).encode())
    kept = places.cache(config.compile.cache_dir) / "packs"
    folder = kept / f"{safe(source.absolute().stem)}-{known.hexdigest()[:16]}"
    try:
        kept.mkdir(parents=True, exist_ok=True)
        with open(kept / f"{folder.name}.lock", "w") as lock:
            # Another run may be importing it.
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = (folder / claims.MANIFEST).exists()
            if not before:
                shutil.rmtree(folder, ignore_errors=True)
                importing.run(source, folder, wishes, checkout, reader)
    except UsageError as error:
        raise UsageError(f"{error} ({HINT})") from error
    except OSError as error:
        raise UsageError(f"{wording.plain(str(kept), 300)} cannot be written: {error.strerror}") from error
    how = "as imported before, in" if before else "imported into"
    return _Found(folder, f"pack {source}: {_counted(claims.read(folder / claims.MANIFEST))}; {how} {folder}")


def _counted(manifest: Manifest) -> str:
    whose = "KernelBench's" if all(one.kernelbench for one in manifest.problems) else "its own"
    left = f", {len(manifest.left)} left (import.json says why)" if manifest.left else ""
    candidates, problems = len(manifest.candidates), len(manifest.problems)
    solved = f"{problems} problem{'' if problems == 1 else 's'} ({whose})"
    return f"{candidates} candidate{'' if candidates == 1 else 's'} for {solved}{left}"


def _state(source: Path) -> list[tuple[str, int, int]]:
    """Name, size and time of every file of a source, by which a change of it is seen."""
    below = sorted(_files_below(source, ())) if source.is_dir() else [""]
    found = []
    for name in below:
        try:
            state = os.stat(source / name)
        except OSError:
            continue
        found.append((f"{source.absolute().name}/{name}", state.st_size, state.st_mtime_ns))
    return found
