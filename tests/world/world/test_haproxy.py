"""HAProxy asks Tidegate by a few lines of Lua, with the files in deploy/."""

import json

from .process import ROOT, World, free_port, get, raw_get, tool
from .proxied import Proxied
from .tidegate import Tidegate, start_api


class HAProxyWorld(World):
    flags = []

    def setUp(self):
        super().setUp()
        self.clients = free_port()
        self.tidegate = Tidegate(self, *self.flags)
        self.configure(ROOT / "deploy/haproxy/tidegate.lua")
        config = self.configure(
            ROOT / "deploy/haproxy/haproxy.cfg",
            **{
                "bind 127.0.0.1:8000": f"bind 127.0.0.1:{self.clients}",
                "server api 127.0.0.1:9000": f"server api 127.0.0.1:{start_api(self)}",
                "TIDEGATE_ADDRESS 127.0.0.1:8080": f"TIDEGATE_ADDRESS 127.0.0.1:{self.tidegate.http}",
                "lua.tidegate example": "lua.tidegate world",
                "lua-load tidegate.lua": f"lua-load {self.folder}/tidegate.lua",
            },
        )
        self.start(tool("haproxy"), "-db", "-f", str(config), port=self.clients, name="haproxy")


class HAProxy(Proxied, HAProxyWorld):
    def test_the_body_is_that_of_tidegate(self):
        refused = [get(self.clients) for _ in range(4)][3]
        self.assertEqual(json.loads(refused.body)["violated-policies"], ["per_address"])


class HAProxyByHeader(HAProxyWorld):
    """Callers are known by a header."""

    flags = ["--config", str(ROOT / "tests/world/authorize/by_header.yaml")]

    def test_lines_of_one_header_that_differ_are_refused(self):
        secret, other = b"X-User: secret", b"X-User: 1"
        self.assertEqual([raw_get(self.clients, secret) for _ in range(4)], [200, 200, 200, 429])
        # Tidegate answers 400, and so does HAProxy.
        for lines in ((secret, other), (other, secret), (secret, b"X-User:")):
            self.assertEqual(raw_get(self.clients, *lines), 400, lines)
        self.assertEqual(raw_get(self.clients, secret, secret), 429)
        self.assertEqual(raw_get(self.clients, other), 200)
