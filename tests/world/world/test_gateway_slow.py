"""Clients that take their time, and clients that do nothing: the others are served."""

import collections
import concurrent.futures
import socket
import time

from .curl import Curl, make_certificate
from .gateway import Gateway, Uvicorn, allow_descriptors, to_upstream
from .load import Load
from .process import PATIENCE_SECONDS, World, eventually

SHORT = "  bounds: { head_timeout: 1s, body_timeout: 1s, write_timeout: 1s }\n"
N_SLOW = 100
N_IDLE = 5000
N_EARLY = 10_000
MAX_CONNECTIONS = 1000
# The default of gateway.bounds.max_connections_per_address is half of all.
PER_ADDRESS = MAX_CONNECTIONS // 2
BOUNDED = f"  bounds: {{ max_connections: {MAX_CONNECTIONS} }}\n"


class Slow(World):
    def setUp(self):
        super().setUp()
        allow_descriptors(4 * N_IDLE)

    def start_gateway(self, settings):
        self.gateway = Gateway(self, to_upstream(Uvicorn(self)) + settings)

    def connect(self, source="127.0.0.1") -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.gateway.port), PATIENCE_SECONDS, (source, 0))
        self.addCleanup(client.close)
        return client

    def drip(self, clients, piece: bytes) -> list:
        """Sends a piece to each until it is closed, and gives what was received of each."""
        received = {client: b"" for client in clients}
        open_ones = set(clients)
        for client in clients:
            client.setblocking(False)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while open_ones and time.monotonic() < deadline:
            for client in list(open_ones):
                try:
                    client.send(piece)
                    got = client.recv(65536)
                    received[client] += got
                    if not got:
                        open_ones.discard(client)
                except BlockingIOError:
                    pass
                except OSError:
                    open_ones.discard(client)
            # Slow on purpose: this is what the client does.
            time.sleep(0.05)
        self.assertFalse(open_ones, f"{len(open_ones)} connections are still open")
        return list(received.values())

    def test_heads_that_come_byte_by_byte_are_cut_off(self):
        self.start_gateway(SHORT)
        others = Load(self, self.gateway.port, n_clients=2)
        clients = [self.connect() for _ in range(N_SLOW)]
        for client in clients:
            client.sendall(b"GET / HTTP/1.1\r\nhost: world.example\r\nx-own: ")
        received = self.drip(clients, b"x")
        self.assertFalse([it for it in received if b" 200 " in it])
        others.until_more(20)
        self.assertEqual(set(others.stop()), {200})

    def test_bodies_that_stop_are_cut_off(self):
        self.start_gateway(SHORT)
        others = Load(self, self.gateway.port, n_clients=2)
        clients = [self.connect() for _ in range(N_SLOW)]
        for client in clients:
            client.sendall(b"POST /request HTTP/1.1\r\nhost: world.example\r\ncontent-length: 1000\r\n\r\nbegin")
        received = self.drip(clients, b"")
        self.assertEqual({it.split(b"\r\n")[0] for it in received}, {b"HTTP/1.1 408 Request Timeout"})
        others.until_more(20)
        self.assertEqual(set(others.stop()), {200})

    def test_clients_that_read_nothing_are_cut_off(self):
        self.start_gateway(SHORT)
        others = Load(self, self.gateway.port, n_clients=2)
        others.until_more(20)
        before = self.gateway.n_descriptors()
        with self.gateway.flat_memory():
            clients = [self.connect() for _ in range(20)]
            for client in clients:
                client.sendall(b"GET /bytes/50000000?length=1 HTTP/1.1\r\nhost: world.example\r\n\r\n")
            # One to the client and one to the upstream, each.
            eventually("all are served", lambda: self.gateway.n_descriptors() >= before + 36)
            eventually("all are cut off", lambda: self.gateway.n_descriptors() <= before + 4)
        others.until_more(20)
        self.assertEqual(set(others.stop()), {200})

    def test_five_thousand_idle_connections(self):
        self.start_gateway("")
        before = self.gateway.resident_bytes()
        clients = [self.connect(f"127.0.1.{number % 100}") for number in range(N_IDLE)]
        # Half of them have never sent anything.
        for at in range(0, N_IDLE, 100):
            self.ask_all(clients[at : at + 50])
        per_connection = (self.gateway.resident_bytes() - before) / N_IDLE
        self.assertLess(per_connection, 40_000)
        self.assertEqual(self.gateway.get().status, 200)
        # They are of use, too.
        self.ask_all(clients[::500])
        self.ask_all(clients[60::500])

    def ask_all(self, clients):
        for client in clients:
            client.sendall(b"GET / HTTP/1.1\r\nhost: world.example\r\n\r\n")
        for client in clients:
            got = b""
            while not got.endswith(b"the api\n"):
                piece = client.recv(1000)
                self.assertTrue(piece, got)
                got += piece
            self.assertTrue(got.startswith(b"HTTP/1.1 200"), got)

    def test_one_address_has_so_many_connections_and_others_have_theirs(self):
        """With the default bound, where loopback is not a proxy that is trusted."""
        self.start_gateway(BOUNDED + "client_address: { trusted_proxies: [] }\n")
        clients = [self.connect("127.0.0.2") for _ in range(PER_ADDRESS + 100)]
        for client in clients:
            client.sendall(b"GET / HTTP/1.1\r\nhost: world.example\r\n\r\n")
        answered = 0
        for client in clients:
            try:
                answered += client.recv(1000).startswith(b"HTTP/1.1 200")
            except ConnectionResetError:
                pass
        self.assertEqual(answered, PER_ADDRESS)
        self.assertEqual(self.gateway.get().status, 200)

    def test_handshakes_that_never_end_lock_nobody_out(self):
        """More connections of one address than the gateway takes in all."""
        cert, key = make_certificate(self)
        listener = f"listeners: {{ gateway: {{ tls: {{ cert: {cert}, key: {key} }} }} }}\n"
        self.start_gateway(BOUNDED + listener + "client_address: { trusted_proxies: [] }\n")
        clients = [self.connect("127.0.0.2") for _ in range(1500)]
        got = Curl(self, f"https://127.0.0.1:{self.gateway.port}/", "--cacert", str(cert))
        self.assertEqual((got.exit_code, got.error), (0, ""))
        self.assertEqual(got.status, 200)
        eventually("the others are closed", lambda: sum(not is_closed(it) for it in clients) <= PER_ADDRESS)


