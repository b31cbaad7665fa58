"""The black-box suite, asked of a server that counts as envoyproxy/ratelimit does."""

import subprocess

from .process import ROOT, World
from .tidegate import Tidegate


class Conformance(World):
    def test_the_whole_suite(self):
        suite = ROOT / "tests/conformance"
        server = Tidegate(self, str(suite / "rules/tidegate"), "--charging", "every_match", rules=suite / "rules/contract")
        asked = subprocess.run(
            [suite / "run", "--grpc", f"127.0.0.1:{server.grpc}", "--http", f"127.0.0.1:{server.http}"],
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.assertEqual(asked.returncode, 0, asked.stderr)
