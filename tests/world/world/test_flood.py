"""A flood of invented keys over HTTP. `scripts/attack wire` sends a larger one."""

import os
import subprocess
import sys

from .process import ROOT, World

# Many times what it takes.
TIMEOUT_SECONDS = 120


class Flood(World):
    def test_a_flood_over_http_switches_no_limit_off(self):
        command = [sys.executable, ROOT / "tests/attack/wire.py", os.environ["TIDEGATE"], "--small"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
