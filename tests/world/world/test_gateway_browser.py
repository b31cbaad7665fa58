"""A real Chromium: a page of one origin asks the gateway, which is another."""

import contextlib
import http.server
import json
import os
import queue
import signal
import subprocess
import threading

from .gateway import Gateway, Uvicorn
from .process import PATIENCE_SECONDS, World, free_port, get, tool

# Asks five times, in a way that needs a preflight each, and tells its own server what it could read.
PAGE = """<!doctype html>
<script>
const ask = async () => {
  try {
    const headers = {"x-forwarded-for": "192.0.2.1"};
    const response = await fetch("GATEWAY/", {method: "PUT", headers, body: "x"});
    const names = ["retry-after", "x-ratelimit-limit", "x-ratelimit-remaining", "content-type"];
    const read = Object.fromEntries(names.map((name) => [name, response.headers.get(name)]));
    return {status: response.status, body: await response.text(), ...read};
  } catch (error) {
    return {error: String(error)};
  }
};
(async () => {
  const answers = [];
  for (let number = 0; number < 5; number++) answers.push(await ask());
  await fetch("/result", {method: "POST", body: JSON.stringify(answers)});
})();
</script>
"""

# Without these it looks for Google's servers.
OFFLINE = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]


def end_group(browser: subprocess.Popen):
    """Ends the browser. Debian's command is a shell script that has the browser as its child, so the whole group ends."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(browser.pid, signal.SIGKILL)
    browser.wait(timeout=PATIENCE_SECONDS)


class PageServer:
    """Serves a page and takes what the page tells it."""

    def __init__(self, test: World, page: str):
        told = self.told = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.answer(page.encode() if self.path == "/" else b"")

            def do_POST(self):
                told.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                self.answer(b"")

            def answer(self, body):
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        test.addCleanup(server.server_close)
        test.addCleanup(server.shutdown)


class Browser(World):
    def start_gateway(self, cors: str):
        self.api = Uvicorn(self)
        # The gateway must know the origin of the page, and the page the address of the gateway.
        port = free_port()
        self.page = PageServer(self, PAGE.replace("GATEWAY", f"http://127.0.0.1:{port}"))
        settings = f"gateway:\n  upstream: {self.api.url}\n" + cors.replace("ORIGIN", self.page.url)
        self.gateway = Gateway(self, settings, port=port)

    def open(self):
        """What the page could read of its five answers."""
        profile = f"--user-data-dir={self.folder / 'profile'}"
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", *OFFLINE, profile]
        with open(self.folder / "chromium.log", "wb") as log:
            # With a debugging port it stays until it is told to go; without one it would leave before the page is done.
            command = [tool("chromium-headless-shell"), *flags, "--remote-debugging-port=0", self.page.url]
            browser = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
            self.addCleanup(end_group, browser)
            try:
                return self.page.told.get(timeout=3 * PATIENCE_SECONDS)
            except queue.Empty:
                self.fail((self.folder / "chromium.log").read_text(errors="replace"))
            finally:
                end_group(browser)

    def test_a_page_reads_that_it_is_denied_and_until_when(self):
        self.start_gateway("  cors: { origins: [ORIGIN] }\n")
        answers = self.open()
        self.assertEqual([it.get("status") for it in answers], [200, 200, 200, 429, 429], answers)
        self.assertEqual([it["body"] for it in answers[:3]], ["the api\n"] * 3)
        # Five preflights were made and not charged, or the third request would have been denied.
        self.assertEqual([it["x-ratelimit-remaining"] for it in answers], ["2", "1", "0", "0", "0"])
        self.assertEqual([it["retry-after"] for it in answers[:3]], [None] * 3)
        for denied in answers[3:]:
            self.assertGreaterEqual(int(denied["retry-after"]), 1)
            self.assertEqual(denied["x-ratelimit-limit"], "3")
            self.assertEqual(json.loads(denied["body"])["status"], 429)
        asked = json.loads(get(self.api.port, "/complete").body)
        self.assertEqual(asked.count("PUT / 1"), 3)

    def test_a_page_of_another_origin_reads_nothing(self):
        self.start_gateway("  cors: { origins: ['https://shop.example'] }\n")
        answers = self.open()
        self.assertEqual([it.get("status") for it in answers], [200, 200, 200, None, None], answers)
        self.assertIn("Failed to fetch", answers[3]["error"])
