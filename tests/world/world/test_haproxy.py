"""HAProxy asks Tidegate by a few lines of Lua, with the files in deploy/."""

import json

from .process import ROOT, World, free_port, get, tool
from .proxied import Proxied
from .tidegate import Tidegate, start_api


class HAProxy(Proxied, World):
    def setUp(self):
        super().setUp()
        self.clients = free_port()
        self.tidegate = Tidegate(self)
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

    def test_the_body_is_that_of_tidegate(self):
        refused = [get(self.clients) for _ in range(4)][3]
        self.assertEqual(json.loads(refused.body)["violated-policies"], ["per_address"])
