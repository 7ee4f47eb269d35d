"""How deep values are nested at the most, a candidate's and a reference's."""

from __future__ import annotations

DEEPEST = 16
TOO_DEEP = f"nesting deeper than {DEEPEST}"
