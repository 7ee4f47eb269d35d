"""Each layer of the sandbox, by attempts that succeed outside and fail inside, in real forked children.

Where this machine lacks a layer, its tests check that the probe says so.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

import msgspec
import pytest

from harness import environment
from harness.catalog import sources
from harness.doctor import examination
from harness.errors import UsageError
from harness.sandbox import enforcement, identity, landlock, namespaces, probe, seccomp, visible
from harness.sandbox.enforcement import LAYERS, Confinement
from harness.sandbox.syscalls import checked, libc

ROOT = Path(__file__).resolve().parents[2]
ORDINARY_USER = 12345


def in_child(act, confinement=None, user=None):
    """What `act()` returned in a forked child (JSON), or the name of the exception it raised there."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if user is not None:
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
            if confinement is not None:
                enforcement.enter(confinement)
            try:
                answer = act()
            except Exception as error:
                answer = type(error).__name__
            os.write(write_end, json.dumps(answer).encode())
        except BaseException as error:
            os.write(write_end, json.dumps(f"{type(error).__name__}: {error}").encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with open(read_end) as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else None


@pytest.fixture(scope="module")
def found():
    return probe.probe()


@pytest.fixture
def place(tmp_path):
    """A run's folder with a file in it, and a candidate's own folder and file."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results/records.jsonl").write_text("{}")
    (tmp_path / "candidate.py").write_text("# mine")
    (tmp_path / "candidate.cu").write_text("// mine")
    (tmp_path / "other.py").write_text("# somebody else's")
    (tmp_path / "own").mkdir()
    return tmp_path


def confined(place, *layers, nodes=()):
    return Confinement(
        layers=layers or probe.probe().layers,
        folder=str(place / "own"),
        readable=tuple(visible.common([place])),
        essential=(*visible.essential(), *sources.own_files(place / "candidate.py")),
        nodes=nodes,
    )


def needs(layer, found):
    """Whether this machine has a layer; where it has not, the probe must say why and `require` must refuse."""
    if layer in found.layers:
        return True
    assert found.missing[layer]
    with pytest.raises(UsageError, match="the layer '"):
        probe.chosen("require")
    return False


def ended(code, said):
    """In place of the process that tries the layers."""
    return lambda *_: subprocess.CompletedProcess((), code, stdout="", stderr=said)


@pytest.mark.parametrize(("code", "said"), [(1, "OSError: [Errno 23] Too many open files in system"), (-14, "")])
@pytest.mark.parametrize("mode", ["auto", "require"])
def test_a_probe_that_fails_lets_nobody_out(monkeypatch, mode, code, said):
    monkeypatch.setattr(probe, "_in_a_process", ended(code, said))
    probe.probe.cache_clear()
    with pytest.raises(UsageError, match=f"could not be found out: .* code {code}"):
        probe.chosen(mode)
    assert [one.ok for one in examination._sandbox()] == [False]


def test_no_layer_is_missing_because_the_machine_is_short_of_something(monkeypatch, found, place):
    def short(*_):
        raise OSError(errno.ENFILE, os.strerror(errno.ENFILE))

    if needs("landlock", found):
        monkeypatch.setattr(landlock, "prepare", short)
        said = in_child(lambda: enforcement.attempt(confined(place, "landlock")))
        assert said == "SandboxFailed"


def test_what_one_family_may_have_open_leaves_the_machine_some(monkeypatch, tmp_path):
    most = tmp_path / "file-max"
    monkeypatch.setattr(enforcement, "MACHINES_FILES", most)
    processes = enforcement.most_processes()
    for machines, its in ((1 << 62, enforcement.OPEN_FILES), (processes * 2000, 500), (1000, enforcement.FEWEST_FILES)):
        most.write_text(f"{machines}\n")
        assert enforcement.open_files() == its


def with_user(*layers):
    """These layers, and the one without which an ordinary user cannot have namespaces."""
    return ("user", *layers) if os.geteuid() and "namespaces" in layers and "user" not in layers else layers


def readable(path):
    return lambda: bool(Path(path).read_bytes()[:1] or True)


def writable(path):
    return lambda: Path(path).write_text("x")


def test_the_probe_accounts_for_every_layer(found):
    assert {*found.layers, *found.missing} == set(LAYERS)
    assert not set(found.layers) & set(found.missing)
    assert set(probe.MENDS) == set(LAYERS)


@pytest.mark.parametrize("layer", LAYERS)
def test_each_layer_can_be_put_in_force_by_itself(layer, found, place):
    if needs(layer, found):
        # Locked folders, as a test's are, need private mounts before another user gets through them.
        layers = {"user": ("user", "namespaces"), "signals": ("landlock", "signals")}
        layers = (layers | {"card": ("landlock", "card")}).get(layer, (layer,))
        assert in_child(lambda: 1, confined(place, *with_user(*layers))) == 1


def test_a_layer_that_fails_in_a_child_keeps_the_child_from_going_on(place, monkeypatch):
    def broken(*, shares_user):
        raise OSError("no such thing")

    monkeypatch.setattr(seccomp, "restrict", broken)
    answer = in_child(lambda: "went on", confined(place, "seccomp"))
    assert answer == "SandboxFailed: the sandbox layer 'seccomp' failed: no such thing"


@pytest.mark.parametrize("name", ["results/records.jsonl", "other.py"])
def test_landlock_hides_others_files(name, found, place):
    assert in_child(readable(place / name)) is True
    if needs("landlock", found):
        assert in_child(readable(place / name), confined(place, "landlock")) == "PermissionError"


@pytest.mark.parametrize("path", [ROOT / "README.md", ROOT / "tests/corpus/README.md", Path.home(), "/etc/shadow"])
def test_landlock_hides_the_repository_and_the_home_folder(path, found, place):
    look = (lambda: len(os.listdir(path)) >= 0) if Path(path).is_dir() else readable(path)
    if needs("landlock", found):
        assert in_child(look, confined(place, "landlock")) == "PermissionError"


def test_landlock_hides_command_lines_but_not_one_s_own(found, place):
    parent = os.getpid()
    assert in_child(readable(f"/proc/{parent}/cmdline")) is True
    if needs("landlock", found):
        assert in_child(readable(f"/proc/{parent}/cmdline"), confined(place, "landlock")) == "PermissionError"
        assert in_child(readable("/proc/self/cmdline"), confined(place, "landlock")) is True


def test_landlock_leaves_the_own_folder_to_write(found, place):
    outside = place / "outside"
    assert in_child(writable(outside)) == 1
    if needs("landlock", found):
        for path in (outside, place / "candidate.py", "/var/tmp/assay-test", ROOT / "harness/cli.py"):
            create = lambda path=path: os.close(os.open(path, os.O_WRONLY | os.O_CREAT))  # noqa: E731
            # An ordinary user's view of mounts says "read-only file system".
            assert in_child(create, confined(place)) in ("PermissionError", "OSError", "FileNotFoundError")
        assert in_child(writable(place / "own/file"), confined(place)) == 1
        assert (place / "own/file").read_text() == "x"


def test_so_is_tmp(found, place):
    """Many candidates name it, and its folders, for files that they build."""
    folder = f"/tmp/assay-test-{os.getpid()}"

    def use():
        os.mkdir(folder)
        Path(folder, "file").write_text("x")
        return Path(folder, "file").read_text()

    if needs("namespaces", found):
        assert in_child(use, confined(place)) == "x"
        assert not Path(folder).exists()
        (file,) = Path(place, "own").glob(f"{namespaces.OWN_TMP}*/{Path(folder).name}/file")
        assert file.read_text() == "x"


@pytest.mark.skipif(not ROOT.is_relative_to("/tmp") and tempfile.gettempdir() != "/tmp", reason="nothing is in /tmp")
def test_what_is_readable_in_tmp_is_there_and_nothing_else(found, place):
    if needs("namespaces", found) and needs("landlock", found):
        beside = confined(place)
        assert in_child(readable(place / "candidate.cu"), beside) is True
        assert in_child(lambda: sorted(os.listdir(place)), beside) == ["candidate.cu", "candidate.py", "own"]
        for path in ("candidate.py", "results/records.jsonl", "other.py", "new.py"):
            assert in_child(writable(place / path), beside) in ("PermissionError", "FileNotFoundError", "OSError")
        assert (place / "candidate.py").read_text() == "# mine"


@pytest.mark.parametrize("layers", [("user", "namespaces"), probe.probe().layers])
def test_what_is_bound_into_tmp_stays_as_it_is(layers, found, place):
    """Whoever may write to it by its owner and mode."""
    (place / "candidate.py").chmod(0o666)
    if needs("namespaces", found) and needs("user", found):
        assert in_child(writable(place / "candidate.py"), confined(place, *layers)) in ("PermissionError", "OSError")
        assert (place / "candidate.py").read_text() == "# mine"


def test_shared_memory_is_private(found, place):
    name = f"/dev/shm/assay-test-{os.getpid()}"
    if needs("namespaces", found):
        assert in_child(writable(name), confined(place)) == 1
        assert not Path(name).exists()


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no CUDA toolkit")
def test_nvcc_works_in_all_layers(place):
    def compile_kernel():
        (place / "own/kernel.cu").write_text("__global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }")
        environment = os.environ | {"TMPDIR": str(place / "own"), "HOME": str(place / "own")}
        command = ["nvcc", "-c", str(place / "own/kernel.cu"), "-o", str(place / "own/kernel.o")]
        subprocess.run(command, check=True, env=environment, capture_output=True)
        return (place / "own/kernel.o").stat().st_size > 0

    assert in_child(compile_kernel, confined(place)) is True


def test_everything_needed_is_there_in_all_layers(place):
    def work():
        for path in (
            place / "candidate.py",
            place / "candidate.cu",
            "/proc/self/maps",
            ROOT / "harness/wire/values.py",
        ):
            Path(path).read_bytes()
        Path("/dev/null").write_text("x")
        source = place / "own/main.cpp"
        source.write_text("#include <vector>\nint main() { return std::vector<int>(3).size() - 3; }")
        environment = os.environ | {"TMPDIR": str(place / "own"), "HOME": str(place / "own")}
        for command in (
            ["g++", source, "-o", place / "own/main"],
            [place / "own/main"],
            [sys.executable, "-c", "import ssl"],
        ):
            subprocess.run(command, check=True, env=environment, capture_output=True)
        threads = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(64)]
        for thread in threads:
            thread.start()
        left, right = socket.socketpair()
        left.send(b"x")
        return right.recv(1).decode()

    assert in_child(work, confined(place)) == "x"


def test_threads_are_named_on_a_card(place):
    name = lambda: Path(f"/proc/self/task/{os.getpid()}/comm").write_text("renamed")  # noqa: E731
    assert in_child(name, confined(place, nodes=("/dev/null",))) == len("renamed")


def test_who_is_first_to_die_remains_so(found, place):
    user = None if os.geteuid() else ORDINARY_USER
    for folder in (place, *place.parents[:2]):
        folder.chmod(0o755)
    os.chown(place / "own", user or os.geteuid(), -1)

    def attempt():
        for path in ("/proc/self/oom_score_adj", f"/proc/self/task/{os.getpid()}/oom_score_adj"):
            with contextlib.suppress(OSError):
                Path(path).write_text("0")
        return int(Path("/proc/self/oom_score_adj").read_text())

    if needs("limits", found) and needs("landlock", found):
        assert in_child(attempt, confined(place, "limits"), user=user) == 0
        assert in_child(attempt, confined(place, "limits", "landlock"), user=user) == 1000


@pytest.mark.parametrize("layer", ["namespaces", "seccomp"])
def test_no_network(layer, found, place):
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = lambda: bool(socket.create_connection(server.getsockname(), 1.0))  # noqa: E731
        assert in_child(connect) is True
        if needs(layer, found):
            assert in_child(connect, confined(place, *with_user(layer))) == "OSError"


def test_no_local_daemon_can_be_asked(found, place):
    address = str(place / "daemon")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        connect = lambda: socket.socket(socket.AF_UNIX).connect(address)  # noqa: E731
        assert in_child(connect) is None
        if needs("seccomp", found):
            assert in_child(connect, confined(place, "seccomp")) == "ConnectionRefusedError"


@pytest.mark.parametrize("layers", [("user", "namespaces", "signals"), ("landlock", "signals")])
def test_the_parent_cannot_be_signalled(layers, found, place):
    if os.geteuid() and "landlock" not in layers:
        pytest.skip("a user of its own takes root")
    parent = os.getpid()
    assert in_child(lambda: os.kill(parent, 0)) is None
    if all(needs(layer, found) for layer in layers):
        assert in_child(lambda: os.kill(parent, signal.SIGKILL), confined(place, *layers)) == "PermissionError"


def test_a_kernel_that_lets_signals_out_is_told(place, monkeypatch):
    monkeypatch.setattr(enforcement.landlock, "abi", lambda: 5)
    answer = in_child(lambda: 1, confined(place, "landlock", "signals"))
    assert answer == "SandboxFailed: the sandbox layer 'signals' failed: processes of the same user can be signalled"


def read_parent():
    """The first bytes of a page of the parent's, by process_vm_readv."""
    here, there = ctypes.create_string_buffer(8), ctypes.create_string_buffer(b"a secret", 8)
    vector = ctypes.c_void_p * 2
    local, remote = vector(ctypes.addressof(here), 8), vector(ctypes.addressof(there), 8)
    return libc.process_vm_readv(os.getppid(), local, 1, remote, 1, 0)


@pytest.mark.parametrize("layers", [("user", "namespaces"), ("landlock",), ("seccomp",)])
def test_the_parent_cannot_be_traced_or_read(layers, found, place):
    parent = os.getpid()
    # The buffer is where it was in the parent, too: the child is its copy.
    assert in_child(read_parent) == 8
    if needs(layers[0], found):
        assert in_child(read_parent, confined(place, *layers)) == -1
        assert in_child(lambda: libc.ptrace(16, parent, 0, 0), confined(place, *layers)) == -1
        if layers != ("seccomp",):
            attempt = in_child(lambda: open(f"/proc/{parent}/mem", "rb").close(), confined(place, *layers))
            assert attempt == "PermissionError"


@pytest.mark.parametrize(
    "call",
    [
        ("unshare", 0x10000000),
        ("syscall", 321, 0, 0, 0),
        ("syscall", 425, 1, 0),
        ("syscall", 250, 0, 0, 0, 0, 0),
        ("syscall", 298, 0, 0, 0, 0, 0),
        ("syscall", 467, 0, 0, 0, 0, 0),
        ("syscall", 206, 1, 0),
        ("shmget", 0, 4096, 0o1600),
    ],
    ids=[
        "unshare",
        "bpf",
        "io_uring_setup",
        "keyctl",
        "perf_event_open",
        "open_tree_attr",
        "io_setup",
        "shmget",
    ],
)
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are x86-64's")
def test_seccomp_refuses(call, found, place):
    def attempt():
        result = getattr(libc, call[0])(*map(ctypes.c_ulong, call[1:]))
        return ctypes.get_errno() if result == -1 else 0

    if needs("seccomp", found):
        assert in_child(attempt, confined(place, "seccomp")) == 1


def test_a_process_ends_with_its_parent_whatever_it_asks_for(found, place):
    def attempt():
        kept = ctypes.c_int(-1)
        asked = libc.prctl(1, ctypes.c_ulong(0), 0, 0, 0)
        libc.prctl(2, ctypes.byref(kept), 0, 0, 0)
        return asked, kept.value

    if needs("seccomp", found):
        assert in_child(attempt, confined(place, "seccomp")) == [0, signal.SIGKILL]


def test_no_room_is_taken_that_a_file_s_size_does_not_tell(found, place):
    def attempt():
        answers = []
        with open(place / "own/room", "wb") as file:
            for mode in (0, 1):
                result = libc.fallocate(file.fileno(), mode, ctypes.c_long(0), ctypes.c_long(4096))
                answers.append(ctypes.get_errno() if result else 0)
            # XFS's way to the same (FS_IOC_RESVSP64), which the kernel offers on all file systems.
            room = struct.pack("=hhiqqiI4i", 0, 0, 0, 0, 4096, 0, 0, 0, 0, 0, 0)
            result = libc.ioctl(file.fileno(), ctypes.c_ulong(0x4030582A), room)
            return [*answers, ctypes.get_errno() if result else 0, os.fstat(file.fileno()).st_blocks * 512]

    if needs("seccomp", found):
        unsupported = errno.EOPNOTSUPP
        assert in_child(attempt, confined(place, "seccomp")) == [0, unsupported, errno.ENOTTY, 4096]


def test_no_flag_of_a_file_system_keeps_a_folder_from_being_removed(found, place):
    """FS_IOC_SETFLAGS (slow, or not to be changed), and Btrfs's ways to make a part of it and to lock that."""

    def attempt():
        os.mkdir(place / "own/locked")
        folder = os.open(place / "own/locked", os.O_RDONLY)
        answers = []
        for command in (0x40086602, 0x80086601, 0x5000940E, 0x4008941A, 0x4004587F):
            try:
                fcntl.ioctl(folder, command, bytes(1024))
            except OSError as error:
                answers.append(error.errno)
        reader, writer = os.pipe()
        os.write(writer, b"abc")
        return [*answers, *struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, bytes(4)))]

    if needs("seccomp", found):
        assert in_child(attempt, confined(place, "seccomp")) == [*[errno.ENOTTY] * 5, 3]


