"""Who else computes on a service's cards: it slows no other program's training, nor measures beside it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from harness.environment import Device
from harness.errors import UsageError
from harness.machine import card_users
from harness.machine.card_users import CardUser

# How old an answer may be.
REFRESH_S = 1.0
# What a service that was killed has left behind on the card ends within this.
ENDING_S = 10.0

Look = Callable[[str], list[CardUser] | None]


class CardUse(msgspec.Struct, frozen=True, kw_only=True):
    """Of one card: the other programs on it, None where that cannot be told, and since when evaluations are held for
    them, in seconds since 1970; None where they are not held."""

    device: str
    others: list[CardUser] | None
    held_since: float | None


class FairUse:
    """Watches the cards among `devices`. Thread-safe; no answer is older than a second.

    Unless the operator shares them (`shared`), no evaluation begins on a card while others compute there.
    """

    def __init__(self, devices: Sequence[Device], shared: bool, look: Look = card_users.on_card) -> None:
        self.shared = shared
        self._cards = {device.spec: device.uuid for device in devices if device.kind == "cuda" and device.uuid}
        self._look = look
        self._lock = threading.Lock()
        self._known: dict[str, CardUse] = {}
        self._looked_s: dict[str, float] = {}

    def check_start(self, patience_s: float = ENDING_S) -> None:
        """Before the service uses its cards, so that all who are there are others. Raises UsageError."""
        if self.shared:
            return
        deadline_s = time.monotonic() + patience_s
        while found := self._all_users():
            if time.monotonic() > deadline_s:
                (spec, users), *_ = found.items()
                who = "; ".join(map(str, users[:5]))
                raise UsageError(
                    f"another program computes on {spec} ({who}); end it, name another card with --device, "
                    "or let the service share it with --share-card: times are then those of a busy card"
                )
            time.sleep(min(0.2, patience_s))

    def admits(self, device: Device) -> bool:
        """Whether an evaluation may begin on it now."""
        return self._use(device.spec).held_since is None if device.spec in self._cards else True

    def uses(self) -> list[CardUse]:
        """Of each card."""
        return [self._use(spec) for spec in self._cards]

    def _all_users(self) -> dict[str, list[CardUser]]:
        looks = {spec: self._look(uuid) for spec, uuid in self._cards.items()}
        return {spec: users for spec, users in looks.items() if users}

    def _use(self, spec: str) -> CardUse:
        with self._lock:
            now_s = time.monotonic()
            if spec not in self._known or now_s - self._looked_s[spec] > REFRESH_S:
                self._known[spec] = self._looked(spec)
                self._looked_s[spec] = now_s
            return self._known[spec]

    def _looked(self, spec: str) -> CardUse:
        others = card_users.others(self._look(self._cards[spec]), {os.getpid()})
        before = self._known.get(spec)
        held = before.held_since if before and before.held_since is not None else time.time()
        return CardUse(device=spec, others=others, held_since=held if others and not self.shared else None)
