"""The source screen: what a reader should know about a candidate's source, line by line, before it runs. No torch.

It reads the syntax tree, so words in comments and docstrings do not count, and it follows import aliases. It explains
and never rejects: a candidate can hide from it, and the judge does not rely on it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from harness import wording
from harness.catalog.facts import LONGEST_TEXT, MOST_FINDINGS, ScreenFinding
from harness.integrity import cxx
from harness.integrity.names import Names, joined
from harness.integrity.spans import Places, Spans

# Dotted name, or its beginning -> kind, whether it warns, sentence.
MODULES = {
    "ctypes": ("reach", True, "imports ctypes: reads and writes any memory of its process"),
    "gc": ("reach", True, "imports gc: finds objects that were not passed to it"),
    "inspect": ("reach", True, "imports inspect: reads its callers"),
    "socket": ("reach", True, "imports socket: uses the network"),
    "urllib": ("reach", True, "imports urllib: uses the network"),
    "requests": ("reach", True, "imports requests: uses the network"),
    "subprocess": ("thread", True, "imports subprocess: starts processes"),
    "multiprocessing": ("thread", True, "imports multiprocessing: starts processes"),
    "threading": ("thread", True, "imports threading: works outside the calling thread"),
    "concurrent.futures": ("thread", True, "imports concurrent.futures: works outside the calling thread"),
    "asyncio": ("thread", True, "imports asyncio: may work after forward has returned"),
    "signal": ("reach", True, "imports signal: may run code at any moment"),
    "atexit": ("reach", True, "imports atexit: runs code while its process ends"),
    "mmap": ("reach", True, "imports mmap: accesses files or shared memory"),
    "unittest.mock": ("patch", True, "imports unittest.mock: replaces what other modules define"),
    "harness": ("reach", True, "imports the harness itself"),
}
USES = {
    "sys._getframe": ("reach", True, "sys._getframe: reads its callers' variables"),
    "sys.modules": ("reach", True, "sys.modules: accesses modules that it did not import"),
    "sys.settrace": ("reach", True, "sys.settrace: observes or changes other code while it runs"),
    "sys.setprofile": ("reach", True, "sys.setprofile: observes other code while it runs"),
    "sys.exit": ("reach", True, "sys.exit: ends its process"),
    "os.environ": ("switch", True, "os.environ: reads or changes the process's environment"),
    "os.putenv": ("switch", True, "os.putenv: changes the process's environment"),
    "os.system": ("thread", True, "os.system: starts a process"),
    "os.popen": ("thread", True, "os.popen: starts a process"),
    "os.fork": ("thread", True, "os.fork: starts a process"),
    "os.kill": ("reach", True, "os.kill: sends a signal to a process"),
    "os._exit": ("reach", True, "os._exit: ends its process at once"),
    "os.remove": ("reach", True, "os.remove: deletes files"),
    "builtins.exec": ("reach", True, "exec: runs text as code, which this screen cannot read"),
    "builtins.eval": ("reach", True, "eval: runs text as code, which this screen cannot read"),
    "builtins.globals": ("reach", True, "globals(): may change any name of its module"),
    "time.sleep": ("stream", True, "time.sleep: waits"),
    "torch.set_default_dtype": ("switch", True, "torch.set_default_dtype: later tensors have another dtype"),
    "torch.set_default_device": ("switch", True, "torch.set_default_device: later tensors are on another device"),
    "torch.set_float32_matmul_precision": ("switch", True, "allows lower precision in PyTorch's matrix products"),
    "torch.manual_seed": ("switch", True, "torch.manual_seed: sets the generator that random operations draw from"),
    "torch.cuda.manual_seed": ("switch", True, "torch.cuda.manual_seed: sets the GPU's generator"),
    "torch.cuda.manual_seed_all": ("switch", True, "torch.cuda.manual_seed_all: sets all GPUs' generators"),
    "torch.set_num_threads": ("switch", True, "torch.set_num_threads: changes how many cores PyTorch uses"),
    "torch.set_grad_enabled": ("switch", True, "torch.set_grad_enabled: changes whether PyTorch records gradients"),
    "torch.use_deterministic_algorithms": ("switch", True, "changes which algorithms PyTorch may choose"),
    "torch.cuda.Stream": ("stream", False, "torch.cuda.Stream: runs work on a stream of its own"),
    "torch.cuda.stream": ("stream", False, "torch.cuda.stream: runs work on a stream of its own"),
    "torch.cuda.ExternalStream": ("stream", False, "torch.cuda.ExternalStream: runs work on a stream of its own"),
    "torch.cuda.CUDAGraph": ("stream", False, "torch.cuda.CUDAGraph: replays captured work"),
    "torch.cuda.graph": ("stream", False, "torch.cuda.graph: replays captured work"),
    "torch.cuda.make_graphed_callables": ("stream", False, "make_graphed_callables: replays captured work"),
    "torch.cuda.synchronize": (
        "stream",
        False,
        "torch.cuda.synchronize: waits for the device, so its calls cannot be "
        "enqueued ahead and are timed with launch latency",
    ),
    "torch.compile": ("library", False, "torch.compile: PyTorch's own compiler does the work"),
}
# Modules that candidates should not change.
FOREIGN = ("torch", "time", "sys", "os", "builtins", "numpy", "gc", "math", "random", "functools")
COMPILERS = ("torch.utils.cpp_extension.load_inline", "torch.utils.cpp_extension.load")
# Functions of torch that compute nothing.
PLUMBING = frozenset(
    (
        *("empty", "empty_like", "empty_strided", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like"),
        *("tensor", "as_tensor", "from_numpy", "arange", "device", "dtype", "as_strided", "numel", "is_tensor"),
        *("no_grad", "inference_mode", "enable_grad", "set_grad_enabled", "finfo", "iinfo", "typename", "compile"),
    )
)
# Methods of tensors that do the work of a kernel.
METHODS = frozenset(
    ("matmul", "mm", "bmm", "addmm", "baddbmm", "softmax", "log_softmax", "einsum", "conv1d", "conv2d", "layer_norm")
)


TOO_DEEP = ScreenFinding(line=1, kind="reach", text="nested too deeply to be read", warning=True)

Nodes = list[ast.AST]


def screen(nodes: Nodes) -> list[ScreenFinding]:
    """All findings in a candidate's syntax tree, given as all its nodes in `ast.walk`'s order; sorted by line.

    A repeated finding is kept only for its first line. Of too many the first warnings are kept, and then others, and a
    last one says how many were left out.
    """
    try:
        found = _everything(nodes)
    except (RecursionError, MemoryError):
        return [TOO_DEEP]
    first: dict[tuple[str, str], ScreenFinding] = {}
    for finding in sorted(found):
        text = wording.plain(finding.text, LONGEST_TEXT, kept="")
        first.setdefault((finding.kind, text), msgspec.structs.replace(finding, text=text))
    kept = sorted(first.values(), key=lambda finding: (not finding.warning, finding))
    if len(kept) > MOST_FINDINGS:
        left_out = kept[MOST_FINDINGS - 1 :]
        text = f"{len(left_out)} findings are left out"
        kept[MOST_FINDINGS - 1 :] = [ScreenFinding(line=1, kind="reach", text=text, warning=True)]
    return sorted(kept)


def _everything(nodes: Nodes) -> list[ScreenFinding]:
    names = Names(nodes)
    found = [*_imports(nodes), *_uses(nodes, names), *_assignments(nodes, names), *_calls(nodes, names)]
    spans = Spans(nodes[0])
    calls = Places((place, node) for place, node in enumerate(spans.nodes) if isinstance(node, ast.Call))
    operations = Places((place, name) for place, call in calls if (name := _operation(call, names)))
    found += _fallbacks(nodes, spans, calls, operations, names)
    return [*found, *_library_ops(spans, operations), *_strings(nodes)]


def _imports(nodes: Nodes) -> Iterator[ScreenFinding]:
    for node in nodes:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        modules = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            modules = [node.module or "", *(joined(node.module or "", name) for name in modules)]
        for module in modules:
            for name, (kind, warning, text) in MODULES.items():
                if module == name or module.startswith(f"{name}."):
                    yield ScreenFinding(line=node.lineno, kind=kind, text=text, warning=warning)


def _uses(nodes: Nodes, names: Names) -> Iterator[ScreenFinding]:
    for node in nodes:
        if isinstance(node, ast.Attribute | ast.Name | ast.Call):
            dotted = names.of(node)
            if dotted in USES:
                kind, warning, text = USES[dotted]
                yield ScreenFinding(line=node.lineno, kind=kind, text=text, warning=warning)


def _assignments(nodes: Nodes, names: Names) -> Iterator[ScreenFinding]:
    """Attributes of foreign modules that are set, deleted or passed to setattr."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield from _set(names.of(node), node.lineno)
        elif (
            isinstance(node, ast.Call) and names.of(node.func) in ("builtins.setattr", "builtins.delattr") and node.args
        ):
            owner = names.of(node.args[0])
            if owner.partition(".")[0] in FOREIGN:
                yield from _set(f"{owner}.{_literal(node.args[1:]) or '...'}", node.lineno)