def test_files_have_no_attributes(found, place):
    """Those of a file that is memory lie in the kernel's own; whoever copies a file with its own does not notice."""

    def attempt():
        memory = os.memfd_create("memory")
        answers = []
        for where in (memory, place / "own/labelled"):
            (place / "own/labelled").touch()
            try:
                os.setxattr(where, "user.label", b"x" * 4096)
            except OSError as error:
                answers.append(error.errno)
        shutil.copy2(place / "own/labelled", place / "own/copy")
        return answers

    if needs("seccomp", found):
        assert in_child(attempt, confined(place, "seccomp")) == [errno.EOPNOTSUPP] * 2


def test_files_of_private_memory_are_bounded_in_number(found, place):
    """Empty ones take no room there, but the kernel's own memory."""
    if needs("namespaces", found) and needs("user", found):
        assert in_child(lambda: os.statvfs("/dev/shm").f_files, confined(place)) == namespaces.SHM_FILES


def test_core_dumps_stay_off(found, place):
    """The limit of 1 keeps the kernel from starting a program for each crash, as a limit of 0 does not. So nobody may
    lower it; that succeeds and changes nothing."""

    def attempt():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # As who does without glibc.
        libc.syscall(seccomp.MACHINES[os.uname().machine].numbers["setrlimit"], resource.RLIMIT_CORE, bytes(16))
        resource.setrlimit(resource.RLIMIT_NOFILE, (99, 99))
        return resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_NOFILE)

    if needs("seccomp", found) and needs("limits", found):
        cores = min(enforcement.NO_CORE, resource.getrlimit(resource.RLIMIT_CORE)[1] % (1 << 64))
        assert in_child(attempt, confined(place)) == [[cores, cores], [99, 99]]


