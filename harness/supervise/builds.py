"""The session's side of a build: one untrusted process a candidate, a deadline, a folder of its own. No torch."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import msgspec

from harness.catalog import sources
from harness.catalog.jobs import Job
from harness.compile import cache, conditions, prepare, toolkit, tools
from harness.compile.ways.certain import first_error_line
from harness.config import Config
from harness.drafts import fresh
from harness.environment import Device, cpu_name, torch_build, why_no_cuda
from harness.processes import folders
from harness.processes.nursery import ZygoteLost
from harness.processes.renewal import Starter
from harness.records import Outcome, Record, Status
from harness.store import cache_folder
from harness.supervise import losses
from harness.wire import faults
from harness.wire.channel import DeadlineExceeded, NotSendable, PeerGone, ProtocolError
from harness.wire.messages import MOST_WARNINGS, Build, BuildFailed, Built, FromBuilder

# SIGKILL comes from outside: whoever is meant to be killed is killed again.
KILLED = "signal:SIGKILL"

# Of all libraries of one candidate together. What PyTorch compiles has a few MB, with all templates of CUTLASS tens;
# several candidates' lie on the disk at the same time.
MOST_BYTES = 1 << 28


class BuildResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a candidate's extensions: shared objects by digest of the call, or the fault that ended it.

    `unconstructed` is what the candidate's constructor raised, so that more of them may be missing. `log` names
    the file with what was printed, if there is one. `size_bytes` is that of the libraries, which lie on the disk."""

    libraries: dict[str, str] = {}
    failures: dict[str, str] = {}
    fault: Outcome | None = None
    compile_s: float | None = None
    warnings: list[str] = []
    unconstructed: str = ""
    log: str = ""
    size_bytes: int = 0


def needs_build(job: Job) -> bool:
    """Whether the source can reach a compiler of ours at all; importing torch for nothing would cost seconds."""
    return job.candidate.facts.needs_build and not job.candidate.baseline


def unparsed(job: Job) -> Outcome | None:
    """What comes of a candidate whose file is no Python, as its runner would say it: that takes no problem to be opened
    and no process."""
    found = job.candidate.facts.unparsed
    if found is None:
        return None
    file = job.candidate.path.name
    return faults.classify("load", f"LoadFault:{found.reason}", found.text, file, found.line, "")


def needs_compiler() -> Outcome:
    """What becomes of a candidate with sources where nothing can compile them: not its own doing."""
    message = f"no C++ compiler was found ({tools.compiler()}): install g++, or set CXX to another one"
    return Outcome(status=Status.UNSUPPORTED, reason="needs_compiler", message=message)


def is_built(job: Job) -> bool:
    """Whether a process builds it: nothing that is known already shows that it cannot be evaluated."""
    return needs_build(job) and not (job.problem.fault or job.candidate.fault or unparsed(job))


def built_for(job: Job) -> str:
    """The variant, where a build is for that alone: its init arguments may be compiled in. Empty for one for all."""
    return job.variant if job.candidate.facts.compiles_later else ""