def _set(dotted: str, line: int) -> Iterator[ScreenFinding]:
    if dotted.startswith("torch.backends."):
        yield ScreenFinding(line=line, kind="switch", text=f"sets {dotted} for the whole process", warning=True)
    elif dotted.partition(".")[0] in FOREIGN:
        yield ScreenFinding(line=line, kind="patch", text=f"replaces {dotted}", warning=True)


def _calls(nodes: Nodes, names: Names) -> Iterator[ScreenFinding]:
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        called = names.of(node.func)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if called in ("builtins.open", "io.open") and set(_mode(node)) & set("wax+"):
            yield ScreenFinding(line=node.lineno, kind="reach", text="opens a file for writing", warning=True)
        elif method in ("write_text", "write_bytes"):
            yield ScreenFinding(line=node.lineno, kind="reach", text=f"{method}: writes a file", warning=True)
        elif called in ("builtins.__import__", "importlib.import_module"):
            text = f"imports {_literal(node.args) or 'a module that it computes'} by name"
            yield ScreenFinding(line=node.lineno, kind="reach", text=text, warning=True)
        elif method == "data_ptr":
            text = "data_ptr in Python: may distinguish tensors by their address"
            yield ScreenFinding(line=node.lineno, kind="cache", text=text, warning=True)