def test_nobody_has_a_core_of_the_machine_alone_or_memory_that_is_not_counted(found, place):
    def attempt():
        secret = libc.syscall(447, 0)
        refused = [ctypes.get_errno()] if secret < 0 else [0]
        libc.prctl(62, 1, 0, 0, 0)
        return [*refused, ctypes.get_errno()]

    if needs("seccomp", found):
        assert in_child(attempt, confined(place, "seccomp")) == [errno.EPERM, errno.EINVAL]


def test_nobody_is_told_of_others_files(found, place):
    """A watch needs no more than the right to read, by modes, a file that Landlock would not open."""

    def attempt():
        watch = libc.inotify_add_watch(libc.inotify_init1(0), os.fsencode(place / "other.py"), 0xFFF)
        folder = os.open(place, os.O_RDONLY)
        return [watch >= 0, libc.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_ACCESS) >= 0]

    assert in_child(attempt) == [True, True]
    if needs("seccomp", found):
        assert in_child(attempt, confined(place, "seccomp")) == [False, False]


def test_nothing_that_a_timer_wakes_goes_on_while_its_process_is_stopped(found, place):
    """An alarm stays: there is one a process, and it wakes nobody in the interrupt."""

    def attempt():
        signals = ctypes.create_string_buffer(128)
        made = [libc.timerfd_create(1, 0), libc.signalfd(-1, signals, 0)]
        signal.setitimer(signal.ITIMER_REAL, 1000.0)
        return [file >= 0 for file in made] + [ctypes.get_errno() == errno.ENOSYS, signal.alarm(0) > 0]

    assert in_child(attempt) == [True, True, False, True]
    if needs("seccomp", found):
        assert in_child(attempt, confined(place, "seccomp")) == [False, False, True, True]


