"""Programs under test: started on free ports, asked over sockets, ended however the test ends."""

import contextlib
import itertools
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]

# How long a program may take to start, to notice a change or to stop. Only a failure takes this long.
PATIENCE_SECONDS = 20


# Below the ports that the kernel gives to outgoing connections, which would take a port between the choice and the
# program's start. Each run begins at a place of its own, and no port is chosen twice in one run.
_candidates = itertools.cycle(range(16_384, 32_768))
for _ in range(os.getpid() * 101 % 16_384):
    next(_candidates)


def free_port() -> int:
    """A port that is free now and that no outgoing connection takes."""
    for port in itertools.islice(_candidates, 16_384):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port between 16384 and 32767 is free")


def eventually(what: str, ask):
    """Asks until the answer is true, and gives it. These are other people's programs: they say nothing
    when they are ready, so there is nothing to wait on but the clock."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {PATIENCE_SECONDS} seconds")
        time.sleep(0.02)


def is_listening(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def tool(name: str) -> str:
    """The path of a program. One that is missing fails the test: it must not look like a pass."""
    beside_python = pathlib.Path(sys.executable).parent / name
    found = str(beside_python) if beside_python.exists() else shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        raise AssertionError(f"{name} is not installed; `scripts/test setup` installs it")
    return found


def nginx(folder: pathlib.Path, config: pathlib.Path) -> list[str]:
    """The command of an nginx that is one process: a master that is killed leaves its workers behind."""
    return [tool("nginx"), "-p", str(folder), "-e", "stderr", "-c", str(config), "-g", "master_process off;"]


class Answer:
    """An HTTP answer: status, headers by lower-case name, body."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.body = body.decode()

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body}"


def get(port: int, path="/", headers=None, method="GET") -> Answer:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers or {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return Answer(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as refused:
        with refused:
            return Answer(refused.code, refused.headers, refused.read())


def raw_get(port: int, *lines: bytes, path=b"/") -> int:
    """The status of the answer to a request with these header lines, byte for byte."""
    head = [b"GET " + path + b" HTTP/1.1", b"Host: api", b"Connection: close", *lines, b"", b""]
    with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as connection:
        connection.sendall(b"\r\n".join(head))
        answer = connection.makefile("rb").readline()
    return int(answer.split()[1])


class World(unittest.TestCase):
    """A test with a folder of its own, whose programs end with it."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tidegate-world-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, *command, port: int, name: str, env=None) -> subprocess.Popen:
        """Starts a program and waits until it listens. What it says is shown if the test fails."""
        log = open(self.folder / f"{name}.log", "wb+")
        self.addCleanup(log.close)
        program = subprocess.Popen(
            command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}
        )
        self.addCleanup(self.finish, program, name, log)

        def is_up():
            if program.poll() is not None:
                log.seek(0)
                self.fail(f"{name} ended with {program.returncode}: {log.read().decode()}")
            return is_listening(port)

        eventually(f"{name} listens on {port}", is_up)
        return program

    def finish(self, program, name, log):
        self.stop(program)
        if any(error for _, error in getattr(self._outcome, "errors", [])):
            log.seek(0)
            print(f"--- {name} ---\n{log.read().decode(errors='replace')}", file=sys.stderr)

    def stop(self, program, signal="kill"):
        """Ends a program now, or politely with signal="terminate"."""
        if program.poll() is None:
            getattr(program, signal)()
        return program.wait(timeout=PATIENCE_SECONDS)

    def configure(self, source: pathlib.Path, **replacements) -> pathlib.Path:
        """A config file of the repository with other words in it. A word that is not there is an error:
        the test would run something else than it says."""
        text = source.read_text()
        for old, new in replacements.items():
            raise_unless_present(source, text, old)
            text = text.replace(old, str(new))
        written = self.folder / source.name
        written.write_text(text)
        return written


def raise_unless_present(source, text, old):
    if old not in text:
        raise AssertionError(f"there is no {old!r} in {source}")
