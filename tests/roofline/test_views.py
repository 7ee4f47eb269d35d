import torch

from harness.roofline.views import Cover, disjoint, view_of


def test_views_that_cannot_meet():
    base = torch.empty(8, 32)
    left, right = view_of(base[:, :16]), view_of(base[:, 16:])
    assert disjoint(left, right)
    assert disjoint(view_of(base[:3]), view_of(base[3:]))
    assert not disjoint(view_of(base[:, :17]), right)
    assert not disjoint(view_of(base.T), left)
    cover = Cover()
    for view in (left, view_of(base[:, 8:24]), right, right):
        cover.add(view)
    assert cover.nbytes == base.nbytes
    cover = Cover()
    for view in (view_of(base[:2]), view_of(base)):
        cover.add(view)
    assert cover.nbytes == base.nbytes