def test_nobody_leaves_the_process_group(found, place):
    def attempt():
        os.setsid()
        os.setpgid(0, 0)
        subprocess.run(["true"], start_new_session=True, process_group=0, check=True)
        return os.getpgid(0), os.getsid(0)

    if needs("seccomp", found):
        assert in_child(attempt, confined(place, "seccomp")) == [os.getpgid(0), os.getsid(0)]


ON_OTHERS = {
    "prlimit": lambda pid: resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0)),
    "setpriority": lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19),
    "a group's setpriority": lambda pid: os.setpriority(os.PRIO_PGRP, os.getpgid(pid), 19),
    "a user's setpriority": lambda pid: os.setpriority(os.PRIO_USER, os.getuid(), 19),
    "sched_setaffinity": lambda pid: os.sched_setaffinity(pid, {min(os.sched_getaffinity(pid))}),
    "sched_setscheduler": lambda pid: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)),
}
PRETENDED = ("sched_setaffinity", "sched_setscheduler")


def how_it_runs(pid):
    return (
        resource.prlimit(pid, resource.RLIMIT_FSIZE),
        os.getpriority(os.PRIO_PROCESS, pid),
        sorted(os.sched_getaffinity(pid)),
        os.sched_getscheduler(pid),
    )


@pytest.mark.parametrize("name", ON_OTHERS)
def test_another_process_of_one_s_user_stays_as_it_is(name, found, place):
    if needs("seccomp", found):
        with subprocess.Popen(["sleep", "60"]) as other:
            before = how_it_runs(other.pid)
            # Without a user of its own, so that nothing else is in the way.
            answer = in_child(lambda: ON_OTHERS[name](other.pid), confined(place, "seccomp"))
            assert answer == (None if name in PRETENDED else "PermissionError")
            assert how_it_runs(other.pid) == before
            other.kill()


@pytest.mark.parametrize("name", sorted(ON_OTHERS.keys() - {"a group's setpriority", "a user's setpriority"}))
def test_a_process_changes_its_own_limits_and_priority(name, found, place):
    def attempt():
        before = how_it_runs(0)
        ON_OTHERS[name](os.getpid())
        return how_it_runs(0) != before or len(os.sched_getaffinity(0)) == 1

    if needs("seccomp", found):
        assert in_child(attempt, confined(place, "seccomp")) is True


