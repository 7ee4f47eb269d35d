"""The corpus as data: what is expected of each specimen, how to run them, and whether a record says what it should.

Used by the tests and by benchmarks/detection.py.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml
from msgspec import UNSET, UnsetType
from rich.console import Console

from harness import session
from harness.config import BuildConfig, CheckConfig, Config, Limits, Pattern, ProvenanceConfig, TimingConfig
from harness.records import Record, Status

CORPUS = Path(__file__).resolve().parent / "corpus"
# Enough pairs for an interval, not for a precise one.
TIMING = TimingConfig(budget_s=2.0, min_pairs=4, max_pairs=4, burst_ms=1.0)
# Two processes that do the same work differ by 2 % for as long as they live, where a call is many small kernels (H200).
ALIKE = 1.05
# A specimen that hangs uses all of one. Machines with a card are faster than those without.
LIMITS = {
    "cpu": Limits(call_s=5.0, first_call_s=10.0, load_s=12.0, total_s=60.0),
    "cuda": Limits(call_s=3.0, first_call_s=6.0, load_s=8.0, total_s=60.0),
}


class OnCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What of a specimen's head is otherwise on a card."""

    status: Status | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    warning: str | UnsetType = UNSET
    instead: str | UnsetType = UNSET
    twin: str | UnsetType = UNSET


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Values of the config that a specimen is run with."""

    timing: dict[str, Any] = {}
    build: dict[str, Any] = {}
    check: dict[str, Any] = {}
    provenance: dict[str, Any] = {}
    lanes: int = 1


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a specimen's file says of it, in the comment that it begins with; corpus/README.md explains the fields."""

    kind: Literal["cheat", "fault", "honest"]
    row: str
    status: Status
    reason: str = ""
    warning: str = ""
    instead: str = ""
    twin: str = ""
    sandbox: bool = False
    hole: str = ""
    variant: str = "default"
    set: Settings = Settings()
    cuda: OnCard = OnCard()


class Specimen(Head, frozen=True, kw_only=True):
    """A head, and where its file lies."""

    path: Path
    area: str
    problem: str
    name: str

    def on(self, device: str) -> Specimen:
        """What is expected on a kind of device, `cpu` or `cuda`."""
        if device == "cuda":
            other = {name: value for name, value in msgspec.structs.asdict(self.cuda).items() if value is not UNSET}
            return msgspec.structs.replace(self, **other)
        if self.needs_card:
            return msgspec.structs.replace(self, status=Status.UNSUPPORTED, reason="needs_cuda", warning="")
        return self

    @property
    def needs_card(self) -> bool:
        """Whether it is about a card, and says nothing on the CPU."""
        return self.name.startswith("cuda_")

    @property
    def compiled(self) -> bool:
        """Whether a compiler is run for it, which takes most of a minute."""
        text = self.path.read_text()
        return "load_inline" in text or "cpp_extension import load\n" in text


def load(corpus: Path = CORPUS) -> dict[str, Specimen]:
    """Every specimen by its name, which is unique in the corpus. Raises ValueError where a file says too little, too
    much, or lies elsewhere than at solutions/<area>/<set>/<problem>/<name>.py."""
    found: dict[str, Specimen] = {}
    for path in sorted((corpus / "solutions").rglob("*.py")):
        area, *folders = path.parent.relative_to(corpus / "solutions").parts
        if len(folders) != 2:
            raise ValueError(f"{path} does not lie at <area>/<set>/<problem>/<name>.py")
        if path.stem in found:
            raise ValueError(f"two specimens are called {path.stem}")
        told = msgspec.structs.asdict(read_head(path))
        found[path.stem] = Specimen(path=path, area=area, problem="/".join(folders), name=path.stem, **told)
    for one in found.values():
        _check_twins(one, found)
    return found


def read_head(path: Path) -> Head:
    """The comment that a file begins with. Not parsed as Python: some specimens are none."""
    comment = takewhile(lambda line: line.startswith("#"), path.read_text().splitlines())
    try:
        return msgspec.convert(yaml.safe_load("\n".join(line[1:] for line in comment)), Head)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise ValueError(f"{path} has no proper head: {error}") from error


def _check_twins(one: Specimen, known: Mapping[str, Specimen]) -> None:
    if one.kind == "cheat" and not one.twin:
        raise ValueError(f"{one.path} names no twin")
    for name in {one.twin, one.on("cuda").twin} - {""}:
        twin = known.get(name)
        if twin is None or twin.kind != "honest" or twin.problem != one.problem:
            raise ValueError(f"{one.path}: no honest specimen of {one.problem} is called {name}")


def run(
    specimens: Iterable[Specimen], folder: Path, console: Console, device: str = "cpu", lanes: int = 1
) -> dict[str, Record]:
    """Run specimens from a copy of the corpus below `folder`, in `folder`/run, run1, ..., on so many `lanes` at least;
    the records by name."""
    records: dict[str, Record] = {}
    for number, (_, config) in enumerate(configured(specimens, folder, device)):
        config = msgspec.structs.replace(config, lanes=max(lanes, config.lanes))
        out = folder / f"run{number or ''}"
        found = session.run(config, out, console, command=["corpus"])
        records |= {record.candidate: record for record in found}
    return records


