"""Draw which room of the harness imports which, from the code as it is: docs/rooms.md.

    python scripts/draw_rooms.py

Rooms stand from top to bottom as `tests/test_architecture.py` has them; an arrow is an import. Small files below the
line (records, errors, wording, config) are what nearly every room imports, and are left out.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.test_architecture import FILES, STEP, STEPS, imported_modules, room_of  # noqa: E402

EVERYBODYS = {"config", "records", "errors", "wording", "environment"}
UNTRUSTED, TRUSTED = {"runner", "reading"}, {"judge", "links", "oracle"}
HEAD = """# Rooms

Which folder or file of `harness/` imports which; drawn by `python scripts/draw_rooms.py`. No arrow goes up, and none
goes between rooms on one step: `tests/test_architecture.py` holds that. Red runs or reads what candidates wrote, green
judges it. {everybodys} are imported by nearly all, and are left out. What each room is
for, and the way of one candidate through them: [CONTRIBUTING.md](../CONTRIBUTING.md#how-the-code-is-organised).

"""


def edges() -> set[tuple[str, str]]:
    """Pairs of rooms of which the first imports the second."""
    found = set()
    for path in FILES:
        room = room_of(path)
        for module in imported_modules(path):
            parts = module.split(".")
            if parts[0] == "harness" and len(parts) > 1 and parts[1] != room:
                found.add((room, parts[1]))
    return {(above, below) for above, below in found if {above, below} <= set(STEP) - EVERYBODYS}


def page() -> str:
    """The page: a graph in Mermaid's words, which GitHub and most editors draw."""
    lines = ["```mermaid", "flowchart TD"]
    for number, rooms in enumerate(STEPS):
        if shown := sorted(rooms - EVERYBODYS):
            lines.append(f'  subgraph step{number}[" "]')
            lines += [f"    {room}" for room in shown]
            lines.append("  end")
    # Only what cannot be reached by way of another room: the others would hide the picture.
    direct = edges()
    lines += [f"  {above} --> {below}" for above, below in sorted(direct) if not _implied(above, below, direct)]
    lines += [
        "  classDef untrusted fill:#fbd5d5,stroke:#a33,color:#000",
        "  classDef trusted fill:#d5f0d5,stroke:#383,color:#000",
        f"  class {','.join(sorted(UNTRUSTED))} untrusted",
        f"  class {','.join(sorted(TRUSTED))} trusted",
        "```",
        "",
        "All imports, including those that the picture leaves out because another room lies between. `processes`",
        "imports `judge` and `runner` because the forking parent turns into them.",
        "",
        "| room | imports |",
        "|---|---|",
    ]
    for rooms in STEPS:
        for room in sorted(rooms - EVERYBODYS):
            below = ", ".join(sorted(other for one, other in direct if one == room))
            lines.append(f"| {room} | {below or 'nothing'} |")
    everybodys = ", ".join(f"`{name}`" for name in sorted(EVERYBODYS))
    return HEAD.format(everybodys=everybodys) + "\n".join(lines) + "\n"


def _implied(above: str, below: str, direct: set[tuple[str, str]]) -> bool:
    waiting = [other for one, other in direct if one == above and other != below]
    seen: set[str] = set()
    while waiting:
        room = waiting.pop()
        if room == below:
            return True
        if room not in seen:
            seen.add(room)
            waiting += [other for one, other in direct if one == room]
    return False


if __name__ == "__main__":
    (ROOT / "docs/rooms.md").write_text(page())
    print("docs/rooms.md")