def run_filter(code, words):
    """What classic BPF answers to a struct seccomp_data, given as words of 32 bits."""
    at, value = 0, 0
    steps = [(0x20, None), (0x15, int.__eq__), (0x35, int.__ge__), (0x45, int.__and__)]
    while True:
        operation, if_true, if_false, operand = struct.unpack_from("=HBBI", code, 8 * at)
        at += 1
        if operation == 0x06:
            return operand
        if operation == 0x54:
            value &= operand
            continue
        test = dict(steps)[operation]
        if test is None:
            value = words[operand // 4]
        else:
            at += if_true if test(value, operand) else if_false


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_the_filter_knows_whom_a_call_is_about(machine):
    known, own = seccomp.MACHINES[machine], 4711
    refused, pretended, allowed = 0x00050001, 0x00050000, 0x7FFF0000

    def answer(name, *arguments, shared=True):
        words = [known.numbers[name], known.audit, 0, 0]
        for argument in (*arguments, *[0] * (6 - len(arguments))):
            words += [argument, 0]
        return run_filter(seccomp.program(machine, own if shared else None), words)

    assert {answer("setsid"), answer("setpgid", 0, 0), answer("setsid", shared=False), answer("prctl", 1)} == {
        pretended
    }
    unsupported = 0x00050000 | errno.EOPNOTSUPP
    assert [answer("fallocate", 3, mode) for mode in (0, 1, 3)] == [allowed, unsupported, unsupported]
    assert {answer(name) for name in seccomp.LABELLING} == {unsupported}
    for name in ("prlimit64", "migrate_pages", "move_pages"):
        assert [answer(name, pid) for pid in (0, own, 1)] == [allowed, allowed, refused]
        assert answer(name, 1, shared=False) == allowed
    for name in ("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"):
        assert [answer(name, pid) for pid in (0, own, 1)] == [allowed, allowed, pretended]
        assert answer(name, 1, shared=False) == allowed
    for name, of_a_process in {"setpriority": 0, "ioprio_set": 1}.items():
        assert [answer(name, of_a_process, pid) for pid in (0, own, 1)] == [allowed, allowed, refused]
        assert answer(name, of_a_process + 1, 0) == answer(name, of_a_process + 2, 0) == refused
        assert answer(name, of_a_process + 2, 1, shared=False) == allowed
    # The limit for core dumps stays, and is told to whoever asks for it.
    core, addresses = resource.RLIMIT_CORE, (0, 1, 1 << 31)
    assert [answer("prlimit64", pid, core, new) for pid in (0, own) for new in addresses] == 2 * [
        *(allowed, pretended, pretended)
    ]
    assert answer("prlimit64", 1, core, 1) == refused
    assert answer("prlimit64", 1, core, 0, shared=False) == allowed
    assert answer("prlimit64", 0, core, 1, shared=False) == answer("setrlimit", core) == pretended
    assert answer("prlimit64", 0, core + 1, 1) == answer("setrlimit", core + 1) == allowed
    # Of XFS and Btrfs; of terminals, pipes, sockets, a card's driver and its unified memory.
    foreign, known_ones = (0x40305828, 0x5000940E, 0xC0185879), (0x5401, 0x541B, 0x8912, 0xC020462A, 0x30000001, 37)
    assert {answer("ioctl", 3, command) for command in foreign} == {0x00050000 | errno.ENOTTY}
    assert {answer("ioctl", 0x40305828, command) for command in known_ones} == {allowed}
    # Of itself a process sets what is known to be harmless: no PR_SET_SECCOMP, PR_SCHED_CORE, PR_FUTEX_HASH.
    assert {answer("prctl", option) for option in (22, 62, 78, 79, 0x53564D41)} == {0x00050000 | errno.EINVAL}
    assert {answer("prctl", option) for option in (2, 3, 4, 15, 16, 21, 23, 30, 38)} == {allowed}
    assert answer("ptrace") == answer("memfd_secret") == refused
    assert answer("clone", 17) == allowed
    # Threads have their process's descriptors (CLONE_VM, CLONE_FILES, CLONE_SIGHAND, CLONE_THREAD).
    assert answer("clone", 0x10F00) == answer("clone", 0x4111) == answer("close_range", 3, 9, 4) == allowed
    assert (answer("clone", 0x10B00), answer("close_range", 3, 9, 2)) == (refused, 0x00050000 | errno.EINVAL)
    # By none of these is a stopped process let go.
    letting_go = [answer("clone", 18), answer("fcntl", 3, 10), answer("timer_create"), answer("kill", 1, 18)]
    letting_go += [answer("tgkill", 1, 1, 18), answer("pidfd_send_signal", 3, 18)]
    assert set(letting_go) == {refused}
    assert [answer("fcntl", 3, command) for command in (2, 9, 11, 1024, 1025, 1026)] == [
        *(allowed, allowed, allowed, refused, allowed, refused)
    ]
    # A pipe is not made larger than it is at first, and nothing is put there but by writing.
    pipe = 16 * resource.getpagesize()
    assert [answer("fcntl", 3, 1031, size) for size in (4096, pipe, pipe + 1, 1 << 20)] == [
        *(allowed, allowed, refused, refused)
    ]
    piping = ("splice", "tee", "vmsplice", "sendfile")
    assert {answer(name) for name in piping} == {0x00050000 | errno.EINVAL}
    # Nor does anything that a timer wakes work for a stopped one.
    waking = {answer(name) for name in ("timerfd_create", "signalfd", "signalfd4") if name in known.numbers}
    assert waking == {0x00050000 | errno.ENOSYS}
    # Nor do the kernel's workers on what it has made in the kernel.
    assert {answer(name) for name in seccomp.RULING} == waking
    assert {answer("setsockopt", 3, 1, option) for option in seccomp.FILTERING} == {0x00050000 | errno.ENOPROTOOPT}
    assert answer("setsockopt", 3, 1, 7) == allowed
    assert (
        answer("kill", 1, 15) == answer("tgkill", 18, 18, 6) == answer("fcntl", 10, 1) == answer("clone", 0) == allowed
    )


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_calls_that_nobody_has_looked_at_are_unknown(machine):
    known = seccomp.MACHINES[machine]

    def answer(number):
        return run_filter(seccomp.program(machine), [number, known.audit, *[0] * 14])

    unknown = 0x00050000 | errno.ENOSYS
    # x32's are among them, and the two that set a file's flags.
    assert {answer(number) for number in (468, 469, 470, 471, 511, 0x40000000, 0xFFFFFFFF)} == {unknown}
    assert answer(466) == 0x7FFF0000
    assert max(known.numbers.values()) <= seccomp.REVIEWED


def test_no_call_sets_a_file_s_flags(found, place):
    """SYNC, NOATIME and a project's inheritance, as FS_IOC_SETFLAGS sets them; Linux 6.17 and newer has it."""

    def attempt():
        flags = struct.pack("=QIIII", 0x20, 0, 0, 0, 0)
        done = libc.syscall(469, -100, os.fsencode(place / "own"), flags, ctypes.c_size_t(len(flags)), 0)
        return ctypes.get_errno() if done else 0

    if needs("seccomp", found):
        assert in_child(attempt, confined(place, "seccomp")) == errno.ENOSYS


def test_a_pipe_takes_what_is_written_and_no_large_pages(found, place):
    """By none of these calls does one byte keep a page of 2 MiB; whoever copies files does not notice."""
    (place / "own/source").write_bytes(b"x" * 100_000)

    def attempt():
        reader, writer = os.pipe()
        _, other = os.pipe()
        file = os.open(place / "own/source", os.O_RDONLY)
        answers = []
        for call in (
            lambda: os.splice(file, writer, 1, offset_src=0),
            lambda: os.sendfile(writer, file, 0, 1),
            lambda: checked(libc.tee(reader, other, ctypes.c_size_t(1), 0), "tee"),
            lambda: fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 1 << 20),
        ):
            try:
                os.write(writer, b"x")
                answers.append(call())
            except OSError as error:
                answers.append(error.errno)
        shutil.copyfile(place / "own/source", place / "own/copy")
        return [*answers, os.path.getsize(place / "own/copy")]

    assert in_child(attempt) == [1, 1, 1, 1 << 20, 100_000]
    if needs("seccomp", found):
        refused = [*[errno.EINVAL] * 3, errno.EPERM, 100_000]
        assert in_child(attempt, confined(place, "seccomp")) == refused


