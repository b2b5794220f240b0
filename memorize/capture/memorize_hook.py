"""The hook program: what the agent hands over goes into the spool, what memorize knows may come out.

Run as ``python -I -S <home>/hook/memorize_hook.py <agent> <event>``. It loads only frozen and built-in modules (and
``_signal`` is there from the start), prints nothing but a complete answer and always leaves with status 0: to an agent
any other may mean "block". ``__future__`` is a file, so it is not imported here. Importing this has no side effects.
"""
# ruff: noqa: SIM105  (contextlib is a file too)

import sys
import time
import zlib
from _signal import SIG_IGN, SIGINT, signal  # type: ignore[import-not-found]
from _thread import allocate_lock, start_new_thread

if sys.platform == "win32":
    import nt as posix
else:
    import posix

# Copies of memorize.limits, which cannot be imported here; a test compares them.
CAPTURE_BYTES_MAX = 4 * 1024 * 1024
HOOK_STDIN_S_MAX = 5.0
LATE_MARK_S = 30
LEAN_CHILD_S_MAX = 1.5
START_S, PROMPT_S, BEFORE_S = 0.3, 0.15, 0.1
REPLY_BYTES_MAX, SOCKET_PATH_BYTES_MAX, WORD_CHARS_MAX = 64 * 1024, 100, 32

# Events that may be answered, in the agents' own spellings without case and punctuation: the whole time for asking.
_PROMPTS = "userpromptsubmit userpromptsubmitted beforeagent beforesubmitprompt preuserprompt chatmessage"
_BEFORE = "pretooluse beforetool beforeshellexecution beforemcpexecution preruncommand prewritecode toolexecutebefore"
ANSWER_S = {**dict.fromkeys(_PROMPTS.split(), PROMPT_S), **dict.fromkeys(_BEFORE.split(), BEFORE_S)}
ANSWER_S |= {"sessionstart": START_S, "sessioncreated": START_S}
_ENDS = ("sessionend", "precompact", "precompress", "agentstop")  # then a daemon is wanted, to consolidate

_HEX, _CHUNK = "0123456789abcdef", 64 * 1024
_WORD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_."
_WRITE = posix.O_WRONLY | posix.O_CREAT | getattr(posix, "O_BINARY", 0)
_NULL, _SLASH = ("nul", "\\") if sys.platform == "win32" else ("/dev/null", "/")


def _is(text: str, allowed: str, least: int, most: int) -> bool:
    return least <= len(text) <= most and not text.strip(allowed)


def spool_name(mono: int, nonce: bytes, length: int, crc: int, agent: str, event: str, cut: bool = False) -> str:
    """Return the name of a spool file: monotonic ns, nonce, length and crc32 of its bytes, agent, event, cut mark.

    ``agent`` and ``event`` are 1 to 32 of ``A-Z a-z 0-9 _ .``; ``ValueError`` for anything else.
    """
    if not _named(agent, event) or len(nonce) != 16:
        raise ValueError
    return f"{mono:016x}-{nonce.hex()}-{length:x}-{crc:08x}-{agent}-{event}{'-cut' if cut else ''}"


def parse_name(name: str) -> "tuple[int, bytes, int, int, str, str, bool] | None":
    """Return (mono, nonce, length, crc, agent, event, cut), or None for a name that ``spool_name`` never gives."""
    parts = name.split("-")
    cut = len(parts) == 7 and parts[6] == "cut"
    if len(parts) != 6 + cut:
        return None
    mono, nonce, length, crc, agent, event = parts[:6]
    if not (_is(mono, _HEX, 16, 16) and _is(nonce, _HEX, 32, 32) and _is(crc, _HEX, 8, 8) and _is(length, _HEX, 1, 16)):
        return None
    if not _named(agent, event) or (length != "0" and length[0] == "0"):
        return None
    return int(mono, 16), bytes.fromhex(nonce), int(length, 16), int(crc, 16), agent, event, cut


def _named(agent: str, event: str) -> bool:
    return _is(agent, _WORD, 1, WORD_CHARS_MAX) and _is(event, _WORD, 1, WORD_CHARS_MAX)


def _bytes(path: str) -> bytes:
    return path.encode(sys.getfilesystemencoding(), "surrogateescape")


