"""Clients that ask without a pause, each on a connection of its own, and note what they got."""

import collections
import http.client
import threading

from .process import PATIENCE_SECONDS, World, eventually


class Load:
    """Some clients under way. `counts` has how often each of these came about: a status, or one of the words below."""

    # A new connection ended before the head of a response, or could not be made.
    NO_RESPONSE = "no response"
    # A connection that had been kept after a response ended before the head of the next one.
    LOST = "no response on a kept connection"
    # The response had begun.
    CUT_OFF = "cut off"

    def __init__(self, test: World, port: int, path="/", method="GET", n_clients=8, headers=None):
        self.port, self.path, self.method, self.headers = port, path, method, headers or {}
        self.counts = collections.Counter()
        self.lock = threading.Lock()
        self.is_over = False
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(n_clients)]
        test.addCleanup(self.stop)
        for thread in self.threads:
            thread.start()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        while not self.is_over:
            came_about = self.ask(connection)
            with self.lock:
                self.counts[came_about] += 1
        connection.close()

    def ask(self, connection):
        response, is_kept = None, connection.sock is not None
        try:
            connection.request(self.method, self.path, headers=self.headers)
            response = connection.getresponse()
            response.read()
            return response.status
        except (OSError, http.client.HTTPException):
            connection.close()
            if response is not None:
                return self.CUT_OFF
            return self.LOST if is_kept else self.NO_RESPONSE

    def until_more(self, than: int):
        """Waits until so many requests more have been answered."""
        wanted = self.counts.total() + than
        eventually(f"{than} requests more", lambda: self.counts.total() >= wanted)

    def stop(self):
        """Ends the clients and gives the counts."""
        self.is_over = True
        for thread in self.threads:
            thread.join(timeout=PATIENCE_SECONDS)
            if thread.is_alive():
                raise AssertionError("a request was never answered")
        return self.counts
