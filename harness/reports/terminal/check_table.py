"""The results of a check for the terminal, one block per candidate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.catalog.contract import Remark
from harness.catalog.facts import Diagnostic, ScreenFinding
from harness.compile.resources import Kernel
from harness.records import Outcome, Status
from harness.reports import text
from harness.reports.terminal import styles


class CheckRow(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate's check. `failures` are extensions without which it continues; `absent` counts functions by the
    library, missing on this machine, that has them."""

    candidate: str
    file: str
    problem: str = ""
    fault: Outcome | None = None
    errors: list[Diagnostic] = []
    remarks: list[Remark] = []
    findings: list[ScreenFinding] = []
    extensions: int = 0
    failures: list[str] = []
    kernels: list[Kernel] = []
    absent: dict[str, int] = {}
    wall_s: float = 0.0
    log: str = ""

    @property
    def verdict(self) -> str:
        """`ok`, `fails`, or `unsure`: this machine lacks what is needed to decide."""
        if any(remark.fatal for remark in self.remarks) or self.failures:
            return "fails"
        if self.fault is None:
            return "ok"
        return "unsure" if self.fault.status is Status.UNSUPPORTED else "fails"


STYLES = {"ok": styles.GOOD, "fails": styles.BAD, "unsure": styles.DOUBT}
INDENT = 7


def show(row: CheckRow, console: Console) -> None:
    """Print a line, and the details below it."""
    head = Text.assemble(
        (f"{row.verdict:<{INDENT}}", STYLES[row.verdict]), (text.clean(row.candidate), "bold"), f"  {_built(row)}"
    )
    console.print(head, highlight=False, soft_wrap=True)
    for part in _parts(row):
        console.print(Padding(part, (0, 0, 0, INDENT), expand=False), highlight=False)
    if row.errors and row.log:
        # Never wrapped, so that the path can be copied.
        console.print(Text(f"{'':{INDENT}}full output: {text.clean(row.log)}", style="dim"), soft_wrap=True)


def summary(rows: Sequence[CheckRow]) -> str:
    """Counts by verdict."""
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in STYLES}
    words = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    return f"{len(rows)} {'candidate' if len(rows) == 1 else 'candidates'}: {words}"


def _built(row: CheckRow) -> str:
    words = []
    if row.extensions:
        words.append(f"{row.extensions} {'extension' if row.extensions == 1 else 'extensions'}")
    if row.kernels:
        words.append(f"{len(row.kernels)} {'kernel' if len(row.kernels) == 1 else 'kernels'}")
    words = (
        words or ["nothing to compile"]
        if row.fault is None
        else [f"{row.fault.status} · {text.clean(row.fault.reason)}"]
    )
    return f"{', '.join(words)} · {row.wall_s:.1f} s"


def _parts(row: CheckRow) -> Iterator[RenderableType]:
    for error in row.errors:
        yield from _error(error, row.file)
    for failure in row.failures:
        yield Text.assemble(("continues without an extension: ", styles.BAD), text.clean(failure))
    if row.kernels:
        yield _kernels(row.kernels)
    for kernel in row.kernels:
        if kernel.spills:
            what = f"keeps values in local memory, because its {kernel.registers} registers are not enough"
            yield Text.assemble(("spills: ", styles.DOUBT), f"{_short(kernel.name)} {what}")
    if row.absent:
        yield Text(_absent(row.absent), style="dim")
    for remark in row.remarks:
        yield Text.assemble(
            ("contract: ", styles.BAD if remark.fatal else ""), _at(row.file, remark.line), text.clean(remark.text)
        )
    for finding in row.findings:
        if finding.warning:
            head = f"{finding.kind}: ", styles.DOUBT
            yield Text.assemble(head, _at(row.file, finding.line), text.clean(finding.text))
    # For information only, so the findings of a kind share a line.
    for kind in dict.fromkeys(finding.kind for finding in row.findings if not finding.warning):
        found = [finding for finding in row.findings if finding.kind == kind and not finding.warning]
        words = ", ".join(f"{text.clean(finding.text)} ({finding.line})" for finding in found)
        yield Text.assemble((f"{kind}: ", "dim"), words)


def _error(error: Diagnostic, file: str) -> Iterator[RenderableType]:
    where = _at(file, error.line)
    if not where and error.generated_file:
        where = f"{text.clean(file)} ({text.clean(error.generated_file)}:{error.generated_line}): "
    yield Text.assemble(where, (text.clean(error.text), styles.BAD))
    if error.source_line:
        yield Padding(Text(f"| {text.clean(error.source_line)}"), (0, 0, 0, 2), expand=False)
    if error.hint:
        yield Padding(Text.assemble(("hint: ", styles.GOOD), text.clean(error.hint)), (0, 0, 0, 2), expand=False)


def _kernels(kernels: Sequence[Kernel]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("kernel", overflow="fold")
    for title in ("registers", "shared", "stack", "spill stores", "spill loads"):
        table.add_column(title, justify="right", no_wrap=True)
    for kernel in kernels:
        spilt = styles.DOUBT if kernel.spills else ""
        table.add_row(
            Text(_short(kernel.name)),
            str(kernel.registers),
            _bytes(kernel.shared_bytes),
            _bytes(kernel.stack_bytes),
            Text(_bytes(kernel.spill_store_bytes), style=spilt),
            Text(_bytes(kernel.spill_load_bytes), style=spilt),
        )
    return table


def _bytes(count: int) -> str:
    return f"{count} B" if count else "0"


def _short(name: str) -> str:
    """A demangled name without return type, parameters and `(anonymous namespace)`."""
    name = text.clean(name).replace("(anonymous namespace)::", "")
    depth = 0
    for place in range(len(name) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(name[place], 0)
        if depth == 0:
            name = name[:place] if name.endswith(")") else name
            break
    return re.sub(r"^void ", "", name)


def _absent(absent: dict[str, int]) -> str:
    libraries = ", ".join(f"{text.clean(name)} ({count})" for name, count in sorted(absent.items()))
    return (
        f"loaded with stand-ins for functions of {libraries}, which this machine lacks; on a machine with a GPU, "
        "PyTorch and CUDA provide them"
    )


def _at(file: str, line: int) -> str:
    return f"{text.clean(file)}:{line}: " if line else ""