def _env(name: str) -> str:
    if sys.platform == "win32":
        return str(posix.environ.get(name, ""))
    return str(posix.environ.get(name.encode(), b""), sys.getfilesystemencoding(), "surrogateescape")


def _stat(path: "str | bytes", follow: bool = True) -> "posix.stat_result | None":
    try:
        return posix.stat(path, follow_symlinks=follow)
    except (OSError, ValueError):
        return None


def socket_path(root: str) -> str:
    """Return the daemon's socket for the state directory ``root`` (absolute).

    A Unix socket's path holds about 100 bytes; for a longer one it lies in a directory of its own below ``/tmp``, which
    the daemon makes with mode 0700 and which both sides use only when ``own_directory`` says so.
    """
    path = f"{root}/hook/daemon.sock"
    if len(_bytes(path)) <= SOCKET_PATH_BYTES_MAX:
        return path
    return f"/tmp/memorize-{posix.getuid()}-{zlib.crc32(_bytes(root)):08x}/d.sock"


def own_directory(path: str) -> bool:
    """Tell whether ``path`` is a real directory of this user that nobody else can enter."""
    found = _stat(path, follow=False)
    return found is not None and found.st_mode & 0o170077 == 0o040000 and found.st_uid == posix.getuid()


def brief_key(agent: str, cwd: str) -> "tuple[str, bytes]":
    """Return the name below ``hook/briefs`` of the brief for this agent and directory, and its first line."""
    return f"{zlib.crc32(_bytes(agent + chr(0) + cwd)):08x}", _bytes(f"{agent}\t{cwd}\n")


def _slurp(path: str, most: int = _CHUNK) -> "bytes | None":
    try:
        with open(path, "rb", 0) as file:
            return file.read(most)
    except OSError:
        return None


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[posix.write(fd, rest) :]
        except BlockingIOError:
            time.sleep(0.002)


def _quiet(function, *args: object):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 (types: another file)
    try:
        return function(*args)
    except OSError:
        return None


def _young(mark: str) -> bool:
    found = _stat(mark)
    return found is not None and 0 <= time.time() - found.st_mtime < LATE_MARK_S


def _mark(path: str) -> None:
    _write(posix.open(path, _WRITE | posix.O_TRUNC, 0o600), b"1")


def _opted_out(root: str, cwd: str) -> bool:
    above = [cwd]
    while above[-1].strip("/"):
        above.append(above[-1].rpartition("/")[0] or "/")
    for folder in above:
        text = _slurp(f"{folder}/.memorize.toml")
        if text and b"capture" in text:
            for line in text.replace(b"\xef\xbb\xbf", b"").splitlines():
                if line.partition(b"#")[0].replace(b" ", b"").replace(b"\t", b"") == b"capture=false":
                    return True
    listed = _slurp(f"{root}/exclude", 1 << 20) or b""
    places = [(found.st_dev, found.st_ino) for folder in above if listed and (found := _stat(folder))]
    for line in listed.splitlines():
        path = line.strip()
        if path[:1] == b"~":
            path = _bytes(_env("HOME")) + path[1:]
        # Compared as places, so that a link or another spelling of the directory is excluded as well.
        if path[:1] == b"/" and (found := _stat(path)) and (found.st_dev, found.st_ino) in places:
            return True
    return False


