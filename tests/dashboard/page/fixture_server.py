#!/usr/bin/env python3
# Serves the dashboard's page with a synthetic run, as the server of the library
# would: the same paths, headers and frames. Standard library only.
#
# usage: fixture_server.py [--port N] [--large] [--view-only]
import argparse
import asyncio
import base64
import hashlib
import json
import pathlib
import struct
import threading
import time
import urllib.parse

from synthetic_run import SyntheticRun

PAGE = pathlib.Path(__file__).resolve().parents[3] / "dashboard/troupe/dashboard/page"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
          "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
FRAMES_PER_S = 10


class FixtureServer:
    """A server in a thread of its own. `run` may be replaced while it is stopped."""

    def __init__(self, run, port=0):
        self.run = run
        self.port = port
        self.paths = set()  # that were asked for
        self.last_head = None  # of the newest frame
        self.denied = False  # answers 401 to everything but the page
        self.empty = False  # answers with empty lists, as before the first step
        self.has_graph = True  # else answers with an empty graph
        self._lock = threading.Lock()
        self._writers = set()

    def start(self):
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)),
                                        daemon=True)
        self._thread.start()
        ready.wait()
        return self

    def stop(self):
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    def change(self, function):
        """Calls `function` with the run while no frame is made."""
        with self._lock:
            return function(self.run)

    async def _serve(self, ready):
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self._watchers = set()
        server = await asyncio.start_server(self._client, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        ticks = asyncio.create_task(self._tick())
        await self._stopped.wait()
        ticks.cancel()
        server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _tick(self):
        before = time.monotonic()
        while True:
            await asyncio.sleep(1 / FRAMES_PER_S)
            now = time.monotonic()
            with self._lock:
                self.run.advance((now - before) * 1000)
                frame = self.run.frame()
            before = now
            self.last_head = json.loads(frame[4:4 + struct.unpack_from("<I", frame)[0]])
            if self.empty:
                continue
            for writer in list(self._watchers):
                # As in the library's server, a client that is behind misses frames.
                if writer.transport.get_write_buffer_size() == 0:
                    writer.write(_message(0x2, frame))

    async def _client(self, reader, writer):
        self._writers.add(writer)
        try:
            while await self._request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            self._watchers.discard(writer)
            writer.close()

    async def _request(self, reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.IncompleteReadError:
            return False
        first, *lines = head.split("\r\n")
        method, target, _ = first.split(" ")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        url = urllib.parse.urlsplit(target)
        self.paths.add(url.path)
        if url.path == "/api/v1/live":
            await self._live(headers, reader, writer)
            return False
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        status, kind, answer = self._answer(method, url, body)
        writer.write((f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n"
                      f"Content-Length: {len(answer)}\r\nCache-Control: no-store\r\n"
                      f"Content-Security-Policy: {POLICY}\r\n"
                      "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
                      "Cross-Origin-Resource-Policy: same-origin\r\n\r\n").encode() + answer)
        await writer.drain()
        return True

    def _answer(self, method, url, body):
        if url.path.startswith("/api/"):
            if self.denied:
                return "401 Unauthorized", "text/plain", b"open the link again\n"
            with self._lock:
                answer = self._api(method, url, body)
            if answer is None:
                return "404 Not Found", "text/plain", b"no such path\n"
            return "200 OK", "application/json", json.dumps(answer).encode()
        name = "index.html" if url.path == "/" else url.path[1:]
        file = PAGE / name
        if "/" in name or not file.is_file():
            return "404 Not Found", "text/plain", b"no such path\n"
        return "200 OK", TYPES[file.suffix], file.read_bytes()

    def _api(self, method, url, body):
        run, name = self.run, url.path.removeprefix("/api/v1/")
        query = urllib.parse.parse_qs(url.query)
        if method == "POST" and name == "control":
            words = json.loads(body)
            return run.control(words["command"], words.get("op_delay_ms", 0))
        if name == "why":
            handle = query.get("handle")
            return run.why(int(handle[0]) if handle else None)
        if self.empty and name in ("collectives", "memory"):
            return []
        if self.empty and name == "series":
            return {key: [] for key in run.series}
        if self.empty and name == "timeline":
            return {"slices": [], "dropped": 0}
        answers = {"run": run.run_json, "graph": self._graph,
                   "state": run.head, "series": run.series_json,
                   "collectives": run.collectives, "memory": run.memory,
                   "actors": run.actors, "timeline": run.timeline_json}
        return answers[name]() if name in answers else None

    def _graph(self):
        answer = self.run.graph.json(self.run.run)
        return answer if self.has_graph else {**answer, "handles": [], "edges": [], "layers": []}

    async def _live(self, headers, reader, writer):
        key = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        writer.write(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                      "Connection: Upgrade\r\nSec-WebSocket-Protocol: troupe.v1\r\n"
                      f"Sec-WebSocket-Accept: {accept}\r\n\r\n").encode())
        self._watchers.add(writer)
        while True:
            kind, length = await reader.readexactly(2)
            length &= 0x7F
            if length == 126:
                length = struct.unpack(">H", await reader.readexactly(2))[0]
            await reader.readexactly(4 + length)  # mask and payload
            if kind & 0xF == 0x8:
                writer.write(_message(0x8, b""))
                return


def _message(kind, payload):
    size = len(payload)
    if size < 126:
        head = struct.pack(">BB", 0x80 | kind, size)
    elif size < 65536:
        head = struct.pack(">BBH", 0x80 | kind, 126, size)
    else:
        head = struct.pack(">BBQ", 0x80 | kind, 127, size)
    return head + payload


def large_run(**more):
    """20,000 handles and 30,000 edges."""
    return SyntheticRun(devices=8, blocks=122, workers=8, step_ms=2000, **more)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--view-only", action="store_true")
    options = parser.parse_args()
    make = large_run if options.large else SyntheticRun
    server = FixtureServer(make(may_control=not options.view_only), options.port).start()
    graph = server.run.graph
    print(f"http://127.0.0.1:{server.port}/  {len(graph.handles)} handles, "
          f"{len(graph.edges)} edges, {len(graph.boxes)} layers", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