def test_no_process_has_a_table_of_locks_that_is_in_no_figure(found, place):
    """PR_FUTEX_HASH, up to a gigabyte; what Python, PyTorch and C++ set of themselves stays."""

    def attempt():
        own = [libc.prctl(78, 1, ctypes.c_ulong(1 << 10), 0, 0), ctypes.get_errno()]
        name = ctypes.create_string_buffer(16)
        libc.prctl(15, b"worker", 0, 0, 0)
        libc.prctl(16, name, 0, 0, 0)
        return [*own, name.value.decode(), libc.prctl(4, 1, 0, 0, 0), libc.prctl(23, 0, 0, 0, 0) >= 0]

    if needs("seccomp", found):
        assert in_child(attempt, confined(place, "seccomp")) == [-1, errno.EINVAL, "worker", 0, True]


def test_no_rules_are_made_in_the_kernel(found, place):
    """Whole domains of them are removed by its workers, in whoever's turn that is."""

    def attempt():
        handled = struct.pack("Q", 1 << 2)
        ruleset = libc.syscall(444, handled, len(handled), 0)
        one, other = socket.socketpair()
        filters = ctypes.create_string_buffer(struct.pack("=HBBI", 0x06, 0, 0, 0xFFFF))
        attached = libc.setsockopt(one.fileno(), 1, 26, struct.pack("HxxxxxxP", 1, ctypes.addressof(filters)), 16)
        other.close()
        return [ruleset >= 0, attached == 0]

    assert in_child(attempt)[1]
    if needs("seccomp", found):
        assert in_child(attempt, confined(place, "seccomp")) == [False, False]


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_RAW])
@pytest.mark.parametrize("make", [socket.socket, lambda *of: socket.socketpair(*of)[0]])
def test_no_datagram_reaches_a_listener(make, kind, found, place):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        address = str(place / "own/listener")
        server.bind(address)
        send = lambda: make(socket.AF_UNIX, kind).sendto(b"hello", address)  # noqa: E731
        assert in_child(send) == 5
        if needs("seccomp", found):
            assert in_child(send, confined(place, "seccomp")) == "OSError"
            kept = lambda: [len(socket.socketpair(socket.AF_UNIX, of)) for of in (1, 5)]  # noqa: E731
            assert in_child(kept, confined(place, "seccomp")) == [2, 2]


def test_no_memory_or_queue_of_others_is_found_by_its_number(found, place):
    """What System V's interfaces share has no path, and a number is guessed: the calls that make one are not enough."""
    libc.shmat.restype = ctypes.c_void_p
    shared = checked(libc.shmget(0, 4096, 0o1666), "shmget")
    queue = checked(libc.msgget(0, 0o1666), "msgget")
    semaphore = checked(libc.semget(0, 1, 0o1666), "semget")

    def attempt():
        attached = libc.shmat(shared, None, 0) != ctypes.c_void_p(-1).value
        sent = libc.msgsnd(queue, struct.pack("l", 1) + b"hello", 5, 0) == 0
        set_to = libc.semctl(semaphore, 0, 16, 7) == 0
        return [attached, sent, set_to]

    try:
        assert in_child(attempt) == [True] * 3
        if needs("seccomp", found):
            assert in_child(attempt, confined(place, "seccomp")) == [False] * 3
    finally:
        libc.shmctl(shared, 0, None)
        libc.msgctl(queue, 0, None)
        libc.semctl(semaphore, 0, 0)


def test_no_file_is_leased(found, place):
    def attempt():
        with open(place / "candidate.cu") as file:
            return fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)

    assert in_child(attempt) == 0
    if needs("seccomp", found):
        assert in_child(attempt, confined(place, "seccomp")) == "PermissionError"


def test_an_ordinary_user_s_files_keep_their_modes(found):
    """Landlock does not look at modes, times and attributes."""
    user = None if os.geteuid() else ORDINARY_USER
    # Not in /tmp, of which a process sees only its own.
    place = Path(tempfile.mkdtemp(dir="/var/tmp"))
    (place / "results").mkdir()
    (place / "own").mkdir()
    (place / "other.py").write_text("")
    if user:
        for path in (place, *place.rglob("*")):
            os.chown(path, user, user)

    def attempt():
        done = []
        for act in (lambda: os.chmod(place / "other.py", 0), lambda: os.utime(place / "results", (1, 1))):
            try:
                done.append(act())
            except OSError as error:
                done.append(error.errno)
        (place / "own/mine").write_text("x")
        os.chmod(place / "own/mine", 0o700)
        Path("/proc/self/comm").write_text("me")
        return done

    layers = ("user", "namespaces")
    if all(needs(layer, found) for layer in layers):
        inside = Confinement(layers=layers, folder=str(place / "own"))
        assert in_child(attempt, inside, user=user) == [errno.EROFS] * 2
    shutil.rmtree(place)


