"""Ask any service that speaks OpenAI's chat completions, by the standard library.

The key comes from the environment variable that the configuration names; it is never stored, never shown, and never
sent in clear to another machine or after a redirection.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from memorize.consolidate import said
from memorize.consolidate.port import Kind, ModelFailed, Reply, Request

NAME: Final = "url"
ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_STEP_BYTES: Final = 64 * 1024
_KINDS: Final[Mapping[int, Kind]] = {
    401: "not-logged-in",
    403: "not-logged-in",
    429: "rate-limited",
    529: "rate-limited",
}


class _Stay(urllib.request.HTTPRedirectHandler):
    """A redirection would take the key somewhere else."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow none."""
        return


class UrlModel:
    """An OpenAI-compatible service. ``url`` ends where ``/chat/completions`` is added; ``key`` may be empty."""

    name: Final = NAME

    def __init__(self, url: str, model: str, key: str = "") -> None:
        """Nothing is asked yet."""
        self._url = url.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
        self._model = model
        self._key = key

    def ask(self, request: Request) -> Reply:
        """Return the answer. Raises ModelFailed."""
        began = time.monotonic()
        parts = urlsplit(self._url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ModelFailed("exit", "the address of the service is no http(s) address")
        if self._key and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise ModelFailed("exit", f"the key would go to {parts.hostname} in clear; use https")
        until = began + request.deadline_s
        try:
            raw = self._post(_body(request, request.model or self._model), until)
        except _Wrong as wrong:
            if wrong.status not in (400, 422) or request.schema is None:
                raise wrong.failure() from None
            # Not every service knows schemas. A request that is refused for its form costs nothing.
            try:
                raw = self._post(_body(request._replace(schema=None), request.model or self._model), until)
            except _Wrong as again:
                raise again.failure() from None
        return read(raw, request.model or self._model, time.monotonic() - began)

    def _post(self, body: bytes, until: float) -> bytes:
        """Return the body of the answer. Raises _Wrong, ModelFailed."""
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "memorize"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        call = _Call(urllib.request.Request(self._url, body, headers, method="POST"))
        call.run(until)
        if isinstance(call.error, urllib.error.HTTPError):
            raise _Wrong(call.error.code, call.error.reason, call.answer)
        if call.error is not None:
            reason = getattr(call.error, "reason", None) or call.error
            raise ModelFailed("exit", f"{urlsplit(self._url).hostname}: {reason}")
        if len(call.answer) > ANSWER_BYTES_MAX:
            raise ModelFailed("too-large", f"the service sent more than {ANSWER_BYTES_MAX >> 20} MiB")
        return call.answer


class _Call:
    """One request in a thread of its own, since no time-out of a socket bounds a whole request."""

    def __init__(self, request: urllib.request.Request) -> None:
        self.answer = b""
        self.error: Exception | None = None
        self._request = request
        self._sockets: list[http.client.HTTPConnection] = []

    def run(self, until: float) -> None:
        """Do it. Raises ModelFailed when it is not done in time."""
        thread = threading.Thread(target=self._work, args=(until,), daemon=True)
        thread.start()
        thread.join(max(0.0, until - time.monotonic()))
        if thread.is_alive():
            self._hang_up()
            thread.join(1.0)
            raise ModelFailed("timeout", "the service did not answer in time")
        if isinstance(self.error, TimeoutError) or isinstance(getattr(self.error, "reason", None), TimeoutError):
            raise ModelFailed("timeout", "the service did not answer in time")

    def _work(self, until: float) -> None:
        opener = urllib.request.build_opener(_Stay, _watched(self._sockets))
        try:
            with opener.open(self._request, timeout=max(0.1, until - time.monotonic())) as answer:
                self._take(answer)
        except urllib.error.HTTPError as error:
            self.error = error
            try:
                self._take(error)
            except (OSError, http.client.HTTPException):
                self.answer = b""
            finally:
                error.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.error = error

    def _take(self, answer: Any) -> None:
        parts: list[bytes] = []
        size = 0
        while size <= ANSWER_BYTES_MAX and (part := answer.read(_STEP_BYTES)):
            parts.append(part)
            size += len(part)
        self.answer = b"".join(parts)

    def _hang_up(self) -> None:
        for connection in self._sockets:
            if (own := connection.sock) is not None:
                try:
                    own.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue


def _watched(opened: list[http.client.HTTPConnection]) -> urllib.request.HTTPSHandler:
    """Return a handler for both schemes that notes every connection it makes."""

    def plain(host: str, **options: Any) -> http.client.HTTPConnection:
        opened.append(http.client.HTTPConnection(host, **options))
        return opened[-1]

    def secure(host: str, **options: Any) -> http.client.HTTPConnection:
        opened.append(http.client.HTTPSConnection(host, **options))
        return opened[-1]

    class Watched(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(plain, req)

        def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(secure, req)

    return Watched()


class _Wrong(Exception):  # noqa: N818 - called for what happened
    """The service said no."""

    def __init__(self, status: int, reason: object, answer: bytes) -> None:
        super().__init__(status)
        self.status, self._reason, self._answer = status, reason, answer

    def failure(self) -> ModelFailed:
        """Return it as the port tells it."""
        message = _error(self._answer) or f"{self.status} {self._reason}"
        kind = _KINDS.get(self.status) or said.kind_of(message) or "exit"
        return ModelFailed(kind, f"{self.status}: {message}")


def _body(request: Request, model: str) -> bytes:
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "system", "content": request.system}, {"role": "user", "content": request.prompt}],
    }
    if request.schema is not None:
        named = {"name": "answer", "strict": True, "schema": dict(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _error(raw: bytes) -> str:
    error = (_object(raw) or {}).get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""


def read(raw: bytes, model: str, seconds: float) -> Reply:
    """Return what the service answered. Raises ModelFailed."""
    document = _object(raw)
    if document is None:
        raise ModelFailed("garbled" if raw.strip() else "empty", "the service did not answer with a JSON object")
    usage = document.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    spent: dict[str, int] = {
        name: value if isinstance(value := usage.get(key), int) and 0 <= value < 2**40 else 0
        for name, key in (("tokens_in", "prompt_tokens"), ("tokens_out", "completion_tokens"))
    }
    if failure := _error(raw):
        raise ModelFailed(said.kind_of(failure) or "exit", failure, **spent)
    choices = document.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    text = message.get("content")
    if message.get("refusal") or choice.get("finish_reason") == "content_filter":
        raise ModelFailed("refused", str(message.get("refusal") or "the service filtered the answer"), **spent)
    if not isinstance(text, str) or not text.strip():
        raise ModelFailed("empty", "the answer has no text", **spent)
    return Reply(text, **spent, cost_usd_micro=None, model=str(document.get("model") or model), seconds=seconds)
