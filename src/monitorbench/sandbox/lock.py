"""Takes away from a process, before it runs foreign code, all but computing: files, network, processes.

Filters can't be removed, not even by root. What is left can compute, sleep, allocate up to its limit and
write to descriptors it already has. The filter is a list of what is allowed, so a system call nobody
thought of is refused as well."""

import ast
import contextlib
import ctypes
import errno
import importlib
import os
import resource
import struct
import sys

_LIMITS_THAT_MACOS_LACKS = ("RLIMIT_AS",)
_MACOS_PROFILE = b"(version 1)(allow default)(deny network*)(deny file-write*)(deny process-fork)"
_AUDIT_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_COMPUTE = {
    "x86_64": {
        "read": 0, "write": 1, "close": 3, "fstat": 5, "lseek": 8, "mmap": 9, "mprotect": 10,
        "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15,
        "sched_yield": 24, "mremap": 25, "madvise": 28, "nanosleep": 35, "getpid": 39, "exit": 60,
        "gettimeofday": 96, "getrusage": 98, "times": 100, "sigaltstack": 131, "gettid": 186, "futex": 202,
        "restart_syscall": 219, "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230,
        "exit_group": 231, "getrandom": 318,
    },
    "aarch64": {
        "close": 57, "lseek": 62, "read": 63, "write": 64, "fstat": 80, "exit": 93, "exit_group": 94,
        "futex": 98, "nanosleep": 101, "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115,
        "sched_yield": 124, "restart_syscall": 128, "sigaltstack": 132, "rt_sigaction": 134,
        "rt_sigprocmask": 135, "rt_sigreturn": 139, "times": 153, "getrusage": 165, "gettimeofday": 169,
        "getpid": 172, "gettid": 178, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222,
        "mprotect": 226, "madvise": 233, "getrandom": 278,
    },
}  # fmt: skip
_FREE_MEMORY = (4, 8, 14)
"""Advice on memory: MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE: all that an allocator gives (`madvise(2)`)."""
_LOAD_MODULES = {
    "x86_64": {
        "stat": 4, "lstat": 6, "ioctl": 16, "pread64": 17, "access": 21, "uname": 63, "fcntl": 72,
        "getcwd": 79, "readlink": 89, "sysinfo": 99, "getuid": 102, "getgid": 104, "geteuid": 107,
        "getegid": 108, "prctl": 157, "getdents64": 217, "openat": 257, "newfstatat": 262,
        "readlinkat": 267, "statx": 332,
    },
    "aarch64": {
        "getcwd": 17, "fcntl": 25, "ioctl": 29, "faccessat": 48, "openat": 56, "getdents64": 61,
        "pread64": 67, "readlinkat": 78, "newfstatat": 79, "uname": 160, "prctl": 167, "getuid": 174,
        "geteuid": 175, "getgid": 176, "getegid": 177, "sysinfo": 179, "statx": 291,
    },
}  # fmt: skip


def allow_only(allowed: "set[int]", madvise: int, architecture: int) -> None:
    """Install a seccomp filter that answers EPERM to every system call that isn't in `allowed`.

    `madvise` is the call that is let through with an advice of `_FREE_MEMORY` alone. The program is classic
    BPF over `struct seccomp_data` (linux/seccomp.h): number at offset 0, architecture at offset 4, the lower
    half of the third argument at offset 32, which is all that the kernel takes of an advice. Raises OSError
    where the kernel refuses.
    """
    load_word, jump_if_equal, answer = 0x20, 0x15, 0x06
    numbers, advices = sorted(allowed - {madvise}), len(_FREE_MEMORY)
    left = len(numbers) + advices + 2  # steps from the first number up to the refusal
    steps = [(load_word, 0, 0, 4), (jump_if_equal, 0, left + 1, architecture), (load_word, 0, 0, 0)]
    steps += [(jump_if_equal, left - i, 0, number) for i, number in enumerate(numbers)]
    steps += [(jump_if_equal, 0, advices + 1, madvise), (load_word, 0, 0, 32)]
    steps += [(jump_if_equal, advices - i, 0, advice) for i, advice in enumerate(_FREE_MEMORY)]
    steps += [(answer, 0, 0, 0x00050000 | errno.EPERM), (answer, 0, 0, 0x7FFF0000)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))

    class _Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    filter_ = _Filter(len(steps), ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    zero = ctypes.c_ulong(0)
    if libc.prctl(no_new_privileges, ctypes.c_ulong(1), zero, zero, zero) or libc.prctl(
        set_seccomp, ctypes.c_ulong(filter_mode), ctypes.byref(filter_), zero, zero
    ):
        code = ctypes.get_errno()
        raise OSError(code, f"the kernel refuses a seccomp filter: {os.strerror(code)}")


def limit_resources(cpu_seconds: int, memory_bytes: int) -> None:
    """Limit CPU time and memory, and take away files, new processes and core dumps."""
    limits = {
        "RLIMIT_CPU": (cpu_seconds, cpu_seconds + 1),
        "RLIMIT_AS": (memory_bytes, memory_bytes),
        "RLIMIT_FSIZE": (0, 0),
        "RLIMIT_CORE": (0, 0),
        "RLIMIT_NOFILE": (32, 32),
        "RLIMIT_NPROC": (0, 0),
    }
    for name, limit in limits.items():
        if sys.platform == "darwin" and name in _LIMITS_THAT_MACOS_LACKS:
            continue
        resource.setrlimit(getattr(resource, name), limit)


def _lock_macos() -> None:
    """Take away network, writing and new processes. Raises OSError where the system refuses."""
    reason = ctypes.c_char_p()
    if ctypes.CDLL(None).sandbox_init(_MACOS_PROFILE, ctypes.c_uint64(0), ctypes.byref(reason)):
        raise OSError(f"the system refuses the sandbox: {reason.value!r}")


def lock(modules: "list[str]") -> None:
    """Load these standard modules, then leave the process nothing but computing.

    Raises OSError where the system refuses to, or where this machine type is not known.
    """
    if sys.platform != "linux":
        _load(modules)
        _lock_macos()
        return
    machine = os.uname().machine
    if machine not in _AUDIT_ARCHITECTURE:
        raise OSError(f"no list of system calls for the machine type {machine!r}")
    compute, madvise = set(_COMPUTE[machine].values()), _COMPUTE[machine]["madvise"]
    architecture = _AUDIT_ARCHITECTURE[machine]
    allow_only(compute | set(_LOAD_MODULES[machine].values()), madvise, architecture)
    _load(modules)
    allow_only(compute, madvise, architecture)


def imported_modules(source: str) -> "list[str]":
    """Standard modules named by the source's import statements, found without running it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return sorted(name for name in names if name.split(".")[0] in sys.stdlib_module_names)


def _load(modules: "list[str]") -> None:
    for name in modules:
        # Not ours to report: the candidate meets the same error at its own import statement. Some modules
        # are scripts and leave by SystemExit (`unittest.__main__`, `idlelib.idle`).
        with contextlib.suppress(Exception, SystemExit):
            importlib.import_module(name)
    sys.modules["random"].seed(0)