class EarlyAnswers(World):
    """Answers to requests whose bodies are not read."""

    def setUp(self):
        super().setUp()
        key = self.folder / "token.secret"
        key.write_text("a secret of more than thirty-two bytes, for tests\n")
        settings = f"""  routes:
    - {{path: /small, max_body: 1KiB}}
    - {{path: /tokens, missing_token: deny}}
identity:
  tokens: {{secret_file: {key}, issuer: any, audience: any}}
"""
        self.gateway = Gateway(self, to_upstream(Uvicorn(self)) + settings)

    def answer(self, path: str) -> bytes:
        """The first line of the answer to a request whose body begins and never ends."""
        with socket.create_connection(("127.0.0.1", self.gateway.port), PATIENCE_SECONDS) as client:
            head = f"POST {path} HTTP/1.1\r\nhost: world.example\r\ncontent-length: 100000\r\n\r\n"
            client.sendall(head.encode() + b"begin")
            return client.recv(1000).split(b"\r\n")[0]

    def test_ten_thousand_of_them_leave_no_descriptor_behind(self):
        self.assertEqual(self.gateway.get().status, 200)
        before = self.gateway.n_descriptors()
        paths = ["/small", "/tokens"] * (N_EARLY // 2)
        with concurrent.futures.ThreadPoolExecutor(8) as clients, self.gateway.flat_memory():
            answers = collections.Counter(clients.map(self.answer, paths))
        expected = [b"HTTP/1.1 413 Payload Too Large", b"HTTP/1.1 401 Unauthorized"]
        self.assertEqual(answers, {line: N_EARLY // 2 for line in expected})
        eventually("all are closed", lambda: self.gateway.n_descriptors() <= before)
        self.assertEqual(self.gateway.get().status, 200)


def is_closed(client: socket.socket) -> bool:
    """Whether the other side has closed a connection on which it sends nothing."""
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
