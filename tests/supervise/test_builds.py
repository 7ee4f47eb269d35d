"""Builds through an untrusted process: what a second one costs, and what a hostile one can reach."""

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from harness import session
from harness.compile import tools
from harness.compile.precompiled import Precompiled
from harness.config import BuildConfig, CompileConfig
from harness.environment import Device, choose_devices
from harness.execution.tasks import build_key
from harness.records import Status
from harness.store import cache_folder
from harness.supervise import builds
from harness.supervise.builds import Workshop
from harness.supervise.recording import build_name
from tests.conftest import corpus_config
from tests.processes.test_processes import TidyNursery

HEAD = '"""Caption."""\nimport os, sys, time\nfrom torch.utils.cpp_extension import load_inline\n'
ONE = (
    "load_inline(name='tail', cpp_sources='torch::Tensor tail(torch::Tensor x) { return x.tanh(); }', functions='tail')"
)
HONEST = f"{HEAD}{ONE}\n"


class NoNursery:
    """Fails the test that starts a process."""

    def start(self, *arguments, **options):
        raise AssertionError("a build process was started")


@pytest.fixture
def nursery():
    made = TidyNursery()
    yield made
    made.close()


@pytest.fixture
def job_of(tmp_path):
    """A job for a candidate with this source, under this name."""

    def make(name, source):
        folder = tmp_path / "solutions/toy/scale"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(source)
        config = msgspec.structs.replace(corpus_config(name), solutions=[str(folder)])
        (job,) = session.plan(config).jobs
        return job

    return make


def workshop(tmp_path, timeout_s=120.0, device=None, **settings):
    # Headers are shared with other tests; what is built is not.
    settings = {"cache_dir": str(tmp_path / "cache")} | settings
    config = corpus_config(build=BuildConfig(timeout_s=timeout_s), compile=CompileConfig(**settings))
    made = Workshop(device or choose_devices("cpu")[0], config)
    made._headers = cache_folder.part(cache_folder.HEADERS)
    return made


def kept(tmp_path):
    return [path.parent.name for path in (tmp_path / "cache/builds").rglob("entry.json")]


def test_the_same_source_is_compiled_once_across_runs_and_names(tmp_path, nursery, job_of):
    first = workshop(tmp_path).build(job_of("one", HONEST), nursery, tmp_path / "a", tmp_path / "a.log")
    assert (first.fault, first.warnings) == (None, [])
    assert "lean headers" in (tmp_path / "a.log").read_text()
    (tmp_path / "bashrc").write_text("the user's")
    (tmp_path / "b.log").symlink_to(tmp_path / "bashrc")
    second = workshop(tmp_path).build(job_of("two", HONEST), NoNursery(), tmp_path / "b", tmp_path / "b.log")
    assert "cache" in (tmp_path / "b.log").read_text()
    assert (tmp_path / "bashrc").read_text() == "the user's"
    assert second.libraries.keys() == first.libraries.keys()
    (library,), (copy,) = first.libraries.values(), second.libraries.values()
    assert Path(copy).read_bytes() == Path(library).read_bytes()
    assert Path(copy).name == Path(library).name
    assert Path(copy).is_relative_to(tmp_path / "b")
    # Torn in the cache, it is compiled again.
    for path in (tmp_path / "cache/builds").rglob("*.so"):
        path.write_bytes(b"")
    with pytest.raises(AssertionError, match="a build process was started"):
        workshop(tmp_path).build(job_of("two", HONEST), NoNursery(), tmp_path / "c", tmp_path / "c.log")


def test_a_build_that_begins_after_the_end_leaves_nothing(tmp_path, job_of):
    """Its folder is below one that is removed at the end, and must not be made again."""
    with pytest.raises(FileNotFoundError):
        workshop(tmp_path).build(job_of("one", HONEST), NoNursery(), tmp_path / "gone/1", tmp_path / "a.log")
    assert not (tmp_path / "gone").exists()


def test_a_key_changes_with_what_a_library_depends_on(tmp_path, job_of, monkeypatch):
    job = job_of("one", HONEST)
    key = workshop(tmp_path).cache_key(job)
    assert workshop(tmp_path).cache_key(job_of("other_name", HONEST)) == key
    assert workshop(tmp_path).cache_key(job_of("changed", HONEST + "\n")) != key
    assert workshop(tmp_path, headers="stock").cache_key(job) != key
    assert workshop(tmp_path, arch="8.6").cache_key(job) != key
    placed = HONEST + "\nHERE = __file__\n"
    assert workshop(tmp_path).cache_key(job_of("here", placed)) != workshop(tmp_path).cache_key(job_of("there", placed))
    cards = [choose_devices("cpu")[0], msgspec.structs.replace(choose_devices("cpu")[0], name="another")]
    assert len({workshop(tmp_path).cache_key(job, card) for card in (None, *cards)}) == 3
    monkeypatch.setattr(tools, "_own_digest", lambda: "other headers")
    assert workshop(tmp_path).cache_key(job) != key