class Workshop:
    """Builds the candidates of a run for one kind of device: tools, precompiled headers and cache. Thread-safe."""

    def __init__(self, device: Device, config: Config) -> None:
        self._device = device
        self._config = config
        self._conditions = conditions.find(device, config.compile)
        self._arch, self._tools = self._conditions.arch, self._conditions.tools
        self._headers = cache_folder.part(cache_folder.HEADERS, config.compile.cache_dir)
        limit_bytes = int(config.compile.cache_gb * 1e9)
        built = cache_folder.part(cache_folder.BUILDS, config.compile.cache_dir)
        self._cache = cache.Cache(built, limit_bytes) if limit_bytes and self._tools else None

    def build(self, job: Job, nursery: Starter, folder: Path, log: Path, card: Device | None = None) -> BuildResult:
        """One candidate's extensions, compiled or from the cache, in `folder`, which is made new and is ours alone.

        The process may use `card`; by default it has no device.
        """
        if not needs_build(job):
            return BuildResult()
        if self._tools is None:
            return BuildResult(fault=needs_compiler())
        started = time.monotonic()
        # The folder above it is gone once the session ends.
        folder.mkdir()
        key = self.cache_key(job, card)
        kept = self._cache.fetch(key, folder) if self._cache else None
        if kept is not None:
            libraries, warnings = kept
            with fresh(log) as file:
                file.write(b"the libraries are from the cache\n")
            size_bytes = _size_bytes(libraries)
            return BuildResult(libraries=libraries, warnings=warnings, compile_s=_since(started), size_bytes=size_bytes)
        prepared, remark = self._prepared(job)
        started = time.monotonic()
        work = folder / "work"
        work.mkdir()
        try:
            answer, fault = self._in_a_process(job, nursery, work, log, prepared, card)
            if fault is not None or answer is None:
                return BuildResult(fault=fault, compile_s=_since(started))
            result = _result(answer, work, folder)
        except NotSendable as error:
            return BuildResult(fault=faults.unsendable(error), compile_s=_since(started))
        except ProtocolError as error:
            return BuildResult(fault=_broken(error), compile_s=_since(started))
        finally:
            folders.remove(work)
        whole = not (result.failures or result.unconstructed)
        keep = isinstance(answer, Built) and answer.self_contained and result.libraries and whole
        if self._cache and keep:
            self._cache.store(key, result.libraries, result.warnings)
        return msgspec.structs.replace(
            result, compile_s=_since(started), warnings=[*result.warnings, *([remark] if remark else [])]
        )

    def cache_key(self, job: Job, card: Device | None = None) -> str:
        """A digest (64 hex digits) of everything that the libraries depend on, the whole candidate file included.

        Build processes are not believed: that a library was made from these sources is known only of the candidate
        whose build it was. With its whole file in the key, a forged library reaches no other candidate.
        """
        facts = job.candidate.facts
        parts = [
            bytes.fromhex(job.candidate.digest),
            (self._tools.digest if self._tools else "").encode(),
            self._conditions.digest.encode(),
        ]
        if facts.compiles_later:
            parts += [bytes.fromhex(job.problem.digest), msgspec.json.encode(job.overrides, order="sorted")]
        if card:
            parts.append(f"on {card.name}".encode())
        if facts.native:
            parts.append(cpu_name().encode())
        if facts.asks_its_place:
            # The folder is another one each time; a library that names it is not kept (Builder.self_contained).
            parts.append(job.candidate.path.name.encode())
        hasher = hashlib.sha256()
        for part in parts:
            hasher.update(len(part).to_bytes(8, "little") + part)
        return hasher.hexdigest()

    def _prepared(self, job: Job) -> tuple[str, str]:
        """The folder of precompiled headers for this candidate, and a warning where it could not be made."""
        if self._config.compile.headers != "lean" or self._tools is None:
            return "", ""
        try:
            folder = prepare.prepared(job.candidate.facts.headers, self._headers, self._tools)
        except (RuntimeError, OSError) as error:
            return "", f"slow_build: the headers could not be precompiled: {str(error)[:200]}"
        return str(folder), ""

    def _why_no_cuda(self) -> str:
        """Why no candidate with CUDA sources can be built, or run; empty where one can."""
        if self._device.kind == "cpu":
            return why_no_cuda()
        lacks_nvcc = torch_build().cuda and not (self._tools and self._tools.nvcc)
        return f"no nvcc was found: {toolkit.INSTALL}" if lacks_nvcc else ""

    def _in_a_process(
        self, job: Job, nursery: Starter, folder: Path, log: Path, prepared: str, card: Device | None
    ) -> tuple[Built | BuildFailed | None, Outcome | None]:
        """The answer of an untrusted process, or the fault that it ended by. All that it started has ended, too."""
        timeout_s = self._config.build.timeout_s
        environment = {"TORCH_EXTENSIONS_DIR": str(folder), "HOME": str(folder), "TMPDIR": str(folder)}
        if self._arch:
            environment["TORCH_CUDA_ARCH_LIST"] = self._arch
        if card:
            environment |= card.environment
        # The problem for its init arguments, where the candidate is constructed, too.
        problem = [job.problem.path.resolve()] if job.candidate.facts.compiles_later else []
        own = [job.candidate.path.resolve(), *problem]
        readable = [*itertools.chain(*map(sources.own_files, own)), *([prepared] if prepared else [])]
        child = nursery.start("builder", FromBuilder, log, environment, folder, readable=readable, card=card)
        try:
            request = Build(
                candidate=str(job.candidate.path.resolve()),
                folder=str(folder),
                problem=str(*problem),
                overrides=job.overrides,
                why_no_cuda=self._why_no_cuda(),
                headers=self._config.compile.headers,
                prepared=prepared,
                arch=self._arch,
                absent_card=self._device.name if self._device.kind == "cuda" and card is None else "",
            )
            child.channel.send(request)
            answer: Built | BuildFailed = child.channel.message(timeout_s)
            if isinstance(answer, BuildFailed) and answer.outcome.reason == "needs_cuda" and not request.why_no_cuda:
                # Rewards take that reason for the machine's fault.
                raise ProtocolError("a build that says that there is no GPU, where there is one")
            if child.kill() is None:
                message = "a process of the build could not be ended, and so nothing of it is used"
                # A build has no device whose driver it could be stuck in: this is its own doing.
                return None, Outcome(status=Status.RESOURCE_LIMIT, reason="unkillable", message=message)
            return answer, None
        except DeadlineExceeded:
            message = f"compiling took longer than build.timeout_s = {timeout_s:g} s"
            late = Outcome(status=Status.TIMEOUT, reason="compile", message=message, limit="build.timeout_s")
            return None, losses.timed_out(late, child)
        except ProtocolError as error:
            return None, _broken(error)
        except PeerGone:
            exit_code = child.wait(2.0)
            if child.orphaned:
                raise ZygoteLost("the forking parent died during a build") from None
            died = faults.death(exit_code, "its build", child.cause)
            return None, msgspec.structs.replace(died, evidence=died.evidence | {"log_tail": child.log_tail()})
        finally:
            child.kill()


