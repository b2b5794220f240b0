"""A model that says what a script tells it to, for real agents on this machine: ``python -m tests.standin FOLDER``.

It listens on loopback only and connects nowhere. In FOLDER: ``port`` is written once it listens; ``script.json`` is
read at every request, ``{"name": ..., "turns": [...]}``, and begins anew when its name changes; ``requests.jsonl`` gets
a line a request. Turns answer the requests that offer tools; any other is answered "ok".

``"others": [{"when": text, "turn": {...}}]`` in the script is asked first: a request that says ``text`` anywhere gets
that turn, each time. A turn may also be ``{"status": 429, "error": {...}}``, or take ``"wait_s"`` before it answers, or
wait ``"until"`` there is a file of that name in FOLDER.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import socket
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.standin import wires

WIRES = {"/v1/messages": wires.messages, "/v1/responses": wires.responses}
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


class Script:
    """The turns, and how far they have been played."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = ""
        self.played = 0
        self.lock = threading.Lock()

    def next(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the turn that answers a request."""
        with self.lock:
            script = json.loads((self.folder / "script.json").read_text("utf-8"))
            if script["name"] != self.name:
                self.name, self.played = script["name"], 0
            said = "\n".join(text for _, text in wires.texts(body))
            for other in script.get("others", ()):
                if other["when"] in said:
                    return dict(other["turn"])
            if not body.get("tools"):
                return {"say": "ok"}
            self.played += 1
            turns = script["turns"]
            return turns[self.played - 1] if self.played <= len(turns) else {"say": "(the script has ended)"}

    def note(self, path: str, body: object) -> None:
        """Write a request down."""
        line = json.dumps({"script": self.name, "path": path, "body": body}, ensure_ascii=False)
        with self.lock, (self.folder / "requests.jsonl").open("a", encoding="utf-8") as file:
            file.write(line + "\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        models = [{"id": "stand-in", "object": "model", "type": "model", "display_name": "stand-in"}]
        known = self.path.partition("?")[0].endswith("/models")
        self._whole({"object": "list", "data": models, "models": []} if known else {}, 200 if known else 404)

    def do_HEAD(self) -> None:
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        body = self._body()
        if path == "/v1/messages/count_tokens":
            self._whole({"input_tokens": wires.tokens(body)}, 200)
        elif path not in WIRES:
            self._whole({}, 404)
        else:
            turn = self.server.script.next(body)
            self.server.script.note(path, body)
            time.sleep(turn.get("wait_s", 0))
            while "until" in turn and not (self.server.script.folder / turn["until"]).exists():
                time.sleep(0.05)
            if "status" in turn:
                self._whole(turn["error"], turn["status"])
                return
            events = list(WIRES[path](turn, body))
            if body.get("stream"):
                self._stream(events)
            else:
                self._whole(whole(events, turn), 200)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class calls it so)
        """Say nothing."""

    def _body(self) -> dict[str, Any]:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            raw = b""
            while size := int(self.rfile.readline().partition(b";")[0] or b"0", 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            raw = gzip.decompress(raw)
        found = json.loads(raw or b"{}")
        return found if isinstance(found, dict) else {}

    def _whole(self, value: object, status: int) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: list[wires.Event]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        self.close_connection = True


def whole(events: list[wires.Event], turn: wires.Turn) -> object:
    """Return the answer that a request without streaming gets."""
    last = events[-1]
    if "response" in last:
        return last["response"]
    content = [{"type": "text", "text": turn.get("say", "")}]
    return {**events[0]["message"], "content": content, "stop_reason": "end_turn"}


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = Script(folder)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has heard enough is no error."""


def raise_loopback() -> None:
    """Switch the loopback interface on: in a network namespace of its own it is off. Nothing happens elsewhere."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
            asked = struct.pack("16sh14x", b"lo", 0)
            flags = struct.unpack("16sh14x", fcntl.ioctl(wire, _SIOCGIFFLAGS, asked))[1]
            if not flags & _IFF_UP:
                fcntl.ioctl(wire, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))
    except OSError:
        return  # then it is on, or nobody may; binding will tell


def main(folder: Path) -> None:
    raise_loopback()
    server = Server(folder)
    beside = folder / "port.new"
    beside.write_text(str(server.server_address[1]), encoding="ascii")
    beside.replace(folder / "port")
    server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
