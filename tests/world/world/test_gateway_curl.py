"""curl through the gateway: HTTP/1.1, HTTP/2 over TLS and HTTP/2 by prior knowledge, to uvicorn and to nginx."""

import gzip
import hashlib
import os

from .api import GZIPPED, PIECE
from .curl import Curl, make_certificate
from .gateway import THREE, Gateway, Nginx, Uvicorn, to_upstream
from .process import World, eventually



class EveryProtocol:
    """Tests for a World whose gateway is at self.url and which curl reaches with self.options."""

    # A little less than the default bound of a body, and no multiple of a buffer.
    large_bytes = 100 * 1024 * 1024 - 7

    def curl(self, path, *options, **kind):
        got = Curl(self, self.url + path, *self.options, *options, **kind)
        self.assertEqual(got.exit_code, 0, got.error)
        self.assertEqual(got.version, self.version)
        return got

    def test_methods_and_statuses(self):
        got = self.curl("/")
        self.assertEqual((got.status, got.text()), (200, "the api\n"))
        self.assertEqual(got.headers["content-length"], "8")
        head = self.curl("/", "--head")
        self.assertEqual((head.status, head.headers["content-length"], head.text()), (200, "8", ""))
        posted = self.curl("/request", "--data", "a=1", "--header", "x-own: kept").json()
        self.assertEqual((posted["method"], posted["n_bytes"]), ("POST", 3))
        self.assertEqual(posted["headers"]["x-own"], "kept")
        self.assertEqual(posted["headers"]["content-length"], "3")
        self.assertNotIn("transfer-encoding", posted["headers"])
        for status in (204, 304):
            empty = self.curl(f"/status/{status}")
            self.assertEqual((empty.status, empty.text()), (status, ""))
            self.assertNotIn("content-length", empty.headers)
            self.assertNotIn("transfer-encoding", empty.headers)
            self.assertEqual(empty.headers["etag"], '"1"')

    def test_an_upstream_learns_who_asks_and_how(self):
        asked = self.curl("/request").json()["headers"]
        self.assertEqual(asked["x-forwarded-for"], "127.0.0.1")
        self.assertEqual(asked["x-forwarded-proto"], self.url.split(":")[0])
        self.assertEqual(asked["host"], self.url.split("//")[1])
        self.assertIn("for=127.0.0.1", asked["forwarded"])

    def test_a_large_upload_and_download_need_no_memory(self):
        source = self.folder / "large"
        n_bytes = self.large_bytes
        with open(source, "wb") as file:
            for at in range(0, n_bytes, len(PIECE)):
                file.write(PIECE[: n_bytes - at])
        digest = digest_of(source)
        with self.gateway.flat_memory():
            sent = self.curl("/request", "--upload-file", str(source)).json()
        self.assertEqual((sent["n_bytes"], sent["sha256"]), (n_bytes, digest))
        with self.gateway.flat_memory():
            got = self.curl(f"/bytes/{n_bytes}?length=1")
        self.assertEqual(got.headers["content-length"], str(n_bytes))
        self.assertEqual(digest_of(got.body), digest)

    def test_bodies_without_a_length(self):
        # curl knows no length of what it reads from a pipe.
        got = self.curl("/echo", "--upload-file", "-", stdin=PIECE * 20)
        self.assertEqual(got.body.read_bytes(), PIECE * 20)
        self.assertNotIn("content-length", got.headers)
        got = self.curl("/bytes/1000000")
        self.assertEqual(got.body.stat().st_size, 1_000_000)
        self.assertNotIn("content-length", got.headers)

    def test_a_compressed_body_is_not_touched(self):
        got = self.curl("/gzip", "--header", "accept-encoding: gzip")
        self.assertEqual(got.headers["content-encoding"], "gzip")
        self.assertEqual(got.body.read_bytes(), GZIPPED)
        self.assertEqual(self.curl("/gzip", "--compressed").text(), "the api\n" * 1000)

    def test_the_fourth_request_is_denied(self):
        forwarded = ["--header", f"x-forwarded-for: {THREE['x-forwarded-for']}"]
        answers = [self.curl("/", *forwarded) for _ in range(4)]
        self.assertEqual([it.status for it in answers], [200, 200, 200, 429])
        self.assertEqual([it.headers["x-ratelimit-remaining"] for it in answers], ["2", "1", "0", "0"])
        denied = answers[3]
        self.assertGreaterEqual(int(denied.headers["retry-after"]), 1)
        self.assertEqual(denied.headers["content-type"], "application/problem+json")
        self.assertEqual(denied.headers["cache-control"], "no-store")
        self.assertEqual(denied.json()["status"], 429)
        head = self.curl("/", "--head", *forwarded)
        self.assertEqual((head.status, head.text()), (429, ""))


