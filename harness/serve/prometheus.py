"""What a Service counts, in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterator

from harness.records import Status
from harness.serve.fair_use import CardUse
from harness.serve.service import Service

MEDIA_TYPE = "text/plain; version=0.0.4"
COUNTERS = {
    "accepted": "Tasks accepted for evaluation.",
    "cached": "Submissions answered by an earlier result.",
    "refused": "Requests refused because the queue was full.",
    "expired": "Tasks that still waited at their deadline.",
    "cancelled": "Tasks that a client cancelled.",
}


def page(service: Service) -> str:
    """All metrics."""
    return "\n".join(_lines(service)) + "\n"


def _lines(service: Service) -> Iterator[str]:
    counts = dict(service.counts)
    for name, what in COUNTERS.items():
        yield from _metric(f"assay_{name}_total", "counter", what, {"": counts.get(name, 0)})
    ended = {f'{{status="{status}"}}': counts.get(f"status {status}", 0) for status in Status}
    yield from _metric("assay_evaluations_total", "counter", "Evaluations that ended, by status.", ended)
    gauges = {
        "assay_queue_tasks": ("Tasks that have not ended.", service.length),
        "assay_queue_limit": ("The largest number of such tasks.", service.settings.queue),
        "assay_devices": ("Devices that the service was started with.", len(service.evaluator.devices)),
        "assay_up": ("1 while a device is left to evaluate on.", int(service.evaluator.alive)),
    }
    for name, (what, value) in gauges.items():
        yield from _metric(name, "gauge", what, {"": value})
    uses = service.fair_use.uses()
    others = {_device(use): len(use.others) for use in uses if use.others is not None}
    held = {_device(use): int(use.held_since is not None) for use in uses}
    yield from _metric("assay_card_others", "gauge", "Other programs that compute on a card.", others)
    yield from _metric("assay_card_held", "gauge", "1 while no evaluation begins on a card, for their sake.", held)


def _device(use: CardUse) -> str:
    return f'{{device="{use.device}"}}'


def _metric(name: str, kind: str, what: str, values: dict[str, int]) -> Iterator[str]:
    yield f"# HELP {name} {what}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values.items():
        yield f"{name}{labels} {value}"