def lacked_the_device(job: Job, build: BuildResult, record: Record) -> bool:
    """Whether a build may have ended early, or made other calls than the runner, because it has no device."""
    if not needs_build(job) or unparsed(job) or record.status is not Status.LOAD_ERROR:
        return False
    late = record.reason == "late_compile" and record.evidence.get("phase") == "load"
    return late or (build.fault is not None and "exception" in record.evidence)


def was_killed(outcome: Outcome) -> bool:
    """Whether a process was killed from outside. The word alone may be one that a candidate has raised."""
    return (outcome.status, outcome.reason) == (Status.CRASHED, KILLED)


def _since(started: float) -> float:
    return round(time.monotonic() - started, 3)


def _broken(error: ProtocolError) -> Outcome:
    message = f"the build process broke the protocol: {error}"
    return Outcome(status=Status.REJECTED, reason="protocol", message=message)


def built_again(attempt: Callable[[], BuildResult]) -> BuildResult:
    """`attempt()`, and once more where the build was killed from outside, or the forking parent was lost."""
    try:
        result = attempt()
        if result.fault is None or not was_killed(result.fault):
            return result
    except ZygoteLost:
        pass
    return attempt()


def _size_bytes(libraries: dict[str, str]) -> int:
    return sum(os.stat(path).st_size for path in libraries.values())


def _too_large() -> Outcome:
    message = f"its libraries are larger than {MOST_BYTES >> 20} MiB together; read large data from a file beside it"
    return Outcome(status=Status.RESOURCE_LIMIT, reason="library_size", message=message)


def _result(answer: Built | BuildFailed, work: Path, folder: Path) -> BuildResult:
    """What the process claims to have built, with its libraries copied from `work`, which was its own, to `folder`."""
    if isinstance(answer, BuildFailed):
        return BuildResult(fault=answer.outcome)
    libraries, room_bytes = {}, MOST_BYTES
    for number, (digest, name) in enumerate(answer.libraries.items()):
        # By its name the module is imported.
        target = folder / f"built_{number}" / PurePosixPath(name).name
        try:
            target.parent.mkdir()
            room_bytes -= folders.copy_out(work, name, target, room_bytes)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno == errno.EFBIG:
                return BuildResult(fault=_too_large())
            raise ProtocolError(f"no library in the build folder: {name[:100]!r}: {error}") from error
        libraries[digest] = str(target)
    failed = [first_error_line(text)[:200] for text in list(answer.failures.values())[:MOST_WARNINGS]]
    warnings = [
        f"build_failure: the candidate goes on without an extension that does not compile: {line}" for line in failed
    ]
    return BuildResult(
        libraries=libraries,
        failures=answer.failures,
        size_bytes=_size_bytes(libraries),
        warnings=[*answer.warnings, *warnings],
        unconstructed=answer.unconstructed,
    )