class Http1(EveryProtocol, World):
    options, version = ["--http1.1"], "1.1"

    def setUp(self):
        super().setUp()
        self.api = Uvicorn(self)
        self.gateway = Gateway(self, to_upstream(self.api))
        self.url = f"http://127.0.0.1:{self.gateway.port}"

    def test_expect_continue(self):
        body = self.folder / "body"
        body.write_bytes(PIECE * 16)
        upload = ["--header", "expect: 100-continue", "--expect100-timeout", "30", "--upload-file", str(body)]
        allowed = self.curl("/request", *upload)
        self.assertTrue(allowed.heads.startswith("HTTP/1.1 100 "), allowed.heads)
        self.assertEqual((allowed.status, allowed.json()["n_bytes"]), (200, len(PIECE) * 16))
        for _ in range(3):
            self.gateway.get(headers=THREE)
        forwarded = ["--header", f"x-forwarded-for: {THREE['x-forwarded-for']}"]
        denied = self.curl("/request", *forwarded, *upload)
        self.assertTrue(denied.heads.startswith("HTTP/1.1 429 "), denied.heads)
        self.assertEqual((denied.status, denied.figures["size_upload"]), (429, 0))
        # An upstream that says no before it has seen the body.
        early = self.curl("/unauthorized", *upload)
        self.assertEqual((early.status, early.figures["size_upload"]), (401, 0))

    def test_a_denied_upload_is_answered(self):
        """Over HTTP/2 this curl makes an error of the answer that came before the end of its upload."""
        body = self.folder / "body"
        body.write_bytes(PIECE * 100)
        for _ in range(3):
            self.gateway.get(headers=THREE)
        forwarded = ["--header", f"x-forwarded-for: {THREE['x-forwarded-for']}", "--header", "expect:"]
        for _ in range(5):
            denied = self.curl("/request", *forwarded, "--upload-file", str(body))
            self.assertEqual((denied.status, denied.json()["status"]), (429, 429))

    def test_an_upgrade_to_http_2_is_not_passed_on(self):
        """The upstream would take requests through the tunnel that nobody limits."""
        got = self.curl("/request", "--http2")
        self.assertEqual(got.status, 200)
        passed_on = got.json()["headers"]
        self.assertFalse({"upgrade", "http2-settings", "connection"} & set(passed_on), passed_on)

    def test_http_1_0(self):
        got = Curl(self, self.url + "/", "--http1.0")
        self.assertEqual((got.exit_code, got.status, got.text()), (0, 200, "the api\n"))
        got = Curl(self, self.url + "/bytes/100000", "--http1.0")
        self.assertEqual((got.exit_code, got.status, got.body.stat().st_size), (0, 200, 100_000))
        self.assertNotIn("transfer-encoding", got.headers)

    def test_the_limit_that_the_banner_prints(self):
        """With no other setting than the upstream."""
        gateway = DefaultGateway(self, f"--upstream={self.api.url}")
        self.assertIn("for each client address: ", gateway.log())
        statuses = []
        connection = gateway.connect()
        while 429 not in statuses and len(statuses) < 5000:
            connection.request("GET", "/")
            with connection.getresponse() as response:
                response.read()
                statuses.append(response.status)
        self.assertEqual(statuses.pop(), 429)
        self.assertEqual(set(statuses), {200})
        self.assertGreaterEqual(len(statuses), 100)