def test_seccomp_numbers_are_the_kernel_s():
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if not header.exists():
        pytest.skip("the kernel's headers are not installed")
    newest = max(map(int, re.findall(r"#define __NR_\w+ (\d+)\n", header.read_text())))
    for name, number in seccomp.MACHINES["x86_64"].numbers.items():
        assert number > newest or f"#define __NR_{name} {number}\n" in header.read_text()
    generic = Path("/usr/include/asm-generic/unistd.h").read_text()
    for name, number in seccomp.MACHINES["aarch64"].numbers.items():
        if number > newest:
            continue
        # Some are named after both of their widths.
        assert re.search(rf"#define __NR(?:3264)?_{name}\s+{number}\n", generic), name


def test_somebody_has_looked_at_the_newest_kernel_s_calls():
    """Where this fails, read what the new ones do, list in seccomp.py what is to be refused, and raise REVIEWED."""
    places = ("usr/include/x86_64-linux-gnu/asm/unistd_64.h", "usr/include/asm/unistd_64.h")
    built = "usr/src/*/arch/x86/include/generated/uapi/asm/unistd_64.h"
    headers = [path for place in (*places, built) for path in Path("/").glob(place)]
    if not headers:
        pytest.skip("the kernel's headers are not installed")
    numbers = [number for path in headers for number in re.findall(r"#define __NR_\w+ (\d+)\n", path.read_text())]
    assert max(map(int, numbers)) <= seccomp.REVIEWED


def test_limits_bound_files_descriptors_and_processes(found, place):
    def grow():
        os.truncate(place / "candidate.cu", enforcement.FILE_BYTES + 1)

    most = enforcement.open_files()

    def descriptors():
        return [os.open("/dev/null", os.O_RDONLY) for _ in range(most)]

    if needs("limits", found):
        assert in_child(grow, confined(place, "limits")) == "OSError"
        assert in_child(descriptors, confined(place, "limits")) == "OSError"
        assert in_child(lambda: resource.getrlimit(resource.RLIMIT_CORE)[1], confined(place, "limits")) <= 1
    if needs("user", found) and needs("limits", found):
        share = msgspec.structs.replace(confined(place), processes=77)
        assert in_child(lambda: resource.getrlimit(resource.RLIMIT_NPROC)[1], share) == 77

        def bounded():
            resource.setrlimit(resource.RLIMIT_NPROC, (64, 64))
            os.setsid()
            pids = []
            try:
                while len(pids) < 200:
                    pid = os.fork()
                    if pid == 0:
                        time.sleep(60)
                        os._exit(0)
                    pids.append(pid)
            except BlockingIOError:
                pass
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            return len(pids), resource.getrlimit(resource.RLIMIT_NPROC)[1]

        assert (
            in_child(lambda: resource.getrlimit(resource.RLIMIT_NPROC)[1], confined(place))
            == enforcement.most_processes()
        )
        assert in_child(bounded, confined(place)) == [63, 64]


def test_a_user_of_its_own_has_no_capability_left(found, place):
    def facts():
        lines = dict(
            line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line
        )
        return [int(lines[name], 16) for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")] + [lines["NoNewPrivs"]]

    if needs("user", found):
        assert in_child(facts, confined(place)) == [0, 0, 0, 0, "1"]


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
def test_an_ordinary_user_gets_the_same_by_a_user_namespace(place):
    def attempts():
        answers = {}
        parent = os.getppid()
        for name, act in {
            "other": readable(place / "other.py"),
            "write": writable("/var/tmp/assay-test"),
            "tmp": writable("/tmp/assay-test"),
            "beside": writable(place / "new.py"),
            "kill": lambda: os.kill(parent, 0),
            "socket": socket.socket,
            "namespace": lambda: os.listdir("/sys/class/net"),
            "user": os.getuid,
        }.items():
            try:
                answers[name] = act()
            except Exception as error:
                answers[name] = type(error).__name__
        return answers

    def as_user():
        libc.prctl(4, 1, 0, 0, 0)
        failures = enforcement.attempt(confined_for_user)
        return [failures, attempts()]

    for folder in (place, *place.parents[:2]):
        folder.chmod(0o755)
    os.chown(place / "own", ORDINARY_USER, ORDINARY_USER)
    confined_for_user = confined(place, *LAYERS)
    failures, answers = in_child(as_user, user=ORDINARY_USER)
    if failures:
        assert all(failures.values())
        return
    assert answers["user"] == ORDINARY_USER
    assert answers["kill"] == "PermissionError"
    assert answers["other"] in ("PermissionError", "FileNotFoundError")
    assert answers["tmp"] == 1
    assert answers["beside"] in ("OSError", "FileNotFoundError")
    assert not Path("/tmp/assay-test").exists()
    # A read-only file system, and an address family that is not there.
    assert answers["write"] == answers["socket"] == "OSError"


@pytest.mark.parametrize(
    ("uid_map", "expected"),
    [("0 0 4294967295", 0x40000000 + 77), ("0 100000 65536", 65535 - 77), ("0 1000 1\n1 100000 65536", 65536 - 77)],
)
def test_an_unused_user_is_one_that_the_container_maps(uid_map, expected):
    assert identity.unused_user(uid_map, 77) == expected


def test_too_few_users_are_an_error():
    with pytest.raises(OSError, match="only 1 user ids"):
        identity.unused_user("0 1000 1", 77)


def made_up_cards(folder, monkeypatch):
    monkeypatch.setattr(visible, "DEV", str(folder))
    (folder / "nvidia-caps").mkdir()
    (folder / "nvidia-caps/nvidia-cap1").write_text("")
    for name in ("nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-nvswitch0"):
        (folder / name).write_text("")


def test_a_process_has_the_device_files_of_its_own_card(tmp_path, monkeypatch):
    made_up_cards(tmp_path, monkeypatch)
    shared = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps"}
    assert {Path(node).name for node in visible.nodes(LAYERS, 1)} == shared | {"nvidia1"}
    every = {path.name for path in tmp_path.iterdir()}
    assert {Path(node).name for node in visible.nodes(("landlock",), 1)} == every
    # A card whose file is not known, or is not there.
    assert visible.nodes(LAYERS, -1) == visible.nodes(LAYERS, 2) == []


def test_another_card_is_not_opened(tmp_path, monkeypatch, found, place):
    dev = tmp_path / "dev"
    dev.mkdir()
    made_up_cards(dev, monkeypatch)
    paths = sorted(path for path in dev.rglob("*") if path.is_file())

    def openable():
        opened = []
        for path in paths:
            try:
                path.open().close()
                opened.append(path.name)
            except OSError:
                pass
        return opened

    if needs("card", found):
        inside = confined(place, "landlock", "card", nodes=tuple(visible.nodes(LAYERS, 1)))
        assert in_child(openable, inside) == ["nvidia-cap1", "nvidia-uvm", "nvidia-uvm-tools", "nvidia1", "nvidiactl"]


def test_a_card_that_cannot_be_told_costs_the_layer(tmp_path, monkeypatch):
    made_up_cards(tmp_path, monkeypatch)
    devices = [environment.Device(kind="cuda", spec=f"cuda:{index}", name="made up") for index in (0, 1)]
    monkeypatch.setattr(environment, "gpus", lambda: (tuple(devices), "", ""))
    monkeypatch.setattr(probe, "probe", lambda: probe.Found(layers=("landlock", "card")))
    monkeypatch.setattr(probe, "harmful_on_a_card", lambda layers: {})
    cards = [environment.Card(index=index, uuid=f"GPU-{index}", minor=1 - index) for index in (0, 1)]
    monkeypatch.setattr(environment, "_cards", lambda: tuple(cards))
    assert probe.chosen("require", gpu=True).layers == ("landlock", "card")
    cards[0] = environment.Card(index=0, uuid="GPU-0")
    found = probe.chosen("auto", gpu=True)
    assert found.layers == ("landlock",)
    assert "which device file" in found.missing["card"]


def test_what_is_private_is_cut_out_of_what_is_readable(tmp_path):
    for name in ("a/secret/x", "a/open", "b"):
        (tmp_path / name).mkdir(parents=True)
    kept = list(visible.without(tmp_path, {tmp_path / "a/secret"}))
    assert sorted(kept) == [tmp_path / "a/open", tmp_path / "b"]
    assert list(visible.without(tmp_path, {tmp_path})) == []
    assert list(visible.without(tmp_path / "b", {tmp_path / "a/secret"})) == [tmp_path / "b"]


def test_a_checkout_on_pythonpath_does_not_open_it(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT), str(ROOT.parent), *sys.path])
    shown = visible.common([])
    assert {str(ROOT / "harness" / room) for room in ("runner", "wire", "records.py")} <= set(shown)
    closed = [ROOT / "harness" / room for room in visible.CLOSED]
    hidden = {
        str(path) for path in (ROOT, ROOT / "harness", ROOT / "results", ROOT / "solutions", ROOT.parent, *closed)
    }
    assert not hidden & set(shown)


