"""What a reader must know of a run before its figures: device, versions, conditions, sandbox. Plain text, unescaped."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from harness.records import Record
from harness.reports import text
from harness.store import listed

# Keys of the environment that are versions.
VERSIONS = ("torch", "cuda", "nvcc", "driver", "compiler", "python")
# Shown as code.
CODE = ("Commit", "Command")

# What the words of a leaderboard mean.
WORDS = {
    "Speedup": "baseline time over candidate time, measured side by side, with its 95 % interval. A candidate has one "
    "only if every timed call was checked and right.",
    "Rank #": "a candidate gets a lower rank only if its interval is wholly below that of the rank's first.",
    "Error": "the candidate's error divided by the reference's own at this precision, both against float64.",
    "geomean and fast_1": "they take the best passed candidate of each problem; a problem at another size or "
    "precision counts as a problem of its own. fast_1 is the share of problems with a candidate faster than the "
    "baseline; surely faster is one whose whole interval is above 1.",
    "Own kernels": "the share of device time in the candidate's own kernels, in one profiled call after timing. On a "
    "CPU it is the share of the call outside PyTorch's operators.",
}


def facts(manifest: Mapping[str, Any], records: Sequence[Record] | None = None) -> dict[str, str]:
    """Label to value, without what the manifest (the content of run.json, every key optional) does not say; with a
    run's `records` also how many of its jobs have none."""
    environment = manifest.get("environment") or {}
    versions = [f"{name} {_plain(environment[name])}" for name in VERSIONS if environment.get(name)]
    started, finished = manifest.get("started_at"), manifest.get("finished_at")
    command = manifest.get("command")
    sandbox = "; ".join(part for part in (_plain(environment.get("sandbox")), text.sandbox_note(manifest)) if part)
    said = {
        "Device": _device(environment),
        "Versions": ", ".join(versions),
        "Conditions": "; ".join(conditions(manifest.get("config") or {})),
        "Sandbox": sandbox,
        "Commit": _plain(environment.get("commit")),
        "Command": shlex.join(command) if isinstance(command, list) else _plain(command),
        "Run": f"{started} to {finished or 'now (not finished)'}" if started else "",
        "Not finished": listed.unfinished(records, manifest) if records is not None and listed.JOBS in manifest else "",
    }
    return {label: value for label, value in said.items() if value}


def conditions(config: Mapping[str, Any]) -> list[str]:
    """The settings that a reader must know before comparing a run's numbers with another's."""
    allowed = config.get("allow") or []
    timing, check = config.get("timing") or {}, config.get("check") or {}
    provenance = config.get("provenance") or {}
    told = {
        f"lower precision allowed: {', '.join(map(str, allowed))}": bool(allowed),
        "warm inputs": timing.get("cache") == "warm",
        f"at least {provenance.get('min_own_share')} of device time in own kernels": bool(
            provenance.get("min_own_share")
        ),
        f"forbidden: {', '.join(map(str, provenance.get('forbid') or []))}": bool(provenance.get("forbid")),
        "no hard inputs": check.get("stress") is False,
        f"seed {config.get('seed')}": config.get("seed") is not None,
    }
    return [text for text, holds in told.items() if holds]


def _device(environment: Mapping[str, Any]) -> str:
    name, kind = _plain(environment.get("device")), _plain(environment.get("device_kind"))
    return ", ".join(part for part in dict.fromkeys((name, kind)) if part)


def _plain(value: Any) -> str:
    """A manifest's value of any JSON type as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return "" if value is None else str(value)