LATER = f"""{HEAD}
import torch
class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        BEFORE
        {ONE.replace("functions=", "extra_cflags=[f'-DFEATURES={features}'], functions=")}
"""


def test_a_constructor_compiles_with_real_tensors_for_the_size_of_the_job(tmp_path, nursery, job_of):
    source = LATER.replace("BEFORE", "assert torch.ones(features).numpy().sum() == features")
    job = job_of("later", source)
    shop = workshop(tmp_path)
    built = shop.build(job, nursery, tmp_path / "a", tmp_path / "a.log")
    assert (built.fault, built.unconstructed, len(built.libraries)) == (None, "", 1)
    wide = msgspec.structs.replace(job, variant="wide", overrides={"columns": 200})
    other = shop.build(wide, nursery, tmp_path / "b", tmp_path / "b.log")
    assert (other.fault, len(other.libraries)) == (None, 1)
    assert other.libraries.keys() != built.libraries.keys()


def test_what_a_constructor_raised_is_told_and_not_kept(tmp_path, nursery, job_of):
    source = LATER.replace("BEFORE", "torch.ones(features).cuda()") + f"{ONE}\n"
    built = workshop(tmp_path).build(job_of("later", source), nursery, tmp_path / "a", tmp_path / "a.log")
    assert (built.fault, len(built.libraries)) == (None, 1)
    assert "CUDA" in built.unconstructed
    assert kept(tmp_path) == []


def test_a_build_without_a_card_says_that_the_runner_will_have_one(tmp_path, nursery, job_of):
    device = Device(kind="cuda", spec="cuda:0", name="made up", capability="9.0")
    compiles = job_of("one", LATER.replace("BEFORE", "assert torch.cuda.get_device_name() == 'made up'"))
    built = workshop(tmp_path, device=device).build(compiles, nursery, tmp_path / "a", tmp_path / "a.log")
    assert (built.fault, built.unconstructed, len(built.libraries)) == (None, "", 1)
    # What does not compile where there is a card is not hidden by what a file does without one.
    source = LATER.replace("BEFORE", "if not torch.cuda.is_available(): return").replace(
        "return x", "return named_nowhere"
    )
    broken = workshop(tmp_path, device=device).build(job_of("b", source), nursery, tmp_path / "b", tmp_path / "b.log")
    assert broken.fault.status is Status.COMPILE_ERROR


EXCUSE = """
import json, os, socket, struct
outcome = {"status": "unsupported", "reason": "needs_cuda", "message": "no GPU"}
message = json.dumps({"type": "BuildFailed", "outcome": outcome}).encode()
for number in range(3, 64):
    try:
        with socket.socket(fileno=os.dup(number)) as channel:
            channel.send(struct.pack("<I", len(message)) + message)
    except OSError:
        pass
"""


def test_no_build_says_that_a_machine_with_a_gpu_has_none(tmp_path, nursery, job_of):
    card = msgspec.structs.replace(choose_devices("cpu")[0], kind="cuda")
    job = job_of("excused", HONEST + EXCUSE)
    built = workshop(tmp_path, device=card, arch="9.0").build(job, nursery, tmp_path / "a", tmp_path / "a.log")
    assert (built.fault.status, built.fault.reason) == (Status.REJECTED, "protocol")


def test_only_where_a_constructor_may_compile_the_size_matters(tmp_path, job_of):
    def keys(source):
        job = job_of("one", source)
        wide = msgspec.structs.replace(job, variant="wide", overrides={"columns": 200})
        return {(workshop(tmp_path).cache_key(one), build_key(one), build_name(one)) for one in (job, wide)}

    assert len(keys(HONEST)) == 1
    assert [len(set(kind)) for kind in zip(*keys(LATER.replace("BEFORE", "pass")), strict=True)] == [2, 2, 2]


def test_a_name_does_not_lead_to_another_candidate_s_log(job_of):
    by_size = msgspec.structs.replace(job_of("one", LATER.replace("BEFORE", "pass")), variant="wide", overrides={})
    assert build_name(by_size) != build_name(job_of("wide.one", HONEST))


FORGER = """
import gc
from harness.compile import extensions
for made in gc.get_objects():
    if isinstance(made, extensions.Builder):
        (made._folder / "forged.so").write_bytes(b"forged")
        made.libraries["{digest}"] = "forged.so"
"""


def test_a_library_under_another_candidate_s_digest_reaches_nobody_else(tmp_path, nursery, job_of):
    victim = job_of("victim", HONEST)
    forger = job_of("forger", HEAD + FORGER.format(digest="f" * 64))
    shop = workshop(tmp_path, headers="stock")
    result = shop.build(forger, nursery, tmp_path / "forger", tmp_path / "forger.log")
    assert list(result.libraries) == ["f" * 64]
    # Kept, for the forger's own file.
    assert kept(tmp_path) == [shop.cache_key(forger)]
    assert shop.cache_key(victim) not in kept(tmp_path)
    with pytest.raises(AssertionError, match="a build process was started"):
        shop.build(victim, NoNursery(), tmp_path / "victim", tmp_path / "victim.log")