def _literal(arguments: list[ast.expr]) -> str:
    """The first argument, if it is a string literal."""
    first = arguments[0] if arguments else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


def _mode(call: ast.Call) -> str:
    mode: ast.expr | None = call.args[1] if len(call.args) > 1 else None
    mode = next((keyword.value for keyword in call.keywords if keyword.arg == "mode"), mode)
    return _literal([mode]) if mode else ""


def _fallbacks(
    nodes: Nodes, spans: Spans, calls: Places[ast.Call], operations: Places[str], names: Names
) -> Iterator[ScreenFinding]:
    compilers = Places((place, True) for place, call in calls if names.of(call.func) in COMPILERS)
    raising = Places((place, True) for place, node in enumerate(spans.nodes) if isinstance(node, ast.Raise))
    for node in nodes:
        if not isinstance(node, ast.Try):
            continue
        tried = spans.of(node.body)
        for handler in node.handlers:
            handled = spans.of(handler.body)
            operation = operations.first(handled)
            if operation and calls.first(tried):
                text = f"except: falls back to {operation}, so an error in its own code goes unnoticed"
                yield ScreenFinding(line=handler.lineno, kind="fallback", text=text, warning=True)
            elif compilers.first(tried) and not raising.first(handled):
                text = "except: continues without its extension if that does not compile"
                yield ScreenFinding(line=handler.lineno, kind="fallback", text=text, warning=True)


def _library_ops(spans: Spans, operations: Places[str]) -> Iterator[ScreenFinding]:
    """PyTorch's operations that `forward` calls; for information, because most candidates have some."""
    called, end = dict(operations), 0
    for place, node in enumerate(spans.nodes):
        if isinstance(node, ast.FunctionDef) and node.name == "forward":
            end = max(end, spans.of([node])[1])
        if place >= end:
            continue
        if isinstance(node, ast.Call) and place in called:
            yield ScreenFinding(line=node.lineno, kind="library", text=f"forward calls {called[place]}")
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield ScreenFinding(line=node.lineno, kind="library", text="forward multiplies matrices with @")


def _operation(call: ast.Call, names: Names) -> str:
    """PyTorch's name for what is called, if it computes anything; for a module kept by `__init__`, its class."""
    held = names.held(call.func)
    if held:
        return "" if held.startswith(COMPILERS) else held
    dotted = names.of(call.func)
    parts = dotted.split(".")
    if parts[0] == "torch":
        deep_enough = len(parts) == 2 or parts[1] in ("nn", "special", "linalg", "fft", "ops", "Tensor")
        return dotted if deep_enough and parts[-1] not in PLUMBING and parts[-1][:1].islower() else ""
    if dotted or not isinstance(call.func, ast.Attribute) or call.func.attr not in METHODS or _on_self(call.func):
        return ""
    made = names.made(call.func.value)
    return "" if made and made <= set(COMPILERS) else f"Tensor.{call.func.attr}"


def _on_self(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "self"


def _strings(nodes: Nodes) -> Iterator[ScreenFinding]:
    """Findings in C++ and CUDA texts. Docstrings are prose."""
    prose = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            # One text with a word for each value: the pieces alone make no sense.
            pieces = [piece.value if isinstance(piece, ast.Constant) else "value" for piece in node.values]
            prose |= {id(piece) for piece in node.values}
            code = "".join(str(piece) for piece in pieces)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            code = node.value
        else:
            continue
        if cxx.looks_like_code(code):
            for line, kind, text, warning in cxx.remarks(code):
                yield ScreenFinding(line=node.lineno + line, kind=kind, text=text, warning=warning)
