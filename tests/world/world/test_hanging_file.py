"""A file that hangs when it is read, as on a network file system whose server is gone."""

import fcntl
import json
import os
import signal
import subprocess
import time

from .curl import make_certificate
from .gateway import Gateway
from .process import PATIENCE_SECONDS, World, eventually, get
from .tidegate import Tidegate

RULES = "domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: %d}}]\n"

# The time after which the kernel breaks a lease that its holder keeps.
BREAK_SECONDS = int(open("/proc/sys/fs/lease-break-time").read())


class Lease(World):
    """Files whose opening hangs."""

    def setUp(self):
        super().setUp()
        # A holder is sent this signal when somebody opens the file, and would be ended by it.
        before = signal.signal(signal.SIGIO, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGIO, before)

    def replace_hanging(self, path, text: str) -> int:
        """Replaces a file by one whose opening hangs until it is released, or the kernel breaks the lease."""
        written = path.with_suffix(".next")
        written.write_text(text)
        file = os.open(written, os.O_RDWR)
        self.addCleanup(os.close, os.dup(file))
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        written.rename(path)
        return file

    def release(self, file: int):
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        os.close(file)


class HangingRules(Lease):
    def setUp(self):
        super().setUp()
        self.rules = self.folder / "rules.yaml"
        self.rules.write_text(RULES % 1)
        self.tidegate = Tidegate(self, rules=self.rules)

    def hang(self) -> int:
        return self.replace_hanging(self.rules, RULES % 2)

    def limit(self) -> int:
        answer = get(self.tidegate.admin, "/api/v1/rules")
        self.assertEqual(answer.status, 200, answer)
        return json.loads(answer.body)["rules"][0]["limits"][0]["quota"]["requests"]

    def log(self) -> str:
        return (self.folder / "tidegate.log").read_text()

    def test_the_old_rules_stay_until_the_file_answers(self):
        file = self.hang()
        eventually("the read is given up", lambda: "do not answer within" in self.log())
        self.assertEqual(self.limit(), 1)
        self.release(file)
        eventually("the new rules are in force", lambda: self.limit() == 2)

    def test_sigterm_ends_the_program_while_a_read_hangs(self):
        file = self.hang()
        start = time.monotonic()
        eventually("the read is given up", lambda: "do not answer within" in self.log())
        status = self.tidegate.test.stop(self.tidegate.program, "terminate")
        self.assertEqual(status, 0)
        # Else the kernel has broken the lease, and nothing hung.
        self.assertLess(time.monotonic() - start, BREAK_SECONDS)
        self.assertLess(PATIENCE_SECONDS, BREAK_SECONDS)
        self.release(file)


class HangingSettings(Lease):
    """The certificates of an upstream."""

    def setUp(self):
        super().setUp()
        self.roots, _ = make_certificate(self)
        self.settings = f"""
gateway:
  routes: [{{path: /own, respond: %d}}, {{path: /else, upstream: api}}]
  upstreams: {{api: {{targets: [https://127.0.0.1:9], tls: {{roots: {self.roots}}}}}}}
"""
        self.gateway = Gateway(self, self.settings % 201)

    def give_up(self) -> int:
        """Reloads with a file that hangs, and waits until that is given up."""
        file = self.replace_hanging(self.roots, self.roots.read_text())
        self.gateway.configure(self.settings % 202)
        eventually("the read is given up", lambda: "do not answer within" in self.gateway.log())
        return file

    def test_the_old_settings_stay_until_the_file_answers(self):
        file = self.give_up()
        self.assertEqual(self.gateway.get("/own").status, 201)
        self.release(file)
        eventually("the new settings are in force", lambda: self.gateway.get("/own").status == 202)

    def test_a_start_fails_if_a_file_hangs(self):
        file = self.replace_hanging(self.roots, self.roots.read_text())
        start = subprocess.run(self.gateway.command(), capture_output=True, text=True, timeout=BREAK_SECONDS)
        self.release(file)
        self.assertNotEqual(start.returncode, 0)
        self.assertIn("do not answer within", start.stdout + start.stderr)

    def test_sigterm_ends_the_gateway_while_a_read_hangs(self):
        start = time.monotonic()
        file = self.give_up()
        self.assertEqual(self.stop(self.gateway.program, "terminate"), 0)
        self.assertLess(time.monotonic() - start, BREAK_SECONDS)
        self.release(file)
