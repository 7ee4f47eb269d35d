"""YAML in, one typed `Config` out. Every key has a default; `configs/every-option.yaml` shows them all."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
import yaml

from harness import places, wording
from harness.errors import UsageError, nearest

ALLOWABLE = ("tf32", "bf16", "fp16")

# Clocks of the system take no infinite deadline, and the JSON messages between processes have no infinity.
MOST = 1e9
MOST_BYTES = 4 << 20
MOST_NODES = 100_000

Positive = Annotated[float, msgspec.Meta(gt=0, le=MOST)]
Size = Annotated[float, msgspec.Meta(ge=0, le=MOST)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Common settings of every mapping in a config file."""


class Pattern(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs an `include` or `exclude` entry selects: globs, all of which must match."""

    problem: str = "*"
    variant: str = "*"
    precision: str = "*"
    candidate: str = "*"


class BuildConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Compiling candidates; times in seconds."""

    timeout_s: Positive = 600.0
    # Candidates compiled at a time; 0 means what cores and free memory allow.
    slots: Annotated[int, msgspec.Meta(ge=0)] = 0


class CompileConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What extensions are built from, and where results are kept."""

    # lean: every way that replaces torch's umbrella headers by smaller ones, with the stock build as the fallback.
    headers: Literal["lean", "stock"] = "lean"
    # "9.0a" or "90a", kept as in TORCH_CUDA_ARCH_LIST ("9.0a"); empty: the GPU's own.
    arch: str = ""
    # At most this much on disk; the least recently used entries are deleted first; 0 keeps nothing.
    cache_gb: Size = 10.0
    # For the builds of this config; empty: the common cache folder (places.cache).
    cache_dir: str = ""


class TimingConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When to stop sampling: the interval is narrow enough, or the budget is spent."""

    # Half-width of the speedup's 95 % interval to stop at, relative.
    precision: Positive = 0.005
    budget_s: Positive = 10.0
    # The interval needs at least four pairs.
    min_pairs: Annotated[int, msgspec.Meta(ge=4)] = 10
    max_pairs: Annotated[int, msgspec.Meta(ge=4)] = 200
    burst_ms: Positive = 5.0
    max_calls_per_burst: Count = 32
    # On a GPU. cold: every call reads its inputs from memory; warm: a burst's inputs fit the L2 and are left there.
    cache: Literal["cold", "warm"] = "cold"


class CheckConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Checks of a candidate's numbers beside those of the timed calls."""

    # Calls on inputs derived from the problem's own: scaled, sorted, constant rows, one dominant element, ...
    stress: bool = True
    # Time for these calls per candidate; on large problems only some sets are tried, in random order.
    stress_budget_s: Positive = 1.5
    # Float32 where PyTorch's own switches let the reference's operators use TF32: by default convolutions and recurrent
    # layers on a GPU.
    strict_float32: bool = False
    # After each evaluation, five more calls: the record says what KernelBench's rule makes of them, and the verdict is
    # what it is without.
    kernelbench: bool = False


class ProvenanceConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose kernels may do the work, according to one profiled call after timing."""

    # One more call of each candidate, which takes some hundredths of a second. The rules below need it.
    profile: bool = True
    # Least share of the device's time in the candidate's own kernels; 0: no rule.
    min_own_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    # Whose kernels are refused: torch_fallback, cublas, third_party.
    forbid: list[Literal["torch_fallback", "cublas", "third_party"]] = msgspec.field(default_factory=list)

    @property
    def has_rules(self) -> bool:
        return bool(self.min_own_share or self.forbid)


class PackConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a pack is read: the options of `import`, for packs among `problems` and `solutions` too.

    Fields are names of keys in a table's rows, `a.b` for one below another. `level` and `problem` are for what says
    neither itself.
    """

    level: Annotated[int, msgspec.Meta(ge=0)] | None = None
    problem: str = ""
    blocks: Literal["last", "all"] = "last"
    code_field: str = ""
    reference_field: str = ""
    problem_field: str = ""
    level_field: str = ""
    name_field: str = ""
    sample_field: str = ""
    status_field: str = ""
    speedup_field: str = ""
    time_field: str = ""
    baseline_time_field: str = ""

    @property
    def every_block(self) -> bool:
        """Whether each block of a text is a sample."""
        return self.blocks == "all"


class Limits(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Deadlines in seconds, after which a candidate is `timeout`, and memory, above which it is `out_of_memory`, or of
    which a problem needs more to be judged."""

    load_s: Positive = 120.0
    first_call_s: Positive = 120.0
    # A burst gets 10 s, or 100 times what the reference needs for it if that is more, but never more than this.
    call_s: Positive = 120.0
    # The whole evaluation of one candidate, compile excluded.
    total_s: Positive = 600.0
    # Host memory of one build or candidate, in units of 10^9 bytes, as its processes' own figures have it, without the
    # kernel's for their mappings, files, pipes and sockets; 0 means four fifths of what is free at the start.
    host_memory_gb: Size = 0.0
    # What the device is taken to have free for a problem, in units of 10^9 bytes, as if it were a smaller one; 0 means
    # all that is free.
    device_memory_gb: Size = 0.0


class Config(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run: a matrix of problems, variants, precisions and candidates, and how each job is carried out."""

    problems: list[str] = msgspec.field(default_factory=lambda: ["problems"])
    solutions: list[str] = msgspec.field(default_factory=lambda: ["solutions"])
    packs: PackConfig = PackConfig()
    # The problem that every candidate solves, whatever its folders are called; empty: the folders tell.
    solves: str = ""
    variants: list[str] = msgspec.field(default_factory=lambda: ["default"])
    # "default" is the problem's own PRECISION.
    precisions: list[str] = msgspec.field(default_factory=lambda: ["default"])
    include: list[Pattern] = []
    exclude: list[Pattern] = []
    # Sizes for problems that define none themselves: problem glob -> variant -> constant -> value.
    define_variants: dict[str, dict[str, dict[str, Any]]] = {}
    device: str = "auto"
    # Candidates under way at the same time on each GPU, whose bursts take turns; the CPU has one lane.
    lanes: Annotated[int, msgspec.Meta(ge=1, le=16)] = 1
    # What speedups are over: eager, compile, compile-max-autotune, cuda-graph or tf32.
    baseline: str = "eager"
    # More baselines for the leaderboard, each timed like a candidate.
    baselines: list[str] = msgspec.field(default_factory=list)
    # Inputs come from secret seeds, new whenever a problem is opened; an integer replays a run, and its records say so.
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None
    out: str = ""
    # Layers for builds and candidates: those that this machine has (auto), all or no run (require), none (off).
    sandbox: Literal["auto", "require", "off"] = "auto"
    # Lower precisions that candidates may use without being refused: tf32, bf16, fp16.
    allow: list[str] = msgspec.field(default_factory=list)
    build: BuildConfig = BuildConfig()
    compile: CompileConfig = CompileConfig()
    check: CheckConfig = CheckConfig()
    provenance: ProvenanceConfig = ProvenanceConfig()
    timing: TimingConfig = TimingConfig()
    limits: Limits = Limits()


SECTIONS = tuple(field.name for field in msgspec.structs.fields(Config) if isinstance(field.default, Section))


def limits(config: Config) -> dict[str, float]:
    """Every limit that can end an evaluation, by its key in the config."""
    own = {f"limits.{name}": float(value) for name, value in msgspec.structs.asdict(config.limits).items()}
    return {"build.timeout_s": config.build.timeout_s} | own


def load(path: Path, overrides: list[str] | None = None) -> Config:
    """The config in `path` (places.found), with `a.b=value` overrides (value in YAML) applied on top.

    Raises UsageError naming file, line, path and the nearest valid key.
    """
    path = places.found(path)
    node, data = _read(text(path), str(path))
    _check_keys(data, Config, node, str(path), "")
    _converted(data, lambda keys: f"{path}:{_line(node, keys)}")
    for override in overrides or []:
        _apply_override(data, override)
        _converted(data, lambda _, override=override: f"--set {override}")  # type: ignore[misc]
    return _consistent(_converted(data, lambda keys: f"{path}:{_line(node, keys)}"), path)


def text(path: Path, what: str = "config", most_bytes: int = MOST_BYTES) -> str:
    """The text of a file that the user names, `what` in messages. Does not block on a pipe or a device, and does not
    read a huge file. Raises UsageError."""
    refused = f"cannot read the {what} {path}"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UsageError(f"{refused}: it is not a regular file")
            data = file.read(most_bytes + 1)
        if len(data) > most_bytes:
            raise UsageError(f"{refused}: it is larger than {most_bytes >> 10} KiB")
        return data.decode()
    except OSError as error:
        raise UsageError(f"{refused}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{refused}: byte {error.start + 1} is not UTF-8; save the file as UTF-8") from error


def _read(text: str, where: str) -> tuple[yaml.Node | None, Any]:
    """The nodes of a YAML text, and its values. Raises UsageError, with the line if it is known."""
    try:
        node = yaml.compose(text)
        if _too_large(node):
            raise UsageError(f"{where}: more than {MOST_NODES} values, counting repetitions by aliases (*name)")
        _check_repeated(node, where)
        data = _Loader(text).get_single_data()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f"{where}:{mark.line + 1}" if mark else where
        said = " ".join(str(getattr(error, "problem", error)).split())
        raise UsageError(f"{at}: not valid YAML: {said}") from error
    except RecursionError as error:
        raise UsageError(f"{where}: not valid YAML: nested too deeply") from error
    except (ValueError, OverflowError) as error:
        # PyYAML's scanner, of \U00110000.
        raise UsageError(f"{where}: not valid YAML: a \\U of no character; write another one") from error
    return node, {} if data is None else data


class _Loader(yaml.SafeLoader):
    """PyYAML's own, whose readers of numbers, dates and truth values raise anything at a text that is none."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            data = super().construct_object(node, deep)
            if isinstance(data, str):
                data.encode()
        except yaml.YAMLError:
            raise
        except UnicodeEncodeError as error:
            fault = "half a surrogate pair in a text; write the character itself"
            raise yaml.constructor.ConstructorError(None, None, fault, node.start_mark) from error
        except (ValueError, LookupError, AttributeError, OverflowError) as error:
            kind = node.tag.rpartition(":")[2]
            text = wording.plain(str(node.value), 40, kept="")
            # A date that there is not, a number of thousands of digits.
            why = f": {error}" if isinstance(error, ValueError) else ""
            fault = f"'{text}' is not a valid {kind}{why}"
            raise yaml.constructor.ConstructorError(None, None, fault, node.start_mark) from error
        return data


def _check_repeated(node: yaml.Node | None, where: str) -> None:
    """Raises UsageError for a key that a mapping has twice: the first of the two would count for nothing."""
    waiting, done = [node], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in done:
            continue
        done.add(id(one))
        if isinstance(one, yaml.SequenceNode):
            waiting += one.value
        elif isinstance(one, yaml.MappingNode):
            seen: dict[tuple[str, str], yaml.Node] = {}
            for key, value in one.value:
                waiting.append(value)
                if not isinstance(key, yaml.ScalarNode):
                    continue
                first = seen.setdefault((key.tag, key.value), key)
                if first is not key:
                    lines = key.start_mark.line + 1, first.start_mark.line + 1
                    raise UsageError(f"{where}:{lines[0]}: '{key.value}' is given twice, at first in line {lines[1]}")


def _too_large(node: yaml.Node | None) -> bool:
    """Whether there are too many values, each counted wherever an alias repeats it; an alias may contain itself."""
    waiting, count = [node], 0
    while waiting:
        one = waiting.pop()
        count += 1
        if count > MOST_NODES:
            return True
        if isinstance(one, yaml.SequenceNode):
            waiting += one.value
        elif isinstance(one, yaml.MappingNode):
            waiting += [child for pair in one.value for child in pair]
    return False


def _converted(data: Any, place: Callable[[list[str]], str]) -> Config:
    """The config that `data` describes; `place` gives file and line of a wrong value."""
    while True:
        try:
            return msgspec.convert(data, Config)
        except msgspec.ValidationError as error:
            message, _, at = str(error).partition(" - at `$")
            keys = re.findall(r"\.?([^.\[\]`]+)", at.rstrip("`").replace("[...]", ""))
            if not (re.match(r"Expected `(int|float)[^`]*`, got `str`", message) and _read_exponent(data, keys)):
                remedy = "; write it in quotes" if re.match("Expected `str`, got `(int|float|bool)`", message) else ""
                name = ".".join(keys) or "config"
                said = "is empty; remove it, or give it a value" if message.endswith(", got `null`") else ""
                said = said or wording.without_types(message)
                raise UsageError(f"{place(keys)}: {name}: {said}{remedy}") from error


def _read_exponent(data: Any, keys: list[str]) -> bool:
    """Replace a text like 1e-3, which YAML 1.1 does not read as a number, by the number; whether it was one."""
    *parents, last = keys
    for key in parents:
        data = data.get(key) if isinstance(data, dict) else None
    text = data.get(last) if isinstance(data, dict) else None
    if not isinstance(text, str) or not re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d{1,3}", text, re.ASCII):
        return False
    number = float(text)
    data[last] = int(number) if number.is_integer() else number
    return True


def architecture(word: str, named: str) -> str:
    """`90a`, `sm_90a` or `9.0a` as torch writes it in TORCH_CUDA_ARCH_LIST: `9.0a`.

    Raises a UsageError that begins with `named` for anything else.
    """
    match = re.fullmatch(r"(?:sm_|compute_)?(\d{1,2})\.?(\d)([af]?)", word, re.ASCII)
    if match is None:
        raise UsageError(f"{named} {word}: not an architecture; write it like 90a or 9.0a, 86 or 8.6")
    return f"{match.group(1)}.{match.group(2)}{match.group(3)}"


def default_out(path: Path, candidate: str = "") -> str:
    """The default run directory of a config, or of one `candidate` SET/PROBLEM/NAME in its place; the same each time,
    so that a second call resumes. Files of one name for two problems have two."""
    return f"results/{wording.name(candidate.replace('/', '.'), 200) if candidate else path.stem}"


def _consistent(config: Config, path: Path) -> Config:
    for name in config.allow:
        if name not in ALLOWABLE:
            raise UsageError(
                f"{path}: allow: '{name}' is not a precision that can be allowed; {nearest(name, ALLOWABLE)}"
            )
    if config.compile.arch:
        arch = architecture(config.compile.arch, f"{path}: compile.arch:")
        config = msgspec.structs.replace(config, compile=msgspec.structs.replace(config.compile, arch=arch))
    if config.provenance.has_rules and not config.provenance.profile:
        raise UsageError(f"{path}: provenance: min_own_share and forbid need profile: true")
    if wrong := _no_json(config.define_variants, "define_variants"):
        raise UsageError(f"{path}: {wrong}")
    if "\0" in config.out + config.compile.cache_dir:
        raise UsageError(f"{path}: out and compile.cache_dir must not contain a null character")
    if config.timing.max_pairs < config.timing.min_pairs:
        bounds = f"timing.max_pairs ({config.timing.max_pairs}) is below timing.min_pairs ({config.timing.min_pairs})"
        raise UsageError(f"{path}: {bounds}")
    return config


def _no_json(value: Any, place: str) -> str:
    """What in a value JSON cannot hold, by which it reaches other processes, with its place; empty if nothing."""
    match value:
        case dict():
            for key, item in value.items():
                if not isinstance(key, str):
                    return f"{place}: the key {wording.plain(repr(key), 40)} is no text; write it in quotes"
                if wrong := _no_json(item, f"{place}.{wording.plain(key, 40)}"):
                    return wrong
        case list():
            found = (_no_json(item, f"{place}[{number}]") for number, item in enumerate(value))
            return next(filter(None, found), "")
        case float() if not math.isfinite(value):
            return f"{place}: {value} is no number that can be handed on; write a finite one"
        case int() if not -(2**63) <= value < 2**63:
            return f"{place}: a number of more than 64 bits; write a smaller one"
        case None | str() | bool() | int() | float():
            return ""
        case _:
            kind = type(value).__name__
            return f"{place}: a {kind}, which is neither number, text, list nor mapping; write it in quotes"
    return ""


def _check_keys(data: Any, kind: Any, node: yaml.Node | None, file: str, prefix: str) -> None:
    """Report unknown keys first, because msgspec names neither the line nor the nearest key."""
    if get_origin(kind) is list and isinstance(data, list) and isinstance(node, yaml.SequenceNode):
        for index, (item, child) in enumerate(zip(data, node.value, strict=True)):
            _check_keys(item, get_args(kind)[0], child, file, f"{prefix}[{index}]")
        return
    if not (isinstance(kind, type) and issubclass(kind, Section)) or not isinstance(data, dict):
        return
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    children = {key.value: (key, value) for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}
    for key, value in data.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        key_node, value_node = children.get(str(key), (None, None))
        if key not in fields:
            line = f":{key_node.start_mark.line + 1}" if key_node is not None else ""
            raise UsageError(f"{file}{line}: unknown key '{name}'; {nearest(str(key), fields)}")
        _check_keys(value, fields[key], value_node, file, name)


def _apply_override(data: dict[str, Any], override: str) -> None:
    dotted, equals, text = override.partition("=")
    if not equals:
        raise UsageError(f"--set {override}: write it as a.b=value")
    *parents, last = dotted.split(".")
    target = data
    _, value = _read(text, f"--set {override}")
    for parent in parents:
        target = target.setdefault(parent, {})
        if not isinstance(target, dict):
            raise UsageError(f"--set {override}: '{parent}' is a value, not a section")
    target[last] = None if not text.strip() else value
    _check_keys(data, Config, None, f"--set {override}", "")


def _line(node: yaml.Node | None, keys: list[str]) -> int:
    """The line of the innermost key that the file itself has."""
    line = 1
    for key in keys:
        if not isinstance(node, yaml.MappingNode):
            break
        for key_node, value_node in node.value:
            if key_node.value == key:
                line, node = key_node.start_mark.line + 1, value_node
                break
    return line
