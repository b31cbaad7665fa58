"""The page docs/nginx-per-user.md, run as it is printed but for the ports."""

import os
import re
import shlex
import time

from .process import ROOT, World, free_port, get, nginx, tool
from .tidegate import start_api

PAGE = ROOT / "docs/nginx-per-user.md"
ALICE, BOB = {"X-Api-Key": "key-of-alice"}, {"X-Api-Key": "key-of-bob"}


class NginxPerUser(World):
    def setUp(self):
        super().setUp()
        page = PAGE.read_text()
        self.ports = {port: free_port() for port in (8000, 8081, 8082, 8083, 6071, 6072, 6073, 6379)}
        self.ports[9000] = start_api(self)
        files = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", page, re.M | re.S))
        self.assertEqual(sorted(files), ["nginx.conf", "rules.yaml", "tidegate.yaml"])
        for name, text in files.items():
            (self.folder / name).write_text(self.with_ports(text))
        redis = [tool("redis-server"), "--bind", "127.0.0.1", "--port", str(self.ports[6379]), "--save", ""]
        self.start(*redis, "--dir", str(self.folder), port=self.ports[6379], name="redis")
        (commands,) = re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S)
        self.nodes = [self.start_node(line) for line in self.with_ports(commands).splitlines()]
        self.start(*nginx(self.folder, self.folder / "nginx.conf"), port=self.ports[8000], name="nginx")

    def with_ports(self, text: str) -> str:
        return re.sub(r"(127\.0\.0\.1):(\d+)", lambda it: f"{it[1]}:{self.ports[int(it[2])]}", text)

    def start_node(self, command: str):
        _, *arguments = shlex.split(command)
        port = int(arguments[arguments.index("--http") + 1].split(":")[1])
        # The paths of the page are relative to the folder of its files.
        program = ["env", "-C", str(self.folder), os.environ["TIDEGATE"], *arguments]
        # A busy machine is not a Redis that is gone: alone, a node would count by itself.
        env = {"TIDEGATE_STORE_TIMEOUT": "200ms", "TIDEGATE_STORE_MIN_TIMEOUT": "200ms"}
        return self.start(*program, port=port, name=f"tidegate-{port}", env=env)

    def ask(self, headers) -> int:
        return get(self.ports[8000], headers=headers).status

    def use_up(self, headers, at_most: int) -> int:
        """Asks until a request is denied, and gives the number of those before."""
        for allowed in range(at_most + 1):
            if (status := self.ask(headers)) != 200:
                self.assertEqual(status, 429)
                return allowed
        self.fail(f"more than {at_most} requests passed")

    def test_each_user_has_a_limit_that_all_nodes_share(self):
        # A log in Redis is exact, whichever node is asked.
        self.assertEqual(self.use_up(ALICE, at_most=100), 100)
        self.assertEqual(self.ask(BOB), 200)
        denied = get(self.ports[8000], headers=ALICE)
        self.assertEqual(denied.headers["x-ratelimit-limit"], "100")
        self.assertGreaterEqual(int(denied.headers["retry-after"]), 1)

    def test_a_name_that_a_client_gives_itself_is_not_believed(self):
        spoofed = {"X-User-Id": "alice", "X-Anonymous-Address": "203.0.113.7"}
        began = time.monotonic()
        allowed = self.use_up(spoofed, at_most=40)
        # A burst of 5, and one more every three seconds.
        self.assertGreaterEqual(allowed, 5)
        self.assertLessEqual(allowed, 5 + (time.monotonic() - began) / 3)
        self.assertEqual(self.ask({"X-User-Id": "bob"}), 429, "it is the same address")
        self.assertEqual(self.ask(ALICE), 200)

    def test_a_node_that_dies_changes_nothing(self):
        self.assertEqual([self.ask(ALICE) for _ in range(60)], [200] * 60)
        self.stop(self.nodes[0])
        self.assertEqual(self.use_up(ALICE, at_most=40), 40)
        self.assertEqual(self.use_up(BOB, at_most=100), 100)
