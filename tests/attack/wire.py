"""A flood of invented keys against a real server with the example rules, and what others get meanwhile.

wire.py TIDEGATE [--small]: the program to attack. Prints a table and a verdict; the exit code is 0 only if every limit was
held. Small, it has fewer keys and honest callers and does not wait for a minute at the end. Needs nothing but Python.
"""

import json
import re
import socket
import subprocess
import sys
import time
import urllib.request

MAX_MEMORY = "1MiB"
# Each has two counters, so that the store is filled several times over.
USERS = 200_000
ACCOUNTS = 40_000
# Once more than the store has room for.
FEW_USERS = 40_000
FEW_ACCOUNTS = 8_000
# Keys in one request. A request has at most 64 limits.
BATCH = 16
# Of the rule for logins.
LOGINS = 5
HONEST = 1_000
FEW_HONEST = 200


class Client:
    """One connection, and the decisions on what is sent over it."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)))
        self.host = address
        self.buffer = b""

    def ask(self, *descriptors):
        """Whether a request with these descriptors, each a list of pairs, is allowed."""
        entries = [[{"key": key, "value": value} for key, value in descriptor] for descriptor in descriptors]
        body = json.dumps({"domain": "example", "descriptors": [{"entries": it} for it in entries]}).encode()
        head = f"POST /json HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
        self.socket.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return self.status() == 200

    def status(self):
        while b"\r\n\r\n" not in self.buffer:
            self.read()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        status = int(head.split(b" ", 2)[1])
        if status not in (200, 429):
            raise RuntimeError(f"unexpected answer: {head!r}")
        length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
        while len(self.buffer) < length:
            self.read()
        self.buffer = self.buffer[length:]
        return status

    def read(self):
        data = self.socket.recv(65536)
        if not data:
            raise RuntimeError("the server closed the connection")
        self.buffer += data


def login(account):
    return [("action", "login"), ("account", account)]


class Attack:
    """A flood, with others who come every now and then."""

    def __init__(self, client):
        self.client = client
        self.offender = 0
        self.asked_at = time.monotonic()
        self.greedy = []
        self.honest = []

    def flood(self, users, accounts, honest):
        # More than the limit, because what fills it up may be logged twice.
        while self.client.ask(login("offender")):
            pass
        keys = [[("user_id", f"invented {n}")] for n in range(users)]
        keys += [login(f"invented {n}") for n in range(accounts)]
        others = max(1, len(keys) // BATCH // honest)
        for n, start in enumerate(range(0, len(keys), BATCH)):
            self.client.ask(*keys[start : start + BATCH])
            # Again, so that they are in use: the worst that keys can be.
            self.client.ask(*keys[start : start + BATCH])
            if n % others == 0 and len(self.honest) < honest:
                account = f"honest {len(self.honest)}"
                self.honest.append(all(self.client.ask(login(account)) for _ in range(LOGINS // 2)))
            if n % (others * 100) == 0:
                self.guess(f"greedy {n}")
            if time.monotonic() - self.asked_at > 0.5:
                self.asked_at = time.monotonic()
                self.offender += self.client.ask(login("offender"))

    def guess(self, account):
        self.greedy.append(sum(self.client.ask(login(account)) for _ in range(5 * LOGINS)))


def metrics(admin):
    page = urllib.request.urlopen(f"http://{admin}/metrics").read().decode()
    value = lambda name: int(re.search(rf"^{name} (\d+)$", page, re.M)[1])
    return {name: value(f"tidegate_store_{name}") for name in ("used_bytes", "max_bytes", "evicted_total", "untracked_total")}


def start(program):
    command = [program, "serve", "--http", "127.0.0.1:0", "--grpc", "off", "--admin", "127.0.0.1:0", "--max-memory", MAX_MEMORY]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    banner = ""
    while "curl " not in banner:
        line = server.stdout.readline()
        if not line:
            sys.exit("the server did not start")
        banner += line
    admin = re.search(r"http://(\S+) \(admin\)", banner)[1]
    http = re.search(r"listening\s+http://(\S+)", banner)[1]
    return server, http, admin


def main():
    program, *options = sys.argv[1:]
    is_small = options == ["--small"]
    size = (FEW_USERS, FEW_ACCOUNTS, FEW_HONEST) if is_small else (USERS, ACCOUNTS, HONEST)
    server, http, admin = start(program)
    try:
        attack = Attack(Client(http))
        began = time.monotonic()
        attack.flood(*size)
        seconds = time.monotonic() - began
        flooded = metrics(admin)
        attack.client.socket.close()
        after = None
        if not is_small:
            time.sleep(60)
            client = Client(http)
            after = sum(client.ask(login("after the flood")) for _ in range(5 * LOGINS))
    finally:
        server.terminate()
        server.wait()
    checks = [
        ("offender allowed", attack.offender, attack.offender == 0),
        ("greedy caller allowed at most", max(attack.greedy), max(attack.greedy) <= 2 * LOGINS),
        ("honest callers allowed in full", f"{sum(attack.honest)} of {len(attack.honest)}", sum(attack.honest) >= 0.9 * len(attack.honest)),
        ("bytes in use", f"{flooded['used_bytes']} of {flooded['max_bytes']}", flooded["used_bytes"] <= flooded["max_bytes"]),
        ("counters evicted", flooded["evicted_total"], flooded["evicted_total"] > 0),
    ]
    if after is not None:
        checks.append(("allowed of 25 a minute later", after, after == LOGINS))
    print(f"{2 * sum(size[:2])} hits in {seconds:.0f} s, {flooded['untracked_total']} charges decided by on_full")
    for name, value, is_held in checks:
        print(f"| {name} | {value} | {'held' if is_held else 'NOT HELD'} |")
    sys.exit(not all(is_held for _, _, is_held in checks))


if __name__ == "__main__":
    main()
