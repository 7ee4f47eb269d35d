"""What a build costs, in CPU-seconds (user and system) of its compilers: stock load_inline, ours, and from the cache.

    python benchmarks/compile_cost.py                       every source; about half an hour on two cores
    python benchmarks/compile_cost.py --only plain cpp_only
    python benchmarks/compile_cost.py --jobs 4              so many sources at a time, where there are cores enough
    python benchmarks/compile_cost.py --failing             builds that fail, over one that succeeds; ten minutes

Each source is built by both in turn, in a process and an empty folder of its own. Precompiled headers, which are made
once for a machine, are counted apart. With --failing, a row for each usual mistake: what ours and stock take, ours over
our build of the same source without the mistake, and whether the first error is the same. Needs nvcc, no card.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._sources import FAILING, NEED_CUDA_TORCH, SOURCES
from harness.compile import prepare, toolkit
from harness.compile.cache import Cache
from harness.compile.diagnostics import first_error
from harness.compile.tools import Tools, find_tools
from harness.environment import gpus, torch_build

ABSENT_LIBRARIES = ("c10_cuda", "torch_cuda", "cublas")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SOURCES, default=list(SOURCES))
    parser.add_argument("--jobs", type=int, default=1, help="sources at a time (1)")
    parser.add_argument("--arch", default="", help="as TORCH_CUDA_ARCH_LIST has it; default: the card's, or 9.0a")
    parser.add_argument("--failing", action="store_true", help="time builds that fail instead")
    parser.add_argument("--one", choices=[*SOURCES, *FAILING], help=argparse.SUPPRESS)
    parser.add_argument("--headers", choices=("lean", "stock"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--prepared", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arch = arguments.arch or _arch_of_the_card()
    if arguments.one:
        print(json.dumps(build(arguments.one, arguments.headers, arguments.folder, arguments.prepared, arch)))
        return
    names = [name for name in arguments.only if torch_build().cuda or name not in NEED_CUDA_TORCH]
    for name in set(arguments.only) - set(names):
        print(f"{name}: left out, the headers it needs come with a torch built with CUDA")
    if not names:
        sys.exit("nothing is left to build")
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.failing:
            compare_failing(Path(scratch), arch)
        else:
            compare(names, Path(scratch), arch, arguments.jobs)


def compare(names: list[str], scratch: Path, arch: str, jobs: int) -> None:
    """Print a row for each source, and the geometric means of the ratios."""
    tools = _tools(arch)
    before = _children_s()
    for name in names:
        prepared = prepare.prepared(prepare.wanted(repr(SOURCES[name]).encode()), scratch / "headers", tools)
    print(f"precompiled headers, once for a machine: {_children_s() - before:.1f} CPU-s")
    print(f"{'source':<16} {'stock':>8} {'ours':>8} {'ratio':>6} {'cached':>8}  how")
    ratios, cached_ratios, fallbacks = [], [], 0

    def both(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        stock = _in_a_process(name, "stock", scratch / f"{name}.stock", None, arch)
        return stock, _in_a_process(name, "lean", scratch / f"{name}.lean", prepared, arch)

    with ThreadPoolExecutor(jobs) as pool:
        for name, (stock, ours) in zip(names, pool.map(both, names), strict=True):
            cached_s = cached(Path(ours["library"]), tools.digest + name, scratch)
            fallbacks += ours["made"].startswith("stock")
            ratios.append(stock["cpu_s"] / ours["cpu_s"])
            cached_ratios.append(stock["cpu_s"] / cached_s)
            row = f"{name:<16} {stock['cpu_s']:>8.1f} {ours['cpu_s']:>8.1f} {ratios[-1]:>6.2f} {cached_s:>8.4f}"
            print(f"{row}  {ours['made']}", flush=True)
    print(f"cached_ratio={_geometric_mean(cached_ratios):.0f}")
    print(f"ratio={_geometric_mean(ratios):.2f} fallback={fallbacks}/{len(names)}")


def compare_failing(scratch: Path, arch: str) -> None:
    """Print a row for each mistake, and the worst of the ratios to the build without it."""
    prepared = prepare.prepared(prepare.wanted(repr(SOURCES["plain"]).encode()), scratch / "headers", _tools(arch))
    right = _in_a_process("plain", "lean", scratch / "right", prepared, arch)
    print(f"without a mistake: ours {right['cpu_s']:.1f} CPU-s")
    print(f"{'mistake':<18} {'stock':>8} {'ours':>8} {'of right':>8}  words")
    ratios = []
    for name in FAILING:
        stock = _in_a_process(name, "stock", scratch / f"{name}.stock", None, arch)
        ours = _in_a_process(name, "lean", scratch / f"{name}.lean", prepared, arch)
        ratios.append(ours["cpu_s"] / right["cpu_s"])
        same = "the same" if ours["error"] == stock["error"] else f"{ours['error']!r} in place of {stock['error']!r}"
        print(f"{name:<18} {stock['cpu_s']:>8.1f} {ours['cpu_s']:>8.1f} {ratios[-1]:>8.2f}  {same}", flush=True)
    print(f"worst_ratio={max(ratios):.2f}")


def _tools(arch: str) -> Tools:
    tools = find_tools(toolkit.find(), arch)
    if tools is None or not tools.nvcc:
        sys.exit("needs torch, a C++ compiler and nvcc")
    return tools


def build(name: str, headers: str, folder: Path, prepared: Path | None, arch: str) -> dict[str, object]:
    """Build one source in this process, and say what its compilers took, and the first error of one that fails."""
    from torch.utils import cpp_extension

    from harness.compile import extensions
    from harness.compile.ways import order

    found = toolkit.find()
    assert found is not None
    cpp_extension.CUDA_HOME = str(Path(found.nvcc).parents[1])
    stock = cpp_extension.load_inline
    builder = extensions.Builder(folder, "", ways=order.chosen(headers), prepared=prepared, arch=arch)
    if not torch_build().cuda:
        _without_cuda_libraries(folder)
    if not torch_build().cuda and name in SOURCES:
        # What such a torch lacks is missing at the latest when the library is opened.
        cpp_extension._import_module_from_library = lambda *_: None
    before = _children_s()
    if name in FAILING:
        with contextlib.suppress(Exception):
            builder(stock, {"name": f"bench_{name}", **FAILING[name]})
        (output,) = builder.failures.values()
        found = first_error(output, Path(__file__))
        return {"cpu_s": _children_s() - before, "error": f"{found.generated_line}: {found.text}"}
    builder(stock, {"name": f"bench_{name}", **SOURCES[name]})
    spent = _children_s() - before
    ((key, library),) = builder.libraries.items()
    return {"cpu_s": spent, "made": builder.made[key], "library": str(folder / library)}


def cached(library: Path, key: str, scratch: Path) -> float:
    """CPU-seconds of finding a library in the cache, verifying and copying it."""
    cache = Cache(scratch / "cache", 1 << 34)
    cache.store(key, {"digest": str(library)}, [])
    started = time.process_time()
    assert cache.fetch(key, scratch / "fetched" / library.stem) is not None
    return time.process_time() - started


def _in_a_process(name: str, headers: str, folder: Path, prepared: Path | None, arch: str) -> dict[str, object]:
    command = [sys.executable, __file__, "--one", name, "--headers", headers, "--folder", str(folder), "--arch", arch]
    done = subprocess.run(
        [*command, *(["--prepared", str(prepared)] if prepared else [])], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{name} does not build with {headers} headers:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _without_cuda_libraries(folder: Path) -> None:
    """Empty linker scripts in place of libraries that a torch built without CUDA does not have."""
    place = folder / "absent"
    place.mkdir(parents=True)
    for name in ABSENT_LIBRARIES:
        (place / f"lib{name}.so").write_text("/* not on this machine */\n")
    os.environ["LIBRARY_PATH"] = str(place)


def _arch_of_the_card() -> str:
    devices = gpus()[0]
    capability = devices[0].capability if devices else "9.0"
    return capability + "a" if capability.startswith("9.") else capability


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _geometric_mean(values: list[float]) -> float:
    return math.exp(sum(math.log(value) for value in values) / len(values))


if __name__ == "__main__":
    main()
