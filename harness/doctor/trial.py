"""Whether this machine's verdicts are right: candidates whose verdicts are known, evaluated on each of its devices."""

from __future__ import annotations

from collections.abc import Iterable

from harness import environment
from harness.catalog import starting_points
from harness.config import Config, TimingConfig
from harness.doctor.examination import Diagnosis
from harness.environment import Device
from harness.errors import UsageError
from harness.evaluator.evaluator import Evaluator
from harness.records import Record, Status
from harness.reports import text

# The problem that `new problem` writes: relu(x) * scale.
PROBLEM = starting_points.PROBLEM.format(name="scaled_relu")
MODEL = """
class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(columns))

    def forward(self, x):
        return {answer}
"""
PLAIN = f'"""{{about}}"""\nimport torch\nfrom torch import nn\n{MODEL}'
EXTENSION = '''"""The reference's answer, by a kernel of its own."""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

extension = load_inline("doctor_scaled_relu", r"""
{cpp}""", {cuda}functions=["scaled_relu"])
'''
CPP = """#include <ATen/ATen.h>
at::Tensor scaled_relu(const at::Tensor& x, const at::Tensor& scale) {
  at::Tensor out = at::empty_like(x);
  const float *from = x.const_data_ptr<float>(), *factor = scale.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = (from[i] < 0 ? 0 : from[i]) * factor[i % scale.numel()];
  return out;
}
"""
CUDA_DECLARED = "at::Tensor scaled_relu(const at::Tensor& x, const at::Tensor& scale);\n"
CUDA = """#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
__global__ void kernel(const float* x, const float* scale, float* out, int64_t n, int64_t columns) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (x[i] < 0 ? 0 : x[i]) * scale[i % columns];
}
at::Tensor scaled_relu(const at::Tensor& x, const at::Tensor& scale) {
  at::Tensor out = at::empty_like(x);
  kernel<<<(x.numel() + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), scale.const_data_ptr<float>(), out.mutable_data_ptr<float>(), x.numel(),
      scale.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""
WITH_KERNEL = MODEL.format(answer="extension.scaled_relu(x, self.scale)")
RIGHT = {
    "CUDA": EXTENSION.format(cpp=CUDA_DECLARED, cuda=f'r"""\n{CUDA}""", ') + WITH_KERNEL,
    "C++": EXTENSION.format(cpp=CPP, cuda="") + WITH_KERNEL,
    "PyTorch": PLAIN.format(about="The reference's answer.", answer="torch.relu(x) * self.scale"),
}
WRONG = PLAIN.format(about="Leaves out the scale.", answer="torch.relu(x)")
CHEAT = (
    PLAIN.format(
        about="Computes once for each place that inputs lie at, and then says the same again.",
        answer="self.known(x, lambda: torch.relu(x) * self.scale)",
    )
    + """
    answers = {}

    def known(self, x, compute):
        if x.data_ptr() not in self.answers:
            self.answers[x.data_ptr()] = compute()
        return self.answers[x.data_ptr()]
"""
)
# Enough for a verdict; nobody reads the speedup.
QUICK = TimingConfig(budget_s=2.0, precision=0.05)
DEADLINE_S = 600.0
UNEXPECTED = "unexpected"
REPORT = "do not rely on this machine's verdicts, and report this with what `doctor --try --json` prints"


def try_out(examined: Iterable[Diagnosis], config: Config | None = None) -> list[Diagnosis]:
    """Evaluate a right candidate, a wrong one and a cheat on each device; a line for each, as the doctor's own.

    The right one is compiled as far as `examined` says that this machine can compile. Takes about half a minute a
    device.
    """
    missing = {one.name for one in examined if not one.ok}
    config = config or Config(timing=QUICK)
    try:
        devices = environment.choose_devices(config.device)
    except UsageError as error:
        return [_told("devices", str(error), heading="")]
    return [line for device in devices for line in _tried_on(device, _language(device, missing), config)]


def conclusion(tried: Iterable[Diagnosis]) -> str:
    """What the verdicts say of this machine, in one sentence."""
    wrong = [f"{one.name} ({one.heading})" for one in tried if not one.ok]
    if wrong:
        return f"Verdicts of this machine are not to be relied on; unexpected: {', '.join(wrong)}."
    return "All candidates with known verdicts got them."


def _language(device: Device, missing: set[str]) -> str:
    if missing & {"C++ compiler", "ninja"}:
        return "PyTorch"
    return "CUDA" if device.kind == "cuda" and "nvcc" not in missing else "C++" if device.kind == "cpu" else "PyTorch"


def _tried_on(device: Device, language: str, config: Config) -> list[Diagnosis]:
    heading = f"{device.spec}: candidates with known verdicts"
    candidates = {f"a right one in {language}": RIGHT[language], "a wrong one": WRONG, "a cheat": CHEAT}
    try:
        with Evaluator(config, devices=[device.spec]) as evaluator:
            futures = {
                name: evaluator.submit(PROBLEM, source, variant="small", deadline_s=DEADLINE_S)
                for name, source in candidates.items()
            }
            records = {name: future.result() for name, future in futures.items()}
    except UsageError as error:
        return [_told("evaluation", str(error), heading)]
    return [_judged(name, record, heading) for name, record in records.items()]


def _judged(name: str, record: Record, heading: str) -> Diagnosis:
    """A right one passes; a wrong one and a cheat are refused, and did not just fail."""
    wanted = {Status.PASSED} if name.startswith("a right") else {Status.INCORRECT, Status.REJECTED}
    said = text.speedup(record) if record.status is Status.PASSED else record.reason
    told = " · ".join(part for part in (record.status, said) if part)
    if record.status in wanted:
        return Diagnosis(name, True, told, heading=heading)
    expected = " or ".join(sorted(wanted))
    return _told(name, f"{told} · {text.clean(record.message)} (expected: {expected})", heading)


def _told(name: str, found: str, heading: str) -> Diagnosis:
    return Diagnosis(name, False, found, REPORT, vital=True, heading=heading, lack=UNEXPECTED)
