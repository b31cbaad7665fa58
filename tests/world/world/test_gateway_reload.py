"""The settings of a running gateway change: connections stay, and a broken file changes nothing."""

import signal

from .gateway import Gateway, Uvicorn
from .http2 import Http2
from .load import Load
from .process import World, eventually


class Reload(World):
    def setUp(self):
        super().setUp()
        self.first, self.second = Uvicorn(self, "first"), Uvicorn(self, "second")
        self.gateway = Gateway(self, self.settings(self.first))

    def settings(self, upstream, route="") -> str:
        return f"""
gateway:
  upstream: {upstream.url}
  routes:
    - path: /fixed
      respond: {{ status: 200, content_type: text/plain, body: before }}
{route}"""

    def ask(self, connection, path="/"):
        connection.request("GET", path)
        with connection.getresponse() as response:
            return response.status, response.read().decode(), response.headers.get("x-process")

    def test_routes_and_targets_change_under_open_connections(self):
        connection, http2 = self.gateway.connect(), Http2(self, self.gateway.port)
        self.assertEqual(self.ask(connection)[2], str(self.first.program.pid))
        self.assertEqual(self.ask(connection, "/fixed")[1], "before")
        own_socket = connection.sock
        http2.request(1, path="/new")
        http2.until_done(1)
        load = Load(self, self.gateway.port, n_clients=4)
        load.until_more(50)
        added = "    - path: /new\n      respond: { status: 418, content_type: text/plain, body: new }\n"
        self.gateway.configure(self.settings(self.second, added).replace("body: before", "body: after"))
        eventually("the new target is asked", lambda: self.ask(connection)[2] == str(self.second.program.pid))
        self.assertEqual(self.ask(connection, "/fixed")[1], "after")
        self.assertEqual(self.ask(connection, "/new")[:2], (418, "new"))
        self.assertIs(connection.sock, own_socket, "the same connection")
        http2.request(3, path="/new")
        http2.until_done(3)
        self.assertEqual((http2.statuses, http2.goaway), ({1: 200, 3: 418}, None))
        load.until_more(50)
        self.assertEqual(set(load.stop()), {200})

    def test_a_request_in_flight_ends_where_it_began(self):
        connection = self.gateway.connect()
        connection.request("GET", "/bytes/20000000?length=1")
        response = connection.getresponse()
        n_read = len(response.read(1000))
        self.gateway.configure(self.settings(self.second))
        other = self.gateway.connect()
        eventually("the new target is asked", lambda: self.ask(other)[2] == str(self.second.program.pid))
        self.assertEqual(n_read + len(response.read()), 20_000_000)

    def test_a_broken_file_is_rejected_with_all_its_faults(self):
        connection = self.gateway.connect()
        self.ask(connection)
        faults = "    - path: nowhere\n      upstrem: a\n    - path: /b\n      upstream: b\n"
        broken = self.settings(self.second, faults)
        self.gateway.configure(broken)
        eventually("the faults are logged", lambda: "upstrem" in self.gateway.log())
        log = self.gateway.log()
        self.assertIn("nowhere", log)
        self.assertIn("tidegate.yaml:", log)
        self.assertEqual(self.ask(connection)[2], str(self.first.program.pid))
        self.assertEqual(self.ask(connection, "/fixed")[1], "before")
        # No YAML at all, and then nothing.
        self.gateway.configure("gateway: [")
        self.gateway.program.send_signal(signal.SIGHUP)
        self.assertEqual(self.ask(connection)[2], str(self.first.program.pid))
        self.gateway.configure(self.settings(self.second))
        eventually("a good one is taken", lambda: self.ask(connection)[2] == str(self.second.program.pid))
