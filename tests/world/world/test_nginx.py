"""nginx asks Tidegate by auth_request, with the file in deploy/."""

import base64
import hashlib
import hmac
import json
import signal
import time

from .process import ROOT, World, free_port, get, is_listening, nginx, raw_get, tool
from .proxied import Proxied
from .tidegate import Tidegate, start_api


class NginxWorld(World):
    flags = []

    def setUp(self):
        super().setUp()
        self.clients = free_port()
        self.tidegate = self.start_tidegate()
        config = self.configure(
            ROOT / "deploy/nginx/nginx.conf",
            **{
                "listen 127.0.0.1:8000": f"listen 127.0.0.1:{self.clients}",
                "server 127.0.0.1:9000": f"server 127.0.0.1:{start_api(self)}",
                "domain=example": "domain=world",
                "server 127.0.0.1:8080": f"server 127.0.0.1:{self.tidegate.http}",
            },
        )
        self.nginx = self.start(*nginx(self.folder, config), port=self.clients, name="nginx")

    def start_tidegate(self) -> Tidegate:
        return Tidegate(self, *self.flags)

    def test_a_killed_nginx_leaves_no_worker_behind(self):
        self.stop(self.nginx)
        self.assertFalse(is_listening(self.clients))


class Nginx(Proxied, NginxWorld):
    def test_bytes_of_a_path_that_are_not_utf8_are_asked_about(self):
        paths = (b"/\xff", b"/\xc3(", b"/?\xff", b"/\xff")
        self.assertEqual([raw_get(self.clients, path=path) for path in paths], [200, 200, 200, 429])

    def test_as_many_lines_as_nginx_takes_are_asked_about(self):
        # With `Host` and `Connection`, nginx takes 1,000. 431 is the API's answer, which takes 100.
        statuses = [raw_get(self.clients, *[b"x:1"] * n_lines) for n_lines in (500, 998, 998, 998)]
        self.assertEqual(statuses, [431, 431, 431, 429])
        self.assertEqual(raw_get(self.clients, *[b"x:1"] * 999), 400)


class NginxByHeader(NginxWorld):
    """Callers are known by a header."""

    flags = ["--config", str(ROOT / "tests/world/authorize/by_header.yaml")]

    def test_lines_of_one_header_that_differ_are_refused(self):
        secret, other = b"X-User: secret", b"X-User: 1"
        self.assertEqual([raw_get(self.clients, secret) for _ in range(4)], [200, 200, 200, 429])
        # Tidegate answers 400, and nginx takes all but 2xx, 401 and 403 for a fault of its own.
        self.assertEqual(raw_get(self.clients, secret, other), 500)
        self.assertEqual(raw_get(self.clients, other, secret), 500)
        self.assertEqual(raw_get(self.clients, secret, secret), 429)

    def test_bytes_that_are_not_utf8_are_a_caller(self):
        statuses = [raw_get(self.clients, b"X-User: bob\xff") for _ in range(4)]
        self.assertEqual(statuses, [200, 200, 200, 429])
        self.assertEqual(raw_get(self.clients, b"X-User: bob\xfe"), 200)


class NginxWithTokens(NginxWorld):
    """Limits of addresses and of tokens: two steps to a Redis."""

    SECRET = b"only-for-this-test-0123456789abcdef"

    def start_tidegate(self):
        port = free_port()
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder)]
        self.redis = self.start(tool("redis-server"), *options, port=port, name="redis")
        rules = self.folder / "rules.yaml"
        # The first step allows what Redis does not answer, so that there is a second one.
        rules.write_text(
            "domain: world\ndescriptors:\n"
            "  - {key: address, rate_limit: {unit: year, requests_per_unit: 1000, on_failure: allow}}\n"
            "  - {key: caller, rate_limit: {unit: year, requests_per_unit: 1000, on_failure: deny}}\n"
        )
        secret = self.folder / "token.secret"
        secret.write_bytes(self.SECRET)
        settings = self.folder / "tidegate.yaml"
        # The timeout does not adapt, so that a call takes as long as it may by default.
        settings.write_text(
            "authorize: {descriptors: [{address: client_address}, {caller: 'claim:sub'}]}\n"
            f"identity: {{tokens: {{secret_file: '{secret}', issuer: any, audience: any}}}}\n"
            f"store: {{engine: 'redis://127.0.0.1:{port}', timeout: 50ms, min_timeout: 50ms}}\n"
        )
        return Tidegate(self, "--config", str(settings), rules=rules)

    def token(self) -> str:
        def part(data: bytes) -> str:
            return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

        claims = {"sub": "alice", "exp": int(time.time()) + 600}
        signed = ".".join(part(json.dumps(it).encode()) for it in ({"alg": "HS256"}, claims))
        return f"{signed}.{part(hmac.digest(self.SECRET, signed.encode(), hashlib.sha256))}"

    def test_no_request_passes_because_redis_is_slow(self):
        headers = {"Authorization": f"Bearer {self.token()}"}
        self.assertEqual([get(self.clients, headers=headers).status for _ in range(3)], [200] * 3)
        self.redis.send_signal(signal.SIGSTOP)
        self.addCleanup(self.redis.send_signal, signal.SIGCONT)
        statuses = [get(self.clients, headers=headers).status for _ in range(10)]
        self.assertEqual(statuses, [429] * 10)
