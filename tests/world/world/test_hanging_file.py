"""A rules file that hangs when it is read, as on a network file system whose server is gone."""

import fcntl
import json
import os
import signal
import time

from .process import PATIENCE_SECONDS, World, eventually, get
from .tidegate import Tidegate

RULES = "domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: %d}}]\n"

# The time after which the kernel breaks a lease that its holder keeps.
BREAK_SECONDS = int(open("/proc/sys/fs/lease-break-time").read())


class HangingFile(World):
    def setUp(self):
        super().setUp()
        self.rules = self.folder / "rules.yaml"
        self.rules.write_text(RULES % 1)
        self.tidegate = Tidegate(self, rules=self.rules)
        # A holder is sent this signal when somebody opens the file, and would be ended by it.
        before = signal.signal(signal.SIGIO, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGIO, before)

    def hang(self) -> int:
        """Replaces the rules by a file whose opening hangs until the descriptor is closed, or the kernel breaks the lease."""
        written = self.folder / "rules.next"
        written.write_text(RULES % 2)
        file = os.open(written, os.O_RDWR)
        self.addCleanup(os.close, os.dup(file))
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        written.rename(self.rules)
        return file

    def release(self, file: int):
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        os.close(file)

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