def test_a_rule_opens_nothing_that_a_link_leads_to(found, place):
    (place / "link").symlink_to(place / "results")
    if needs("landlock", found):
        for path in (place / "link", place / "link/records.jsonl"):
            with_link = msgspec.structs.replace(confined(place, "landlock"), readable=(str(path),))
            assert in_child(readable(place / "results/records.jsonl"), with_link) == "PermissionError"
        without = msgspec.structs.replace(confined(place, "landlock"), readable=(str(place / "results"),))
        assert in_child(readable(place / "results/records.jsonl"), without) is True


def test_own_files_are_no_links_and_no_patterns(place):
    (place / "candidate.weights.bin").symlink_to(place / "other.py")
    assert [Path(path).name for path in sources.own_files(place / "candidate.py")] == [
        "candidate.py",
        "candidate.cu",
    ]
    (place / "[a-z]*.py").write_text("")
    assert sources.own_files(place / "[a-z]*.py") == [str(place / "[a-z]*.py")]


def test_own_files_are_those_named_after_the_source(place):
    (place / "candidate.b.py").write_text("")
    names = [Path(path).name for path in sources.own_files(place / "candidate.py")]
    assert names == ["candidate.py", "candidate.cu"]
    # What either of two sources could own is neither's.
    (place / "candidate.b.cu").write_text("")
    (place / "candidate.bits").write_text("")
    names = [Path(path).name for path in sources.own_files(place / "candidate.py")]
    assert names == ["candidate.py", "candidate.bits", "candidate.cu"]
    names = [Path(path).name for path in sources.own_files(place / "candidate.b.py")]
    assert names == ["candidate.b.py"]


def test_require_names_the_missing_layer_and_the_mend(monkeypatch):
    lacking = probe.Found(layers=("user",), missing={"landlock": "Function not implemented"})
    monkeypatch.setattr(probe, "probe", lambda: lacking)
    with pytest.raises(UsageError) as refusal:
        probe.chosen("require")
    assert "'landlock' is missing (Function not implemented)" in str(refusal.value)
    assert "Linux 5.13" in str(refusal.value)
    assert probe.chosen("auto") is lacking
    assert probe.chosen("off").layers == ()


@pytest.mark.parametrize("calls_in_child", [False, True])
def test_a_program_that_uses_the_card_can_read_its_own_entry_where_it_is_a_child(calls_in_child, found, place):
    if not needs("landlock", found):
        return
    confinement = msgspec.structs.replace(confined(place, "landlock"), calls_in_child=calls_in_child)

    def of_the_child():
        return subprocess.run(["head", "-c", "1", "/proc/self/maps"], capture_output=True).returncode == 0

    assert in_child(of_the_child, confinement) is calls_in_child


def test_others_processor_time_cannot_be_read(found, place):
    parent = os.getpid()

    def clock(pid, kind=2):
        return lambda: time.clock_gettime((~pid << 3) | kind) >= 0

    assert in_child(clock(parent)) is True
    if needs("seccomp", found):
        inside = confined(place, "seccomp")
        assert in_child(clock(parent), inside) == "OSError"
        # One's own, and those that are not of a process.
        for own in (clock(0), clock(0, 6), time.process_time, time.thread_time, time.monotonic, time.time):
            assert in_child(lambda own=own: own() >= 0, inside) is True
        assert in_child(lambda: time.sleep(0.01), inside) is None
