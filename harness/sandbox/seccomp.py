"""Seccomp: a filter over system calls, assembled here. Refused ones fail as if the kernel did not permit them.

It takes away what namespaces and Landlock leave: looking into other processes, watching files that may not be opened,
kernel interfaces with a history of holes, new namespaces, and sockets other than the local ones that CUDA opens for
itself. It keeps a process and all its descendants in one process group, which can be stopped and killed in one step,
and from changing other processes of its user.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import struct

from harness.sandbox.syscalls import PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG, checked, libc

SECCOMP_SET_MODE_FILTER = 1
# Without it, kernels before 5.16 slow the process down against speculation, which would be timed.
SECCOMP_FILTER_FLAG_SPEC_ALLOW = 4

ALLOW, ERRNO, KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
# The call is not carried out, and its caller told that it was.
PRETEND = ERRNO
LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
# Offsets into struct seccomp_data; the low half of an argument, which is all that the arguments below use.
NUMBER, ARCHITECTURE = 0, 4


class _Machine:
    """An instruction set: its audit number, and its numbers for system calls."""

    def __init__(self, audit: int, numbers: dict[str, int]) -> None:
        self.audit = audit
        self.numbers = numbers


# Numbers from 424 on are the same everywhere.
COMMON = {
    "pidfd_send_signal": 424,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "close_range": 436,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
    "memfd_secret": 447,
    "process_mrelease": 448,
    "setxattrat": 463,
    "open_tree_attr": 467,
    "file_getattr": 468,
    "file_setattr": 469,
}
# The last call that somebody has looked at, of Linux 6.18. Later ones are answered as by a kernel that does not know
# them, which whoever calls them copes with.
REVIEWED = 469
X86_64 = {
    "ioctl": 16,
    "shmget": 29,
    "shmat": 30,
    "shmctl": 31,
    "socket": 41,
    "kill": 62,
    "fcntl": 72,
    "rt_sigqueueinfo": 129,
    "sendfile": 40,
    "splice": 275,
    "tee": 276,
    "tkill": 200,
    "tgkill": 234,
    "rt_tgsigqueueinfo": 297,
    "connect": 42,
    "socketpair": 53,
    "setsockopt": 54,
    "clone": 56,
    "semget": 64,
    "semop": 65,
    "semctl": 66,
    "msgget": 68,
    "msgsnd": 69,
    "msgrcv": 70,
    "msgctl": 71,
    "ptrace": 101,
    "syslog": 103,
    "setpgid": 109,
    "setsid": 112,
    "setpriority": 141,
    "sched_setparam": 142,
    "sched_setscheduler": 144,
    "pivot_root": 155,
    "prctl": 157,
    "setrlimit": 160,
    "chroot": 161,
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "sethostname": 170,
    "setdomainname": 171,
    "iopl": 172,
    "ioperm": 173,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "setxattr": 188,
    "lsetxattr": 189,
    "fsetxattr": 190,
    "sched_setaffinity": 203,
    "io_setup": 206,
    "semtimedop": 220,
    "timer_create": 222,
    "clock_settime": 227,
    "mq_open": 240,
    "mq_unlink": 241,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "ioprio_set": 251,
    "inotify_add_watch": 254,
    "signalfd": 282,
    "timerfd_create": 283,
    "fallocate": 285,
    "clock_gettime": 228,
    "clock_nanosleep": 230,
    "signalfd4": 289,
    "migrate_pages": 256,
    "unshare": 272,
    "vmsplice": 278,
    "move_pages": 279,
    "perf_event_open": 298,
    "seccomp": 317,
    "fanotify_init": 300,
    "prlimit64": 302,
    "name_to_handle_at": 303,
    "open_by_handle_at": 304,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "sched_setattr": 314,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
}
AARCH64 = {
    "io_setup": 0,
    "setxattr": 5,
    "lsetxattr": 6,
    "fsetxattr": 7,
    "fcntl": 25,
    "inotify_add_watch": 27,
    "ioctl": 29,
    "ioprio_set": 30,
    "umount2": 39,
    "mount": 40,
    "fallocate": 47,
    "clock_gettime": 113,
    "clock_nanosleep": 115,
    "pivot_root": 41,
    "chroot": 51,
    "quotactl": 60,
    "sendfile": 71,
    "signalfd4": 74,
    "vmsplice": 75,
    "splice": 76,
    "tee": 77,
    "timerfd_create": 85,
    "acct": 89,
    "unshare": 97,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "timer_create": 107,
    "clock_settime": 112,
    "syslog": 116,
    "ptrace": 117,
    "sched_setparam": 118,
    "sched_setscheduler": 119,
    "sched_setaffinity": 122,
    "setpriority": 140,
    "reboot": 142,
    "setpgid": 154,
    "setsid": 157,
    "sethostname": 161,
    "setdomainname": 162,
    "setrlimit": 164,
    "prctl": 167,
    "settimeofday": 170,
    "mq_open": 180,
    "mq_unlink": 181,
    "msgget": 186,
    "msgctl": 187,
    "msgrcv": 188,
    "msgsnd": 189,
    "semget": 190,
    "semctl": 191,
    "semtimedop": 192,
    "semop": 193,
    "shmget": 194,
    "shmctl": 195,
    "shmat": 196,
    "socket": 198,
    "kill": 129,
    "tkill": 130,
    "tgkill": 131,
    "rt_sigqueueinfo": 138,
    "rt_tgsigqueueinfo": 240,
    "socketpair": 199,
    "setsockopt": 208,
    "connect": 203,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "clone": 220,
    "swapon": 224,
    "swapoff": 225,
    "migrate_pages": 238,
    "move_pages": 239,
    "perf_event_open": 241,
    "seccomp": 277,
    "prlimit64": 261,
    "fanotify_init": 262,
    "name_to_handle_at": 264,
    "open_by_handle_at": 265,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "finit_module": 273,
    "sched_setattr": 274,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}
MACHINES = {
    "x86_64": _Machine(0xC000003E, X86_64 | COMMON),
    "aarch64": _Machine(0xC00000B7, AARCH64 | COMMON),
}

# Refused for some arguments only, or with an error that callers know how to take.
SPECIAL = (
    *("socket", "socketpair", "connect", "clone", "clone3", "prctl", "fcntl", "fallocate", "ioctl"),
    *("setrlimit", "prlimit64", "clock_gettime", "clock_nanosleep", "setsockopt", "close_range"),
)
# Calls by which a signal is sent, with the place of its number. SIGCONT would let go of what the judge has stopped, as
# would a timer's (timer_create), a descriptor's (F_SETSIG) or an ending child's (clone).
SIGNALLING = {
    "kill": 1,
    "tkill": 1,
    "tgkill": 2,
    "rt_sigqueueinfo": 1,
    "rt_tgsigqueueinfo": 2,
    "pidfd_send_signal": 1,
}
SIGCONT, F_SETSIG, CSIGNAL = 18, 10, 0xFF
# A timer goes on while its process is stopped, and wakes whoever waits at such a file in a hard interrupt, which with
# thousands of epolls takes another's turn. Refused as by a kernel that does not know them.
WAKING = ("timerfd_create", "signalfd", "signalfd4")
# Rules and filters take the kernel's own memory, which is in nobody's figures, and are removed by workers of the
# kernel's when their last holder is gone: 16 ms for 65,536 rules, in whoever's turn that is. Refused as by a kernel
# without them. So are a socket's filters (SO_ATTACH_FILTER, SO_ATTACH_BPF, and those of groups of sockets).
RULING = ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp")
FILTERING = (26, 50, 51, 52)
# Flags of a file, as a file system's ioctl sets them (IOCTL_TYPES).
MARKING = ("file_getattr", "file_setattr")
# One byte of a file in a pipe or a socket keeps all of its large page, which is in nobody's figures: 32 MiB a pipe.
# Refused as for files that do not take it: who copies so then reads and writes.
PIPING = ("splice", "tee", "vmsplice", "sendfile")
# Attributes of a file that is memory lie in the kernel's own, which is in nobody's figures: gigabytes a second. Refused
# as by a file system that has none, which whoever copies files takes.
LABELLING = ("setxattr", "lsetxattr", "fsetxattr", "setxattrat")
# They would lead out of the process group. Ninja and subprocess need not notice.
REGROUPING = ("setsid", "setpgid")
# Calls on a process or thread by its number, the first argument. A library that pins its threads names each by its own
# number, which no filter can know: it goes on as if it had.
PLACING = ("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler")
ON_A_PROCESS = ("migrate_pages", "move_pages")
# The first argument says whether the second is a process (this number), a group or a user.
BY_KIND = {"setpriority": 0, "ioprio_set": 1}
AF_UNIX = 1
# Of the others, a datagram reaches whoever listens at a path, without `connect`. Behind the type are flags.
CONNECTED, TYPE_BITS = (1, 5), 0x0F
# Whoever opens a leased file waits, up to 45 s, for the process that has the lease. A notice tells of a folder.
F_SETLEASE, F_NOTIFY = 1024, 1026
# What a pipe holds is in nobody's figures, and taken for what it holds at first: 16 pages.
F_SETPIPE_SZ, PIPE_BYTES = 1031, 16 * resource.getpagesize()
# Of an ioctl's number, the byte that says whose it is: unified memory of a card, its driver, the same below Windows,
# terminals, sockets. File systems have others: with theirs, files get room beyond the limit, are made read-only for
# root, too, or so that a folder takes hours to remove.
IOCTL_TYPES, IOCTL_TYPE = (0x00, 0x46, 0x47, 0x54, 0x89), 0xFF00
# What a process may ask of itself or set (prctl): the signal as its parent ends, whether its user may look into it, a
# thread's name, how exact its waits are, large pages; what its filter and capabilities are, and that no call gives it
# more; on arm64 the lengths of vectors. Others are refused as by a kernel that does not know them: some take memory
# that is in nobody's figures (a gigabyte for PR_FUTEX_HASH, less for names of mappings and PR_SET_PTRACER),
# PR_SCHED_CORE keeps a core for one's own processes, PR_SET_SECCOMP is as RULING.
PROPERTIES = (2, 3, PR_SET_DUMPABLE, 15, 16, 29, 30, 41, 42, 21, 23, PR_SET_NO_NEW_PRIVS, 39, 51, 64)
# The processor time of any process has a clock, by its number: a candidate would read from the judge's what comes next.
# They are negative numbers; these two are the caller's own, of its process and of its thread.
A_PROCESS, OWN_PROCESS, OWN_THREAD = 0x80000000, 0xFFFFFFFA, 0xFFFFFFFE
# A thread with descriptors of its own: nobody looks for them there, and with a thousand threads it has as many more.
CLONE_FILES, CLONE_THREAD, CLOSE_RANGE_UNSHARE = 0x400, 0x10000, 2
NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000


def restrict(*, shares_user: bool) -> None:
    """Put the filter in force for this thread and its descendants; needs no_new_privs. Raises OSError.

    `shares_user`: whether other processes have the same user, and are only kept from harm by this filter.
    """
    code = program(os.uname().machine, os.getpid() if shares_user else None)
    buffer = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: a count, padding, a pointer.
    prog = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    number = MACHINES[os.uname().machine].numbers["seccomp"]
    checked(libc.syscall(number, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, prog), "seccomp")


def program(machine: str, only: int | None = None) -> bytes:
    """The filter for an instruction set, as classic BPF. Raises OSError for one that it was not written for.

    `only`: the one process, beside the caller itself, whose limits, priority and place may be changed; None for any.
    """
    if machine not in MACHINES:
        raise OSError(errno.ENOSYS, f"seccomp: {os.strerror(errno.ENOSYS)} for {machine}")
    known = MACHINES[machine]
    code = [_op(LOAD, ARCHITECTURE), _op(JUMP_EQUAL, known.audit, 1, 0), _op(RETURN, KILL_PROCESS), _op(LOAD, NUMBER)]
    # Among those are x86-64's x32 calls, which would be a second way to everything.
    code += [_op(JUMP_AT_LEAST, REVIEWED + 1, 0, 1), _op(RETURN, ERRNO | errno.ENOSYS)]
    for name, number in known.numbers.items():
        if name in REGROUPING:
            code += _when(number, [_op(RETURN, PRETEND)])
        elif name in (*PLACING, *ON_A_PROCESS, *BY_KIND):
            code += _when(number, _foreign(name, only)) if only is not None else []
        elif name in SIGNALLING:
            code += _when(number, _argument(SIGNALLING[name], _op(JUMP_EQUAL, SIGCONT, 1, 0), errno.EPERM))
        elif name in (*WAKING, *RULING, *MARKING):
            code += _when(number, [_op(RETURN, ERRNO | errno.ENOSYS)])
        elif name in PIPING:
            code += _when(number, [_op(RETURN, ERRNO | errno.EINVAL)])
        elif name in LABELLING:
            code += _when(number, [_op(RETURN, ERRNO | errno.EOPNOTSUPP)])
        elif name not in SPECIAL:
            code += _when(number, [_op(RETURN, ERRNO | errno.EPERM)])
    # glibc falls back to clone, whose flags can be looked at.
    code += _when(known.numbers["clone3"], [_op(RETURN, ERRNO | errno.ENOSYS)])
    # Nobody listens: what CUDA concludes when it looks for its optional daemons.
    code += _when(known.numbers["connect"], [_op(RETURN, ERRNO | errno.ECONNREFUSED)])
    for name in ("socket", "socketpair"):
        code += _when(known.numbers[name], _local_and_connected())
    apart = [_load(0), _op(JUMP_ANY_BIT, NEW_NAMESPACES, 4, 0)]
    threads = [_op(JUMP_ANY_BIT, CLONE_THREAD, 0, 1), _op(JUMP_ANY_BIT, CLONE_FILES, 0, 2)]
    ends = [_op(AND, CSIGNAL), _op(JUMP_EQUAL, SIGCONT, 0, 1), _op(RETURN, ERRNO | errno.EPERM), _op(RETURN, ALLOW)]
    code += _when(known.numbers["clone"], [*apart, *threads, *ends])
    unshares = [_load(2), _op(JUMP_ANY_BIT, CLOSE_RANGE_UNSHARE, 0, 1), _op(RETURN, ERRNO | errno.EINVAL)]
    code += _when(known.numbers["close_range"], [*unshares, _op(RETURN, ALLOW)])
    larger = [_op(JUMP_EQUAL, F_SETPIPE_SZ, 0, 2), _load(2), _op(JUMP_AT_LEAST, PIPE_BYTES + 1, 4, 3)]
    tests = [_op(JUMP_EQUAL, command, 3 - at, 0) for at, command in enumerate((F_SETSIG, F_SETLEASE, F_NOTIFY))]
    kept = [_load(1), *larger, *tests, _op(RETURN, ALLOW), _op(RETURN, ERRNO | errno.EPERM)]
    code += _when(known.numbers["fcntl"], kept)
    # A child that outlives the harness would have to take its own parent-death signal away. Pools of workers set it and
    # need not notice: all of the group end together.
    deathless = [_load(0), _op(JUMP_EQUAL, PR_SET_PDEATHSIG, 0, 1), _op(RETURN, PRETEND)]
    tests = [_op(JUMP_EQUAL, option, len(PROPERTIES) - at, 0) for at, option in enumerate(PROPERTIES)]
    code += _when(known.numbers["prctl"], [*deathless, *tests, _op(RETURN, ERRNO | errno.EINVAL), _op(RETURN, ALLOW)])
    tests = [_op(JUMP_EQUAL, option, len(FILTERING) - at, 0) for at, option in enumerate(FILTERING)]
    code += _when(
        known.numbers["setsockopt"], [_load(2), *tests, _op(RETURN, ALLOW), _op(RETURN, ERRNO | errno.ENOPROTOOPT)]
    )
    # With a mode it takes room behind a file's end, which the limit for a file's size does not count.
    code += _when(known.numbers["fallocate"], _argument(1, _op(JUMP_EQUAL, 0, 0, 1), errno.EOPNOTSUPP))
    tests = [_op(JUMP_EQUAL, kind << 8, len(IOCTL_TYPES) - at, 0) for at, kind in enumerate(IOCTL_TYPES)]
    taken = [_load(1), _op(AND, IOCTL_TYPE), *tests, _op(RETURN, ERRNO | errno.ENOTTY), _op(RETURN, ALLOW)]
    code += _when(known.numbers["ioctl"], taken)
    own = [_op(JUMP_EQUAL, OWN_PROCESS, 1, 0), _op(JUMP_EQUAL, OWN_THREAD, 0, 1), _op(RETURN, ALLOW)]
    for name in ("clock_gettime", "clock_nanosleep"):
        others = [_op(JUMP_ANY_BIT, A_PROCESS, 0, 2), *own, _op(RETURN, ERRNO | errno.EINVAL)]
        code += _when(known.numbers[name], [_load(0), *others])
    # The limit for core dumps is one that may not be lowered (enforcement.NO_CORE). Whoever lowers it need not notice.
    core = _op(JUMP_EQUAL, resource.RLIMIT_CORE, 0, 1)
    code += _when(known.numbers["setrlimit"], [_load(0), core, _op(RETURN, PRETEND), _op(RETURN, ALLOW)])
    code += _when(known.numbers["prlimit64"], _limit_of_cores_kept(only))
    code.append(_op(RETURN, ALLOW))
    return b"".join(code)


def _foreign(name: str, only: int) -> list[bytes]:
    """Refuse a call on a process other than `only` and the caller, which 0 stands for."""
    refusal = PRETEND if name in PLACING else ERRNO | errno.EPERM
    number = [_op(JUMP_EQUAL, 0, 2, 0), _op(JUMP_EQUAL, only, 1, 0), _op(RETURN, refusal), _op(RETURN, ALLOW)]
    if name not in BY_KIND:
        return [_load(0), *number]
    return [_load(0), _op(JUMP_EQUAL, BY_KIND[name], 1, 0), _op(RETURN, refusal), _load(1), *number]


def _limit_of_cores_kept(only: int | None) -> list[bytes]:
    """Allow prlimit64 as _foreign does, but pretend where it is to set the limit for core dumps."""
    foreign = [] if only is None else _foreign("prlimit64", only)[:-1]
    return [
        *foreign,
        _load(1),
        _op(JUMP_EQUAL, resource.RLIMIT_CORE, 1, 0),
        _op(RETURN, ALLOW),
        # The new limit's address, in two halves; none where the old one is only asked for.
        _load(2),
        _op(JUMP_EQUAL, 0, 0, 2),
        _op(LOAD, 16 + 8 * 2 + 4),
        _op(JUMP_EQUAL, 0, 1, 0),
        _op(RETURN, PRETEND),
        _op(RETURN, ALLOW),
    ]


def _local_and_connected() -> list[bytes]:
    """Allow sockets that reach nobody without `connect`."""
    stream, packets = CONNECTED
    return [
        _load(0),
        _op(JUMP_EQUAL, AF_UNIX, 0, 5),
        _load(1),
        _op(AND, TYPE_BITS),
        _op(JUMP_EQUAL, stream, 1, 0),
        _op(JUMP_EQUAL, packets, 0, 1),
        _op(RETURN, ALLOW),
        _op(RETURN, ERRNO | errno.EAFNOSUPPORT),
    ]


def _load(index: int) -> bytes:
    """Load the low half of an argument."""
    return _op(LOAD, 16 + 8 * index)


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One struct sock_filter."""
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _when(number: int, then: list[bytes]) -> list[bytes]:
    """Carry out `then`, which must return, where the call has this number."""
    return [_op(JUMP_EQUAL, number, 0, len(then)), *then]


def _argument(index: int, test: bytes, error: int) -> list[bytes]:
    """Allow the call where `test` on the low half of an argument falls through. Where it jumps by one, refuse it with
    `error`, or pretend that it was carried out if that is 0."""
    return [_load(index), test, _op(RETURN, ALLOW), _op(RETURN, ERRNO | error)]
