"""nginx asks Tidegate by auth_request, with the file in deploy/."""

from .process import ROOT, World, free_port, get, is_listening, nginx, raw_get
from .proxied import Proxied
from .tidegate import Tidegate, start_api


class NginxWorld(World):
    flags = []

    def setUp(self):
        super().setUp()
        self.clients = free_port()
        self.tidegate = Tidegate(self, *self.flags)
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

    def test_a_killed_nginx_leaves_no_worker_behind(self):
        self.stop(self.nginx)
        self.assertFalse(is_listening(self.clients))


class Nginx(Proxied, NginxWorld):
    def test_bytes_of_a_path_that_are_not_utf8_are_asked_about(self):
        paths = (b"/\xff", b"/\xc3(", b"/?\xff", b"/\xff")
        self.assertEqual([raw_get(self.clients, path=path) for path in paths], [200, 200, 200, 429])

    def test_many_lines_are_asked_about(self):
        many = {f"X-{number}": "x" for number in range(500)}
        # 431 is the API's answer, which takes 100 lines.
        self.assertEqual([get(self.clients, headers=many).status for _ in range(4)], [431, 431, 431, 429])


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