def test_a_library_outside_the_build_folder_is_refused(tmp_path, nursery, job_of):
    (tmp_path / "other.so").write_bytes(b"another candidate's")
    source = HEAD + FORGER.replace('"forged.so"\n', f'"{tmp_path}/other.so"\n').format(digest="f" * 64)
    shop = workshop(tmp_path, headers="stock")
    result = shop.build(job_of("forger", source), nursery, tmp_path / "forger", tmp_path / "forger.log")
    assert (result.fault.status, result.fault.reason) == (Status.REJECTED, "protocol")
    assert kept(tmp_path) == []


LINKER = """
import gc
from harness.compile import extensions
for made in gc.get_objects():
    if isinstance(made, extensions.Builder):
        os.symlink("{target}", made._folder / "{link}")
        made.libraries["{digest}"] = "{name}"
"""


@pytest.mark.parametrize(("link", "name"), [("linked.so", "linked.so"), ("linked", "linked/other.so")])
def test_a_link_in_place_of_a_library_is_refused(tmp_path, nursery, job_of, link, name):
    (tmp_path / "other.so").write_bytes(b"another candidate's")
    target = tmp_path / "other.so" if link == name else tmp_path
    source = HEAD + LINKER.format(digest="f" * 64, target=target, link=link, name=name)
    shop = workshop(tmp_path, headers="stock")
    result = shop.build(job_of("linker", source), nursery, tmp_path / "linker", tmp_path / "linker.log")
    assert (result.fault.status, result.fault.reason) == (Status.REJECTED, "protocol")
    assert list((tmp_path / "linker").rglob("*.so")) == []


def test_what_is_loaded_lies_where_no_build_could_write(tmp_path, nursery, job_of):
    forger = job_of("forger", HEAD + FORGER.format(digest="f" * 64))
    result = workshop(tmp_path, headers="stock").build(forger, nursery, tmp_path / "forger", tmp_path / "log")
    (library,) = map(Path, result.libraries.values())
    assert library.read_bytes() == b"forged"
    assert not (tmp_path / "forger/work").exists()
    for place in (library, library.parent, library.parent.parent):
        assert place.stat().st_uid == os.geteuid()


def test_planted_files_are_no_entries(tmp_path, nursery, job_of):
    shop = workshop(tmp_path, headers="stock")
    job = job_of("victim", HONEST)
    key = shop.cache_key(job)
    for name, text in (("entry.json", '{"key": "' + key + '"}'), ("0/ext.so", "planted")):
        path = tmp_path / "cache/builds" / key[:2] / key / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with pytest.raises(AssertionError, match="a build process was started"):
        shop.build(job, NoNursery(), tmp_path / "victim", tmp_path / "victim.log")


@pytest.mark.parametrize(
    ("source", "status", "reason"),
    [
        ("os.kill(os.getpid(), 9)\n", Status.CRASHED, "signal:SIGKILL"),
        ("os.killpg(0, 9)\n", Status.CRASHED, "signal:SIGKILL"),
        ("os._exit(0)\n", Status.CRASHED, "exit:0"),
        ("while True: sys.stdout.write('x' * 65536)\n", Status.TIMEOUT, "compile"),
    ],
)
def test_a_build_that_ends_itself_or_never_ends_harms_itself_only(tmp_path, nursery, job_of, source, status, reason):
    shop = workshop(tmp_path, timeout_s=3.0, headers="stock")
    log = tmp_path / "build.log"
    result = shop.build(job_of("hostile", HEAD + source), nursery, tmp_path / "hostile", log)
    assert (result.fault.status, result.fault.reason) == (status, reason)
    assert log.stat().st_size < 1.1 * (1 << 20)
    assert kept(tmp_path) == []
    # The next one is none the worse.
    after = shop.build(job_of("after", HEAD), nursery, tmp_path / "after", log)
    assert (after.fault, after.libraries) == (None, {})


def test_headers_that_cannot_be_precompiled_leave_a_warning(tmp_path, nursery, job_of, monkeypatch):
    def refuses(self, header, level, command):
        raise RuntimeError("no compiler today")

    monkeypatch.setattr(Precompiled, "compile", refuses)
    shop = workshop(tmp_path)
    shutil.rmtree(tmp_path / "own", ignore_errors=True)
    shop._headers = tmp_path / "own"
    result = shop.build(job_of("idle", HEAD), nursery, tmp_path / "idle", tmp_path / "idle.log")
    assert result.warnings == ["slow_build: the headers could not be precompiled: no compiler today"]


def test_libraries_far_larger_than_usual_are_refused_and_nothing_of_them_is_kept(
    tmp_path, nursery, job_of, monkeypatch
):
    monkeypatch.setattr(builds, "MOST_BYTES", 1000)
    result = workshop(tmp_path).build(job_of("large", HONEST), nursery, tmp_path / "a", tmp_path / "a.log")
    assert (result.fault.status, result.fault.reason) == (Status.RESOURCE_LIMIT, "library_size")
    assert result.libraries == {}
    assert kept(tmp_path) == []