class _Drop:
    # One spool file in the making. Under the lock the bytes written, length and crc agree.

    def __init__(self, root: str, agent: str, event: str) -> None:
        self.spool = f"{root}/spool"
        self.agent, self.event = agent, event
        self.word = event.lower().replace("_", "").replace(".", "")
        self.seconds = ANSWER_S.get(self.word, 0.0)
        self.mono, self.nonce = time.monotonic_ns(), posix.urandom(16)
        self.path = f"{self.spool}/tmp/{self.mono:016x}-{self.nonce.hex()}"
        self.lock = allocate_lock()
        self.fd = -1
        self.length = self.crc = 0
        self.cut = self.done = False
        self.kept = bytearray()  # the payload, for the byte test before a tool

    def fill(self, data: "bytes | None" = None) -> str:
        # From data, else standard input. The name of the finished file; empty when nothing is left of it.
        try:
            for folder in (self.spool, f"{self.spool}/tmp", f"{self.spool}/new"):
                _quiet(posix.mkdir, folder, 0o700)
            self.fd = posix.open(self.path, _WRITE | posix.O_EXCL, 0o600)
            while chunk := self.read() if data is None else data:
                self.add(chunk)
                data = data and b""
            with self.lock:
                return self.finish()
        except BaseException:
            self.done = True
            _quiet(posix.unlink, self.path)
            return ""

    def read(self) -> bytes:
        while True:
            try:
                return posix.read(0, _CHUNK)
            except BlockingIOError:
                time.sleep(0.002)
            except OSError:
                self.cut = True
                return b""

    def add(self, chunk: bytes) -> None:
        with self.lock:
            room = CAPTURE_BYTES_MAX - self.length
            if len(chunk) > room:
                self.cut = True
                chunk = chunk[:room]
            _write(self.fd, chunk)
            self.length += len(chunk)
            self.crc = zlib.crc32(chunk, self.crc)
            if self.seconds == BEFORE_S:
                self.kept += chunk

    def finish(self) -> str:
        posix.close(self.fd)
        name = spool_name(self.mono, self.nonce, self.length, self.crc, self.agent, self.event, self.cut)
        posix.rename(self.path, f"{self.spool}/new/{name}")
        self.done = True
        return name


def _watch(drop: _Drop) -> None:
    # Standard input that never ends: keep what came, marked as cut. Otherwise the answer gets three seconds more.
    try:
        time.sleep(HOOK_STDIN_S_MAX)
        if drop.lock.acquire(True, 1.0) and not drop.done:
            drop.cut = True
            drop.finish()
        elif drop.done:
            time.sleep(3)
    except BaseException:
        _quiet(posix.unlink, drop.path)
    finally:
        posix._exit(0)


def _ask(path: str, name: str, seconds: float) -> bytes:
    # The daemon's answer; empty when it is not a complete one. OSError when none came in time.
    import _socket

    end = time.monotonic() + seconds
    link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    link.settimeout(seconds)
    link.connect(path)
    link.send(f"A {name}\n".encode())  # far below what a fresh socket takes at once
    reply = b""
    while (left := end - time.monotonic()) > 0:
        link.settimeout(left)
        chunk = link.recv(_CHUNK)
        reply += chunk
        size, newline, text = reply.partition(b"\n")
        if newline or not chunk or len(size) > 8:
            if not (newline and size.isdigit() and len(size) <= 8 and int(size) <= REPLY_BYTES_MAX):
                return b""
            if len(text) >= int(size) or not chunk:
                return text if len(text) == int(size) else b""
    raise TimeoutError


def _spawn(root: str, argv: "list[str]", out: int) -> int:
    # A child that holds none of our descriptors: an agent waits until the last copy of its pipes is closed.
    for fd in _quiet(posix.listdir, "/dev/fd") or range(256):
        _quiet(posix.set_inheritable, int(fd), False)
    null = posix.open(_NULL, posix.O_RDWR)
    streams = [(posix.POSIX_SPAWN_DUP2, null if fd != 1 or out < 0 else out, fd) for fd in (0, 1, 2)]
    environ = {**posix.environ, b"MEMORIZE_HOME": _bytes(root)}
    argv = [sys.executable, *argv]
    try:
        return posix.posix_spawn(argv[0], argv, environ, file_actions=streams, setsid=out < 0, setsigdef=(SIGINT,))
    except NotImplementedError:  # a C library without it: at least not in the agent's process group
        return posix.posix_spawn(argv[0], argv, environ, file_actions=streams, setpgroup=0, setsigdef=(SIGINT,))


def _lean(root: str, args: "list[str]") -> bytes:
    # The lean child's output; empty unless it ended well within its time.
    end = time.monotonic() + LEAN_CHILD_S_MAX
    source, sink = posix.pipe()
    child = _spawn(root, ["-I", "-S", f"{root}/hook/memorize_lean.py", *args], sink)
    posix.close(sink)
    posix.set_blocking(source, False)
    output = b""
    while time.monotonic() < end and len(output) <= 2 * REPLY_BYTES_MAX:
        try:
            chunk = posix.read(source, _CHUNK)
        except BlockingIOError:
            time.sleep(0.002)
            continue
        output += chunk
        if not chunk:
            pid, status = posix.waitpid(child, posix.WNOHANG)
            if pid:
                return b"" if status else output
            time.sleep(0.002)
    posix.kill(child, 9)
    return b""


