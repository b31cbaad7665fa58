"""The black-box suite, asked of servers that count as envoyproxy/ratelimit does: in memory, and in a Redis."""

import subprocess

from .process import ROOT, World, free_port, tool
from .tidegate import Tidegate

SUITE = ROOT / "tests/conformance"


class Conformance(World):
    def test_the_whole_suite(self):
        self.ask(self.tidegate())

    def test_the_whole_suite_through_redis(self):
        port = free_port()
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder)]
        self.start(tool("redis-server"), *options, port=port, name="redis")
        store = f"redis://127.0.0.1:{port}?timeout=10s"
        self.ask(self.tidegate("--store", store, "--consistency", "strict"))

    def tidegate(self, *flags):
        rules = str(SUITE / "rules/tidegate")
        flags = ["--charging", "every_match", *flags]
        return Tidegate(self, rules, *flags, rules=SUITE / "rules/contract", env={"TIDEGATE_LOOKS_AT_LIMIT": "allow"})

    def ask(self, server):
        asked = subprocess.run(
            [SUITE / "run", "--grpc", f"127.0.0.1:{server.grpc}", "--http", f"127.0.0.1:{server.http}"],
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.assertEqual(asked.returncode, 0, asked.stderr)
