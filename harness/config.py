"""YAML in, one typed `Config` out. Every key has a default; `configs/every-option.yaml` shows them all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
import yaml

from harness.errors import UsageError, nearest

ALLOWABLE = ("tf32", "bf16", "fp16")

Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Common settings of every mapping in a config file."""


class Pattern(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs an `include` or `exclude` entry speaks of: globs, all of which must match."""

    problem: str = "*"
    variant: str = "*"
    precision: str = "*"
    candidate: str = "*"


class Build(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Compiling candidates; times in seconds."""

    timeout_s: Positive = 600.0
    # Candidates compiled at a time; 0 means what cores and free memory allow.
    slots: Annotated[int, msgspec.Meta(ge=0)] = 0


class Compile(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What extensions are built from, and where results are kept."""

    # lean: torch's umbrella headers are replaced by smaller ones, with the stock build as the fallback.
    headers: Literal["lean", "stock"] = "lean"
    # As TORCH_CUDA_ARCH_LIST has it ("9.0a"); empty: the card's own.
    arch: str = ""
    # At most this much on disk, least lately used first out; 0 keeps nothing.
    cache_gb: Annotated[float, msgspec.Meta(ge=0)] = 10.0
    # Empty: ASSAY_CACHE of the environment, or ~/.cache/assay.
    cache_dir: str = ""


class TimingConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When to stop sampling: the interval is narrow enough, or the budget is spent."""

    # Half-width of the speedup's 95 % interval to stop at, relative.
    precision: Positive = 0.005
    budget_s: Positive = 10.0
    # The interval covers from four pairs on.
    min_pairs: Annotated[int, msgspec.Meta(ge=4)] = 10
    max_pairs: Annotated[int, msgspec.Meta(ge=4)] = 200
    burst_ms: Positive = 5.0
    max_calls_per_burst: Count = 32
    # On a card. cold: every call reads its inputs from memory; warm: a burst's inputs fit the L2 and are left there.
    cache: Literal["cold", "warm"] = "cold"


class Check(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How hard to look at a candidate's numbers, beside every timed call."""

    # Calls on inputs derived from the problem's own: scaled, sorted, constant rows, one dominant element, ...
    stress: bool = True
    # The time for them, of each candidate; large problems get through some of the sets, in random order.
    stress_budget_s: Positive = 3.0


class ProvenanceConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose kernels may do the work, as one profiled call after timing shows it."""

    # auto: on the CPU, where it costs milliseconds, and on a card where a rule asks for it; always; never.
    profile: Literal["auto", "always", "never"] = "auto"
    # Least share of the device's time in the candidate's own kernels; 0 asks for none.
    min_own_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    # Whose kernels are refused: torch_fallback, cublas, third_party.
    forbid: list[Literal["torch_fallback", "cublas", "third_party"]] = msgspec.field(default_factory=list)

    @property
    def has_rules(self) -> bool:
        return bool(self.min_own_share or self.forbid)

    def wanted(self, device_kind: str) -> bool:
        """Whether candidates are profiled on a `cpu` or `cuda` device."""
        return self.profile == "always" or (self.profile == "auto" and (device_kind == "cpu" or self.has_rules))


class Limits(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Deadlines in seconds, after which a candidate is `timeout`, and memory, above which it is `out_of_memory`."""

    load_s: Positive = 120.0
    first_call_s: Positive = 120.0
    # A burst gets 10 s, or 100 times what the reference needs for it if that is more, but never more than this.
    call_s: Positive = 120.0
    # The whole evaluation of one candidate, compile excluded.
    total_s: Positive = 600.0
    # Host memory of one build or candidate, in units of 10^9 bytes; 0 means four fifths of what is free at the start.
    host_memory_gb: Annotated[float, msgspec.Meta(ge=0)] = 0.0


class Config(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run: a matrix of problems, variants, precisions and candidates, and how each job is carried out."""

    problems: list[str] = msgspec.field(default_factory=lambda: ["problems"])
    solutions: list[str] = msgspec.field(default_factory=lambda: ["solutions"])
    variants: list[str] = msgspec.field(default_factory=lambda: ["default"])
    # "default" is the problem's own PRECISION.
    precisions: list[str] = msgspec.field(default_factory=lambda: ["default"])
    include: list[Pattern] = []
    exclude: list[Pattern] = []
    # Sizes for problems that define none themselves: problem glob -> variant -> constant -> value.
    define_variants: dict[str, dict[str, dict[str, Any]]] = {}
    device: str = "auto"
    # What speedups are over: eager, compile, compile-max-autotune, cuda-graph or tf32.
    baseline: str = "eager"
    # More of them to show in the leaderboard, each timed like a candidate.
    baselines: list[str] = msgspec.field(default_factory=list)
    # Inputs are drawn from secret seeds, new for each run; an integer replays a run.
    seed: int | None = None
    out: str = ""
    # What builds and candidates are confined by: what this machine has (auto), all of it or no run (require), nothing.
    sandbox: Literal["auto", "require", "off"] = "auto"
    # Lower precisions that candidates may use without being refused: tf32, bf16, fp16.
    allow: list[str] = msgspec.field(default_factory=list)
    build: Build = Build()
    compile: Compile = Compile()
    check: Check = Check()
    provenance: ProvenanceConfig = ProvenanceConfig()
    timing: TimingConfig = TimingConfig()
    limits: Limits = Limits()


def load(path: Path, overrides: list[str] | None = None) -> Config:
    """The config in `path`, with `a.b=value` overrides (value in YAML) applied on top.

    Raises UsageError naming file, line, path and the nearest valid key.
    """
    try:
        text = path.read_text()
    except OSError as error:
        raise UsageError(f"cannot read the config {path}: {error.strerror}") from error
    try:
        node = yaml.compose(text)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise UsageError(f"{where}: not valid YAML: {getattr(error, 'problem', error)}") from error
    data = {} if data is None else data
    _check_keys(data, Config, node, str(path), "")
    for override in overrides or []:
        _apply_override(data, override)
    try:
        return _consistent(msgspec.convert(data, Config), path)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        keys = re.findall(r"\.?([^.\[\]`]+)", place.rstrip("`").replace("[...]", ""))
        raise UsageError(f"{path}:{_line(node, keys)}: {'.'.join(keys) or 'config'}: {message.lower()}") from error


def default_out(path: Path) -> str:
    """Where a config's run goes when nobody says otherwise; the same each time, so that a second call resumes."""
    return f"results/{path.stem}"


def _consistent(config: Config, path: Path) -> Config:
    for name in config.allow:
        if name not in ALLOWABLE:
            raise UsageError(f"{path}: allow: '{name}' is no precision to allow; {nearest(name, ALLOWABLE)}")
    if config.compile.arch and not re.fullmatch(r"\d{1,2}\.\d[af]?", config.compile.arch):
        raise UsageError(f"{path}: compile.arch: '{config.compile.arch}' is no architecture; write it like 9.0a or 8.6")
    if config.provenance.profile == "never" and config.provenance.has_rules:
        raise UsageError(f"{path}: provenance.profile: its rules need a profile, and 'never' takes none")
    if config.timing.max_pairs < config.timing.min_pairs:
        bounds = f"timing.max_pairs ({config.timing.max_pairs}) is below timing.min_pairs ({config.timing.min_pairs})"
        raise UsageError(f"{path}: {bounds}")
    return config


def _check_keys(data: Any, kind: Any, node: yaml.Node | None, file: str, prefix: str) -> None:
    """Unknown keys first, because msgspec names neither the line nor the nearest key."""
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
    for parent in parents:
        target = target.setdefault(parent, {})
        if not isinstance(target, dict):
            raise UsageError(f"--set {override}: '{parent}' holds a value, not a section")
    target[last] = yaml.safe_load(text)
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