class DefaultGateway(Gateway):
    """A gateway whose only setting is its upstream."""

    name = "default"

    def __init__(self, test, *flags):
        super().__init__(test, "", *flags)

    def command(self):
        taken = super().command()
        at = taken.index("--rules")
        return taken[:at] + taken[at + 2 :]


class Http2Cleartext(EveryProtocol, World):
    options, version = ["--http2-prior-knowledge"], "2"

    def setUp(self):
        super().setUp()
        self.gateway = Gateway(self, to_upstream(Uvicorn(self)))
        self.url = f"http://127.0.0.1:{self.gateway.port}"


class Http2Tls(EveryProtocol, World):
    version = "2"
    # A debug build takes its time over TLS.
    large_bytes = 60_000_007

    def setUp(self):
        super().setUp()
        cert, key = make_certificate(self)
        listener = f"listeners:\n  gateway:\n    tls: {{ cert: {cert}, key: {key} }}\n"
        self.gateway = Gateway(self, to_upstream(Uvicorn(self), extra=listener))
        self.url = f"https://127.0.0.1:{self.gateway.port}"
        self.options = ["--cacert", str(cert)]

    def test_the_client_chooses_the_protocol(self):
        got = Curl(self, self.url + "/", *self.options, "--http1.1")
        self.assertEqual((got.exit_code, got.version, got.status), (0, "1.1", 200), got.error)


class NginxBehind(World):
    def setUp(self):
        super().setUp()
        self.nginx = Nginx(self)
        self.gateway = Gateway(self, to_upstream(self.nginx))
        self.url = f"http://127.0.0.1:{self.gateway.port}"

    def test_files_ranges_and_conditions(self):
        content = os.urandom(3_000_000)
        (self.nginx.folder / "file.bin").write_bytes(content)
        for options in (["--http1.1"], ["--http2-prior-knowledge"]):
            whole = Curl(self, self.url + "/file.bin", *options)
            self.assertEqual((whole.exit_code, whole.body.read_bytes()), (0, content))
            part = Curl(self, self.url + "/file.bin", *options, "--range", "1000-1999")
            self.assertEqual((part.status, part.body.read_bytes()), (206, content[1000:2000]))
            same = Curl(self, self.url + "/file.bin", *options, "--header", f"if-none-match: {whole.headers['etag']}")
            self.assertEqual((same.status, same.text()), (304, ""))
            packed = Curl(self, self.url + "/file.bin", *options, "--header", "accept-encoding: gzip")
            self.assertEqual(packed.headers["content-encoding"], "gzip")
            self.assertEqual(gzip.decompress(packed.body.read_bytes()), content)
            missing = Curl(self, self.url + "/nothing", *options)
            self.assertEqual(missing.status, 404)

    def test_many_requests_on_connections_that_nginx_closes(self):
        connection = self.gateway.connect()
        for _ in range(1000):
            connection.request("GET", "/")
            with connection.getresponse() as response:
                self.assertEqual((response.status, response.read()), (200, b"the api\n"))

    def test_early_answers_leave_nothing_open(self):
        """nginx says 413 while the body is on its way."""
        settings = to_upstream(self.nginx) + "  bounds: { max_body: 400MiB }\n"
        gateway = Gateway(self, settings)
        body = self.folder / "body"
        with open(body, "wb") as file:
            file.truncate(201 << 20)
        # All threads run once something was asked.
        self.assertEqual(gateway.get().status, 200)
        before = gateway.n_descriptors()
        for _ in range(20):
            early = Curl(self, f"http://127.0.0.1:{gateway.port}/file.bin", "--upload-file", str(body))
            self.assertEqual(early.status, 413, early.error)
        # Connections that are kept for the next request are among them.
        eventually("they are closed", lambda: gateway.n_descriptors() <= before + 4)


def digest_of(path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
