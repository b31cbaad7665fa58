"""The server under test, and an API behind it."""

import http.server
import os
import pathlib
import threading

from .process import ROOT, World, free_port

RULES = ROOT / "tests/world/rules"


class Tidegate:
    """A running server. Its ports stay the same when it is started again."""

    def __init__(self, test: World, *flags: str, rules: pathlib.Path = RULES, env=None, build="TIDEGATE"):
        self.test, self.env, self.executable = test, env, os.environ[build]
        self.http, self.grpc, self.admin = free_port(), free_port(), free_port()
        self.flags = ["--rules", str(rules), *flags]
        self.start()

    def start(self):
        listeners = [("--http", self.http), ("--grpc", self.grpc), ("--admin", self.admin)]
        addresses = [word for flag, port in listeners for word in (flag, f"127.0.0.1:{port}")]
        command = [self.executable, "serve", *addresses, *self.flags]
        self.program = self.test.start(*command, port=self.grpc, name="tidegate", env=self.env)

    def die(self):
        self.test.stop(self.program)


class Api(http.server.BaseHTTPRequestHandler):
    """An API that answers everything and says nothing of it."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = b"the api\n"
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class ApiServer(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """Proxies hang up on it when they end; that is no news."""


def start_api(test: World, handler=Api) -> int:
    """Starts an API on a free port and gives the port."""
    server = ApiServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    test.addCleanup(server.server_close)
    test.addCleanup(server.shutdown)
    return server.server_address[1]