def _start(root: str, agent: str, cwd: str, nonce: str) -> None:
    # Session start without a daemon: the last brief, else the lean child; then note what was delivered.
    name, head = brief_key(agent, cwd)
    brief = _slurp(f"{root}/hook/briefs/{name}", 2 * REPLY_BYTES_MAX)
    brief = brief[len(head) :] if brief and brief.startswith(head) else _lean(root, [agent, cwd, nonce])
    record, _, text = brief.partition(b"\n")
    if text and len(text) <= REPLY_BYTES_MAX:
        _write(1, text)
        if record:
            _Drop(root, "memorize", "delivered").fill(nonce.encode() + b"\n" + record)


def _start_daemon(root: str) -> None:
    program, mark = f"{root}/hook/memorize_daemon.py", f"{root}/hook/started"
    if _slurp(program, 1) and _slurp(f"{root}/hook/nodaemon", 1) is None and not _young(mark):
        _mark(mark)
        _spawn(root, ["-I", program], -1)


def _answer(root: str, drop: _Drop, name: str, cwd: str) -> None:
    path, late = socket_path(root), f"{root}/hook/late"
    reached, text = True, None
    if not drop.seconds:
        if not _stat(path):
            _start_daemon(root)
        return
    if not _young(late):
        try:
            posix.stat(path)  # spares most calls the loading of _socket
            if path[-7:] == "/d.sock" and not own_directory(path[:-7]):
                raise FileNotFoundError
            text = _ask(path, name, drop.seconds)
        except (FileNotFoundError, NotADirectoryError, ConnectionError):
            reached = False
        except OSError:
            _quiet(_mark, late)
    if text is not None:
        _write(1, text)
    elif drop.seconds == START_S:
        try:
            _start(root, drop.agent, cwd, drop.nonce.hex())
        finally:
            if not reached:
                _start_daemon(root)
    elif drop.seconds == BEFORE_S and not reached:
        words = (_slurp(f"{root}/hook/triggers") or b"").split(b"\n")
        if any(word and word in drop.kept for word in words):
            _write(1, _lean(root, [drop.agent, cwd, drop.nonce.hex(), drop.event, name]).partition(b"\n")[2])


def _root(program: str) -> str:
    root = _env("MEMORIZE_HOME").replace(_SLASH, "/")
    if root[:2] == "~/":
        root = _env("HOME").replace(_SLASH, "/") + root[1:]
    absolute = root[:1] == "/" or root[1:2] == ":"  # a relative path would be another one in every directory
    return root.rstrip("/") if absolute else program.replace(_SLASH, "/").rsplit("/", 2)[0]


def main(argv: "list[str]", program: str) -> None:
    """Do what one hook call does; ``argv`` as in ``sys.argv``, ``program`` this file in the state directory."""
    if _env("MEMORIZE_GUARD") or _env("MEMORIZE_DISABLED") == "1" or len(argv) < 3:
        return
    signal(SIGINT, SIG_IGN)  # Ctrl-C is meant for the agent
    fd = posix.open(_NULL, posix.O_RDWR)
    while fd < 3:  # missing standard streams, filled from below
        fd = posix.open(_NULL, posix.O_RDWR)
    posix.close(fd)
    agent, event = argv[1].replace("-", "_"), argv[2].replace("-", "_")
    if not _named(agent, event):
        return
    try:
        cwd = posix.getcwd().replace(_SLASH, "/")
    except OSError:
        cwd = "/"  # deleted; the ingester checks the payload's directory
    root = _root(program)
    drop = _Drop(root, "claude" if agent == "claude_code" else agent, event)
    try:
        start_new_thread(_watch, (drop,))
    except RuntimeError:
        pass  # no thread to be had: then the agent's own time limit ends an endless stream
    if _opted_out(root, cwd):
        return
    name = drop.fill()
    if not name:
        while drop.read():  # the agent must not meet a broken pipe
            pass
    elif (drop.seconds or drop.word in _ENDS) and sys.platform != "win32":
        _answer(root, drop, name, cwd)


if __name__ == "__main__":
    try:
        main(sys.argv, __file__)
    finally:
        posix._exit(0)
