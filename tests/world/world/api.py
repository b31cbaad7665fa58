"""An API behind the gateway: an ASGI application, which uvicorn serves as a program of its own."""

import asyncio
import gzip
import hashlib
import json
import os
import urllib.parse

PIECE = bytes(range(256)) * 256
GZIPPED = gzip.compress(b"the api\n" * 1000, mtime=0)

# Requests of /hold that wait for /release.
released = asyncio.Event()
# Requests that arrived whole, with the bytes of their bodies.
complete = []
n_held = 0


async def app(scope, receive, send):
    path, query = scope["path"], dict(urllib.parse.parse_qsl(scope["query_string"].decode()))
    call = Call(scope, receive, send)
    if scope["method"] == "OPTIONS" and "origin" in call.headers:
        await call.answer(204, b"")
    elif path == "/request":
        await call.answer(200, json.dumps(await call.described()).encode(), {"content-type": "application/json"})
    elif path.startswith("/status/"):
        await call.answer(int(path.removeprefix("/status/")), b"", {"etag": '"1"'})
    elif path == "/echo":
        await call.echo()
    elif path.startswith("/bytes/"):
        await call.send_bytes(int(path.removeprefix("/bytes/")), "length" in query)
    elif path == "/gzip":
        await call.answer(200, GZIPPED, {"content-encoding": "gzip"})
    elif path == "/hold":
        await call.hold()
    elif path == "/held":
        await call.answer(200, str(n_held).encode())
    elif path == "/release":
        released.set()
        await call.answer(200, b"")
    elif path == "/complete":
        await call.answer(200, json.dumps(complete).encode())
    elif path == "/unauthorized":
        # Without a look at the body.
        await call.answer(401, b"no\n")
    else:
        await call.read()
        await call.answer(200, b"the api\n", {"x-process": str(os.getpid())})


class Call:
    """One request and its answer."""

    def __init__(self, scope, receive, send):
        self.scope, self.receive, self.send = scope, receive, send
        self.lines = [(name.decode(), value.decode()) for name, value in scope["headers"]]
        self.headers = dict(self.lines)

    async def pieces(self):
        more, n_bytes = True, 0
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ConnectionError("the client is gone")
            n_bytes += len(message.get("body", b""))
            yield message.get("body", b"")
            more = message.get("more_body", False)
        complete.append(f"{self.scope['method']} {self.scope['path']} {n_bytes}")

    async def read(self):
        n_bytes, digest = 0, hashlib.sha256()
        async for piece in self.pieces():
            n_bytes += len(piece)
            digest.update(piece)
        return n_bytes, digest.hexdigest()

    async def described(self):
        n_bytes, digest = await self.read()
        return {
            "method": self.scope["method"],
            "path": self.scope["path"],
            "version": self.scope["http_version"],
            "headers": self.headers,
            "lines": self.lines,
            "n_bytes": n_bytes,
            "sha256": digest,
        }

    async def start(self, status, headers):
        if "origin" in self.headers:
            allowed = {"origin": "*", "headers": "x-forwarded-for", "methods": "GET, PUT"}
            headers = headers | {f"access-control-allow-{name}": value for name, value in allowed.items()}
        lines = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": lines})

    async def put(self, piece, more):
        await self.send({"type": "http.response.body", "body": piece, "more_body": more})

    async def answer(self, status, body, headers=None):
        # Neither of these has a length.
        length = {} if status in (204, 304) else {"content-length": str(len(body))}
        await self.start(status, length | (headers or {}))
        await self.put(body, more=False)

    async def echo(self):
        """Answers with each piece as it comes, in chunks."""
        await self.start(200, {})
        async for piece in self.pieces():
            await self.put(piece, more=True)
        await self.put(b"", more=False)

    async def send_bytes(self, n_bytes, has_length):
        await self.start(200, {"content-length": str(n_bytes)} if has_length else {})
        while n_bytes > 0:
            await self.put(PIECE[:n_bytes], more=True)
            n_bytes -= len(PIECE)
        await self.put(b"", more=False)

    async def hold(self):
        global n_held
        n_held += 1
        await released.wait()
        await self.answer(200, b"released\n")
