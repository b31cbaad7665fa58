"""The gateway under test: a real `tidegate serve` between real clients and real upstreams."""

import http.client
import os
import pathlib
import resource
import signal
import sys

from .process import PATIENCE_SECONDS, ROOT, World, free_port, get, nginx
from .tidegate import RULES

# The address that may send three requests, and the one that may send a hundred.
THREE = {"x-forwarded-for": "192.0.2.1"}
HUNDRED = {"x-forwarded-for": "192.0.2.2"}

# More than allocators keep back by themselves, less than a body or a flood that is buffered.
FLAT_BYTES = 48 << 20


class Gateway:
    """A running gateway with a config file of its own."""

    name = "gateway"

    def __init__(self, test: World, settings: str, *flags: str, port=None):
        self.test, self.flags = test, flags
        self.port, self.admin = port or free_port(), free_port()
        self.config = test.folder / "tidegate.yaml"
        self.configure(settings)
        self.program = test.start(*self.command(), port=self.port, name=self.name)
        test.addCleanup(self.check_log)

    def command(self):
        addresses = ["--gateway", f"127.0.0.1:{self.port}", "--admin", f"127.0.0.1:{self.admin}"]
        off = ["--http", "off", "--grpc", "off"]
        files = ["--config", str(self.config), "--rules", str(RULES)]
        return [os.environ["TIDEGATE"], "serve", *addresses, *off, *files, *self.flags]

    def configure(self, settings: str):
        """Replaces the config file in one step."""
        written = self.config.with_suffix(".new")
        written.write_text(settings)
        written.rename(self.config)

    def log(self) -> str:
        return (self.test.folder / f"{self.name}.log").read_text(errors="replace")

    def check_log(self):
        for word in ("panicked", "please report"):
            self.test.assertNotIn(word, self.log())

    def terminate(self):
        self.program.send_signal(signal.SIGTERM)

    def get(self, path="/", headers=None, method="GET"):
        return get(self.port, path, headers, method)

    def connect(self) -> http.client.HTTPConnection:
        """A connection that is kept for several requests."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        self.test.addCleanup(connection.close)
        return connection

    def resident_bytes(self) -> int:
        pages = pathlib.Path(f"/proc/{self.program.pid}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize()

    def peak_bytes(self) -> int:
        """The most memory that it had since `forget_peak`."""
        for line in pathlib.Path(f"/proc/{self.program.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
        raise AssertionError("the kernel tells no peak")

    def forget_peak(self):
        pathlib.Path(f"/proc/{self.program.pid}/clear_refs").write_text("5")

    def n_descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.program.pid}/fd"))

    def flat_memory(self):
        return FlatMemory(self)


class FlatMemory:
    """Fails if the gateway needed much more memory within the block than before."""

    def __init__(self, gateway: Gateway):
        self.gateway = gateway

    def __enter__(self):
        self.gateway.forget_peak()
        self.before = self.gateway.resident_bytes()

    def __exit__(self, kind, *_):
        if kind is None:
            grown = self.gateway.peak_bytes() - self.before
            self.gateway.test.assertLess(grown, FLAT_BYTES, "memory grew")


class Uvicorn:
    """The API of api.py, served by uvicorn. Its port stays the same when it is started again."""

    def __init__(self, test: World, name="uvicorn"):
        self.test, self.name, self.port = test, name, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        options = ["--port", str(self.port), "--lifespan", "off", "--log-level", "warning", "--backlog", "8192"]
        command = [sys.executable, "-m", "uvicorn", "world.api:app", *options]
        self.program = self.test.start(*command, port=self.port, name=self.name)


class Nginx:
    """An nginx that answers by itself and closes connections now and then, as it does after some requests."""

    def __init__(self, test: World, name="nginx"):
        self.test, self.name, self.port = test, name, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.folder = test.folder / name
        self.folder.mkdir()
        source = ROOT / "tests/world/nginx/upstream.conf"
        written = test.configure(source, PORT=self.port, FOLDER=self.folder)
        self.config = written.rename(self.folder / "nginx.conf")
        self.start()

    def start(self):
        self.program = self.test.start(*nginx(self.folder, self.config), port=self.port, name=self.name)


def to_upstream(*upstreams, extra="") -> str:
    """Settings of a gateway that sends everything to these, in turn."""
    return f"gateway:\n  upstream: [{', '.join(it.url for it in upstreams)}]\n{extra}"


def allow_descriptors(most: int):
    """Lets this process and those that it starts open so many files, if the system does."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, hard), hard))
