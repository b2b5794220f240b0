"""A service that speaks chat completions, played by a server on loopback."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from memorize.consolidate import url_model
from memorize.consolidate.port import ModelFailed
from memorize.consolidate.url_model import UrlModel
from tests.consolidate.programs import question

ANSWER = '{"memories": [{"text": "환불에는 멱등 키를 쓴다"}]}'
Play = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


@contextmanager
def service(play: Play) -> Iterator[tuple[str, list[tuple[dict[str, str], dict[str, Any]]]]]:
    """Run a server; give its address and, as they come, headers and body of every request."""
    seen: list[tuple[dict[str, str], dict[str, Any]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append(({**dict(self.headers), "path": self.path}, body))
            play(self, body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def send(handler: BaseHTTPRequestHandler, status: int, content: bytes, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(content)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(content)


def says(text: object, **fields: object) -> Play:
    document = {"choices": [{"message": {"content": text}}], "usage": {"prompt_tokens": 12, "completion_tokens": 3}}
    return lambda handler, _: send(handler, 200, json.dumps({**document, **fields}).encode())


def refuses(status: int, message: str) -> Play:
    return lambda handler, _: send(handler, status, json.dumps({"error": {"message": message}}).encode())


def failure(play: Play, deadline_s: float = 60.0) -> ModelFailed:
    with service(play) as (url, _), pytest.raises(ModelFailed) as caught:
        UrlModel(url, "m").ask(question(deadline_s=deadline_s))
    return caught.value


def test_system_and_window_are_sent_with_the_key_and_the_answer_comes_with_its_tokens() -> None:
    with service(says(ANSWER, model="served")) as (url, seen):
        reply = UrlModel(url, "m", "geheim").ask(question("창 " * 50_000))
    assert reply[:5] == (ANSWER, 12, 3, None, "served")
    [(headers, body)] = seen
    assert headers["Authorization"] == "Bearer geheim"
    assert headers["path"] == "/v1/chat/completions"
    assert [one["role"] for one in body["messages"]] == ["system", "user"]
    assert body["messages"][1]["content"] == "창 " * 50_000
    assert body["response_format"]["json_schema"]["schema"] == question().schema


def test_a_service_that_knows_no_schema_is_asked_once_more_without() -> None:
    def play(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        (refuses(400, "response_format is not supported") if "response_format" in body else says(ANSWER))(handler, body)

    with service(play) as (url, seen):
        assert UrlModel(url + "/", "m").ask(question()).text == ANSWER
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (401, "bad key", "not-logged-in"),
        (403, "no", "not-logged-in"),
        (429, "slow down", "rate-limited"),
        (500, "oops", "exit"),
        (400, "no such model", "exit"),
        (400, "flagged by the content policy", "refused"),
        (402, "insufficient_quota", "rate-limited"),
    ],
)
def test_every_status_has_its_kind(status: int, message: str, kind: str) -> None:
    failed = failure(refuses(status, message))
    assert (failed.kind, failed.detail) == (kind, f"{status}: {message}")


@pytest.mark.parametrize(
    ("play", "kind"),
    [
        (says(""), "empty"),
        (says(None), "empty"),
        (says("", choices=[]), "empty"),
        (says("x", choices=[{"message": {"content": "", "refusal": "no"}}]), "refused"),
        (says("x", choices=[{"message": {"content": "half"}, "finish_reason": "content_filter"}]), "refused"),
        (says("x", error={"message": "rate limit"}), "rate-limited"),
        (lambda handler, _: send(handler, 200, b"<html>\xff"), "garbled"),
        (lambda handler, _: send(handler, 200, b""), "empty"),
        (lambda handler, _: send(handler, 200, b"[1]"), "garbled"),
        (lambda handler, _: send(handler, 200, b"x", Content_Length="100"), "garbled"),
        (lambda handler, _: send(handler, 200, b" " * (url_model.ANSWER_BYTES_MAX + 2)), "too-large"),
        (lambda handler, _: handler.connection.close(), "exit"),
    ],
)
def test_every_wrong_answer_has_its_kind(play: Play, kind: str) -> None:
    assert failure(play).kind == kind


def test_a_redirection_is_not_followed_with_the_key() -> None:
    with service(says(ANSWER)) as (other, elsewhere):
        away: Play = lambda handler, _: send(handler, 307, b"", Location=other)  # noqa: E731
        with service(away) as (url, _), pytest.raises(ModelFailed):
            UrlModel(url, "m", "geheim").ask(question())
    assert elsewhere == []


def test_a_service_that_never_ends_is_over_at_the_deadline() -> None:
    stop = threading.Event()

    def trickle(handler: BaseHTTPRequestHandler, _: object) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while not stop.wait(0.05):
                handler.wfile.write(b" ")
        except OSError:
            pass

    began = time.monotonic()
    try:
        assert failure(trickle, deadline_s=1).kind == "timeout"
        assert time.monotonic() - began < 1 + 2
    finally:
        stop.set()


def test_a_service_that_says_nothing_is_over_at_the_deadline() -> None:
    stop = threading.Event()
    try:
        assert failure(lambda *_: (stop.wait(60), None)[1], deadline_s=0.5).kind == "timeout"
    finally:
        stop.set()


def test_where_nobody_listens_it_fails_at_once() -> None:
    with service(says(ANSWER)) as (url, _):
        pass
    with pytest.raises(ModelFailed) as caught:
        UrlModel(url, "m").ask(question())
    assert caught.value.kind == "exit"


@pytest.mark.parametrize("url", ["http://models.example/v1", "ftp://127.0.0.1/v1", "file:///etc/passwd"])
def test_the_key_never_goes_out_in_clear(url: str) -> None:
    with pytest.raises(ModelFailed) as caught:
        UrlModel(url, "m", "geheim").ask(question())
    assert caught.value.kind == "exit"
    assert "geheim" not in str(caught.value)
