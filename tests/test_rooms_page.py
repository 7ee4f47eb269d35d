"""The picture of the rooms is of the code as it is."""

from scripts import draw_rooms


def test_the_picture_is_of_this_code():
    assert (draw_rooms.ROOT / "docs/rooms.md").read_text() == draw_rooms.page(), "run: python scripts/draw_rooms.py"
