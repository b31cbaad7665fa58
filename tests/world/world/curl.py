"""curl, and certificates for it."""

import json
import subprocess

from .process import World, tool


class Curl:
    """What curl got: status, protocol, headers by lower-case name, body, and the heads of all responses."""

    def __init__(self, test: World, url: str, *options: str, stdin=b""):
        head, body = test.folder / "curl.head", test.folder / "curl.body"
        for file in (head, body):
            file.unlink(missing_ok=True)
        outputs = ["--dump-header", str(head), "--output", str(body), "--write-out", "%{json}\n%{header_json}"]
        command = [tool("curl"), "--silent", "--show-error", "--max-time", "60", *outputs, *options, url]
        done = subprocess.run(command, capture_output=True, input=stdin, timeout=90)
        self.exit_code, self.error = done.returncode, done.stderr.decode()
        if done.returncode != 0:
            return
        figures, headers = done.stdout.decode().split("\n", 1)
        self.figures = json.loads(figures)
        self.status, self.version = self.figures["response_code"], self.figures["http_version"]
        self.headers = {name: values[-1] for name, values in json.loads(headers).items()}
        self.heads = head.read_text(errors="replace")
        self.body = body

    def text(self) -> str:
        if not self.body.exists():
            return ""
        # curl prints the head in place of the body that HEAD does not have.
        return self.body.read_text() if self.figures["method"] != "HEAD" else self.body.read_text().partition("\n\n")[2]

    def json(self):
        return json.loads(self.text())


def make_certificate(test: World):
    """A certificate for 127.0.0.1 that vouches for itself, and its key."""
    cert, key = test.folder / "cert.pem", test.folder / "key.pem"
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-days", "2"]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    use = ["-addext", "basicConstraints=critical,CA:FALSE"]
    command = [tool("openssl"), "req", *kind, *names, *use, "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return cert, key
