"""Problems whose answers have vectors with free signs."""

import pytest
import torch

from harness.config import CheckConfig, TimingConfig
from harness.judge import planning
from harness.judge.examiner import Examiner, InvalidReference
from harness.judge.reference import Reference
from harness.machine.card_turns import CardTurns
from harness.wire.messages import CandidateSource

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        u, s, v = torch.linalg.svd(x, full_matrices=False)
        return {returned}

def get_inputs():
    return [torch.randn(32, 24, 12)]

def get_init_inputs():
    return []
"""


def opened(tmp_path, returned):
    path = tmp_path / "problem.py"
    path.write_text(PROBLEM.format(returned=returned))
    reference = Reference(CandidateSource(path=str(path), entries=("Model",)), "float32", torch.device("cpu"), seed=7)
    plan = planning.workload(reference, TimingConfig(), 600.0)
    return Examiner(reference, (), CheckConfig(), plan, CardTurns())


@pytest.mark.parametrize("returned", ["u, s, v", "u", "torch.linalg.eigvals(x[:, :12])"])
def test_nobody_is_judged_by_vectors_of_which_float64_has_others(tmp_path, returned):
    with pytest.raises(InvalidReference, match="signs") as refused:
        opened(tmp_path, returned)
    assert refused.value.reason == "undetermined"


@pytest.mark.parametrize("returned", ["s", "u @ u.mT", "(u * s[..., None, :]) @ v"])
def test_what_does_not_hang_on_signs_is_judged(tmp_path, returned):
    assert opened(tmp_path, returned).meaningful