def configured(specimens: Iterable[Specimen], folder: Path, device: str) -> Iterator[tuple[list[Specimen], Config]]:
    """Specimens that one config can run, with that; their files lie in a copy of the corpus below `folder`."""
    root = folder / "corpus"
    if not root.exists():
        shutil.copytree(CORPUS, root)
    for group in _alike(specimens):
        yield (
            group,
            Config(
                problems=[str(root / "problems")],
                solutions=[str(root / "solutions")],
                variants=[group[0].variant],
                include=[Pattern(problem=one.problem, candidate=one.name) for one in group],
                device=device,
                lanes=group[0].set.lanes,
                timing=msgspec.structs.replace(TIMING, **group[0].set.timing),
                build=msgspec.structs.replace(BuildConfig(), **group[0].set.build),
                check=msgspec.convert(group[0].set.check, CheckConfig),
                provenance=msgspec.convert(group[0].set.provenance, ProvenanceConfig),
                limits=LIMITS["cpu" if device == "cpu" else "cuda"],
            ),
        )


Run = Callable[[Iterable[Specimen], Path, Console, str], dict[str, Record]]


def environment(run_directory: Path) -> dict[str, Any]:
    """What a run says of the machine that it was carried out on."""
    told: dict[str, Any] = json.loads((run_directory / "run.json").read_text())["environment"]
    return told


def sandboxed(run_directory: Path) -> bool:
    """Whether a run was carried out behind the whole sandbox, by its own account."""
    told = environment(run_directory)
    return isinstance(told["sandbox"], list) and bool(told["sandbox"]) and not told.get("sandbox_missing")


def misses(
    chosen: Iterable[Specimen],
    records: dict[str, Record],
    folder: Path,
    console: Console,
    device: str = "cpu",
    run: Run = run,
) -> dict[str, str]:
    """What is not as expected, by specimen, after a second run of those where a busy machine may be to blame.

    A cheat that passed and should not have gets none: half a hole is one. One that was refused for another reason, or
    seems faster than its twin, is missed if it is so again.
    """
    chosen, kind = list(chosen), device.partition(":")[0]

    def told(records: dict[str, Record]) -> dict[str, str]:
        return {one.name: text for one in chosen if (text := miss(one.on(kind), records))}

    def got_through(one: Specimen) -> bool:
        record = records.get(one.name)
        passed = record is not None and record.status is Status.PASSED
        return bool(one.hole) or (one.kind == "cheat" and passed and one.on(kind).status is not Status.PASSED)

    first, known = told(records), load()
    again = {one.name: one for one in chosen if one.name in first and not got_through(one)}
    twins = {one.on(kind).twin: known[one.on(kind).twin] for one in again.values() if one.on(kind).twin}
    if not again:
        return first
    second = told(records | run((again | twins).values(), folder / "again", console, device))
    return {name: text for name, text in first.items() if name in second or name not in again}


def miss(specimen: Specimen, records: dict[str, Record]) -> str:
    """What a specimen's record says that it should not, as a sentence; empty where all is as expected.

    `specimen` is what is expected on the device that the records are of. A cheat that passes has gained nothing if its
    speedup's interval does not lie above its honest twin's.
    """
    if specimen.hole:
        return f"a known hole: {specimen.hole}"
    record = records.get(specimen.name)
    if record is None:
        return "no record"
    as_well = specimen.instead and f"{record.status} {record.reason} ".startswith(f"{specimen.instead} ")
    if not as_well and (other := _otherwise(specimen, record)):
        return other
    twin = records.get(specimen.twin)
    if gained := twin and gain(record, twin):
        return f"{gained:.2f} times as fast as {specimen.twin}"
    return ""


def _otherwise(specimen: Specimen, record: Record) -> str:
    """In what a record is not as the head says; empty where it is."""
    got = f"{record.status} ({record.reason})"
    wanted = f"{specimen.status} ({specimen.reason})" if specimen.reason else str(specimen.status)
    if record.status is not specimen.status:
        return f"{got}, not {wanted}: {record.message[:100]}"
    if specimen.reason and record.reason != specimen.reason and not record.reason.startswith(specimen.reason + ":"):
        return f"{got}, not {wanted}: {record.message[:100]}"
    if specimen.warning and not any(text.startswith(specimen.warning) for text in record.warnings):
        return f"{got} without the warning {specimen.warning}"
    return ""


def gain(record: Record, twin: Record) -> float | None:
    """How much faster than its twin a record says that it is at least; None where it need not be faster at all."""
    if record.speedup_lo is None or twin.speedup_hi is None or record.speedup_lo <= twin.speedup_hi * ALIKE:
        return None
    return record.speedup_lo / twin.speedup_hi


def _alike(specimens: Iterable[Specimen]) -> Iterator[list[Specimen]]:
    """Specimens that one config can run; first those that need nothing of their own."""
    groups: dict[tuple[str, bytes], list[Specimen]] = {("default", msgspec.json.encode(Settings())): []}
    for specimen in specimens:
        groups.setdefault((specimen.variant, msgspec.json.encode(specimen.set)), []).append(specimen)
    yield from filter(None, groups.values())
