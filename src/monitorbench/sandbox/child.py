"""What runs inside the sandbox: a template process that starts a locked process for every program.

`sandbox.py` starts this file as a script, under `python -s -P -S`; nothing of ours imports it but for its
constants, and it imports nothing of monitorbench. The template runs no foreign code. For every program it
forks, because a fork costs a tenth of a new interpreter; the fork owns the order of things:

1. limit resources, close the template's pipes, and (Linux) install a seccomp filter that lets through
   the system calls named below and no others;
2. import the standard modules the program names, then install a second filter that also takes away
   opening files;
3. say `ready`, and only now run code that isn't ours.

Filters can't be removed, not even by root. What is left can compute, sleep, allocate up to its limit
and write to descriptors it already has: no socket, no file, no new process, no signal to others.
The filter is a list of what is allowed, so a system call nobody thought of is refused as well.
"""

import ast
import ctypes
import errno
import gc
import importlib
import marshal
import os
import resource
import select
import signal
import struct
import sys
import time

READY = b"ready\n"
TOKEN_BYTES = 32
REQUEST = struct.Struct("=Qd")
"""Bytes of the program that follows, and the seconds it may take by the clock."""
REPLY = struct.Struct(f"=i?{TOKEN_BYTES}sQ")
"""Exit code, whether the clock ran out, the token, and bytes of the answer that follows."""

_ANSWER_LIMIT = 4096
# Always there, whatever a program names: else one program's outcome would depend on those before it.
_LOADED_ONCE = (
    "_strptime", "array", "bisect", "cmath", "collections", "copy", "datetime", "decimal", "fractions",
    "functools", "hashlib", "heapq", "itertools", "json", "math", "operator", "random", "re", "statistics",
    "string", "typing",
)  # fmt: skip
_DIE_WITH_PARENT = 1

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


def _allow_only(allowed: "set[int]", architecture: int) -> None:
    """Install a seccomp filter that answers EPERM to every system call that isn't in `allowed`.

    The program is classic BPF over `struct seccomp_data` (linux/seccomp.h): number at offset 0,
    architecture at offset 4. Raises OSError where the kernel refuses.
    """
    load_word, jump_if_equal, answer = 0x20, 0x15, 0x06
    count = len(allowed)
    steps = [(load_word, 0, 0, 4), (jump_if_equal, 0, count + 1, architecture), (load_word, 0, 0, 0)]
    steps += [(jump_if_equal, count - i, 0, number) for i, number in enumerate(sorted(allowed))]
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


def _limit_resources(cpu_seconds: int, memory_bytes: int) -> None:
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


def _lock(modules: "list[str]") -> None:
    if sys.platform != "linux":
        _load(modules)
        _lock_macos()
        return
    machine = os.uname().machine
    if machine not in _AUDIT_ARCHITECTURE:
        raise OSError(f"no list of system calls for the machine type {machine!r}")
    compute = set(_COMPUTE[machine].values())
    architecture = _AUDIT_ARCHITECTURE[machine]
    _allow_only(compute | set(_LOAD_MODULES[machine].values()), architecture)
    _load(modules)
    _allow_only(compute, architecture)


def _read_exactly(descriptor: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(descriptor, size)
        if not part:
            raise EOFError("the caller closed the pipe early")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _private(descriptor: int) -> int:
    """Move one of the caller's pipes out of the candidate's standard streams."""
    private = os.dup(descriptor)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, descriptor)
    os.close(null)
    return private


def _imported_modules(source: str) -> "list[str]":
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
        # Not ours to report: the candidate meets the same error at its own import statement.
        try:
            importlib.import_module(name)
        except Exception:
            continue
    sys.modules["random"].seed(0)


def _run_locked(payload: bytes, tokens: int, answers: int) -> None:
    """Lock this process and run one program in it; write `ready` and a verdict to `answers`.

    The verdict is the token, `passed` or `failed`, and a line of detail. The token is left in its pipe
    until the checks are over, so it isn't in any variable the candidate could come across.
    """
    try:
        code, check, cpu_seconds, memory_bytes = marshal.loads(payload)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, ctypes.c_ulong(signal.SIGKILL))
        # The limit counts whole seconds and is the backstop; the timer below ends the candidate before.
        _limit_resources(int(cpu_seconds) + 1, memory_bytes)
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        _lock(_imported_modules(code) + _imported_modules(check))
    except (OSError, ValueError, EOFError, MemoryError) as error:
        os.write(answers, f"{type(error).__name__}: {error}".encode())
        return
    # The candidate may replace what `os` holds; these stay.
    read, write, leave = os.read, os.write, os._exit
    write(answers, READY)
    verdict, detail = b"passed\n", b""
    namespace = {"__name__": "candidate"}
    try:
        exec(compile(code, "<candidate>", "exec"), namespace)
        exec(compile(check, "<check>", "exec"), namespace)
    except BaseException as error:
        verdict = b"failed\n"
        try:
            detail = f"{type(error).__name__}: {error}"[:200].encode("utf-8", "replace")
        except BaseException:
            detail = b"an error that can't be shown"
    write(answers, read(tokens, TOKEN_BYTES) + verdict + detail)
    leave(0)


def _answer_of(
    payload: bytes, seconds: float, private: "tuple[int, int]"
) -> "tuple[int, bool, bytes, bytes]":
    """Run one program in a fork; exit code, whether the clock ran out, token and answer."""
    tokens, token_end = os.pipe()
    answers, answer_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for descriptor in (*private, token_end, answers):
                os.close(descriptor)
            _run_locked(payload, tokens, answer_end)
        finally:
            os._exit(1)
    os.close(answer_end)
    # Drawn after the fork: the child's memory doesn't hold it.
    token = os.urandom(TOKEN_BYTES)
    os.write(token_end, token)
    deadline = time.monotonic() + seconds
    answer, out_of_time = b"", False
    waiting = select.poll()
    waiting.register(answers, select.POLLIN)
    # Bounded: a candidate that finds the pipe can't fill our memory through it.
    while len(answer) < _ANSWER_LIMIT:
        if not waiting.poll(max(0.0, deadline - time.monotonic()) * 1000):
            out_of_time = True
            break
        part = os.read(answers, _ANSWER_LIMIT)
        if not part:
            break
        answer += part
    os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for descriptor in (tokens, token_end, answers):
        os.close(descriptor)
    return status, out_of_time, token, answer


def main() -> None:
    """Answer requests from what was stdin to what was stdout, one at a time, until the caller closes it."""
    requests, replies = _private(0), _private(1)
    for name in _LOADED_ONCE:
        importlib.import_module(name)
    gc.freeze()
    while True:
        try:
            size, seconds = REQUEST.unpack(_read_exactly(requests, REQUEST.size))
            payload = _read_exactly(requests, size)
        except EOFError:
            return
        status, out_of_time, token, answer = _answer_of(payload, seconds, (requests, replies))
        _write_all(replies, REPLY.pack(status, out_of_time, token, len(answer)) + answer)


if __name__ == "__main__":
    main()
