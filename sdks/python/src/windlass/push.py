"""Push handlers: the server calls the services of an application over HTTP, through WSGI or ASGI.

    app = App()
    application = WsgiHandlers(app)              # for gunicorn, uWSGI, mod_wsgi
    application = AsgiHandlers(app)              # for uvicorn, hypercorn, or mounted in FastAPI

Both check signatures in the form of Standard Webhooks if WINDLASS_PUSH_SECRET or `secrets` has a secret.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import math
import os
import time
from http.client import responses
from typing import (
    TYPE_CHECKING,
    Any,
    Awaitable,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)
from urllib.parse import quote, unquote

from windlass._sync.client import Client
from windlass.call import Call
from windlass.handler import Handler, Outcome, encoded
from windlass.heartbeat import Heartbeat
from windlass.worker import own_id

if TYPE_CHECKING:
    from windlass.app import App

#: Seconds by which the time of a signature may differ from the clock here.
TOLERANCE = 300
#: The prefix of a secret in text form.
PREFIX = "whsec_"
#: Bytes that the key of a secret may have: fewer could be guessed.
SECRET_BYTES = (24, 64)
#: Bytes of a request that are read.
BODY_MAX = 64 << 20
#: Concurrent calls that a push worker registers.
CAPACITY = 64


class Answer(NamedTuple):
    """An answer to the server."""

    status: int
    body: bytes
    #: Seconds until the next attempt, for a temporary fault.
    retry_after: Optional[int] = None

    @property
    def headers(self) -> List[Tuple[str, str]]:
        more = [] if self.retry_after is None else [("Retry-After", str(self.retry_after))]
        return [("Content-Type", "application/json"), ("Content-Length", str(len(self.body))), *more]


class BadSignature(ValueError):
    """A request is not signed with one of the secrets, or is too old."""


class SignatureCheck:
    """Checks signatures in the form of Standard Webhooks.

    `webhook-signature` has one or more parts `v1,<base64 of HMAC-SHA-256 over id.timestamp.body>`. Several secrets
    are accepted at once, so that a secret can be replaced.
    """

    def __init__(self, secrets: Sequence[str], tolerance: float = TOLERANCE) -> None:
        self._keys = [key_of(secret) for secret in secrets]
        self._tolerance = tolerance

    def check(self, headers: Mapping[str, str], body: bytes, now: Optional[float] = None) -> None:
        """Raises `BadSignature` if the headers (with names in lower case) do not sign the body."""
        id, timestamp = headers.get("webhook-id"), headers.get("webhook-timestamp")
        given = headers.get("webhook-signature")
        if not id or not timestamp or not given:
            raise BadSignature(
                "the request is not signed: webhook-id, webhook-timestamp or webhook-signature is missing"
            )
        try:
            distance = abs((time.time() if now is None else now) - int(timestamp))
        except ValueError:
            raise BadSignature(f"webhook-timestamp {timestamp[:40]!r} is no time in seconds") from None
        if distance > self._tolerance:
            raise BadSignature(
                f"the signature is {distance:.0f} s away from the clock here: check both clocks"
            )
        wanted = [sign(key, id, timestamp, body) for key in self._keys]
        for part in given.split():
            version, _, value = part.partition(",")
            if version == "v1" and any(hmac.compare_digest(value.encode(), one.encode()) for one in wanted):
                return
        raise BadSignature("the signature is wrong: the server and the worker need the same secret")


def key_of(secret: str) -> bytes:
    """The key that a secret `whsec_<base64>` means."""
    text = secret.strip()
    try:
        if not text.startswith(PREFIX):
            raise ValueError
        key = base64.b64decode(text[len(PREFIX) :], validate=True)
    except ValueError:
        raise ValueError("a secret has the form whsec_<base64>") from None
    if not SECRET_BYTES[0] <= len(key) <= SECRET_BYTES[1]:
        raise ValueError("a secret has 24 to 64 bytes in base64: make one with `openssl rand -base64 32`")
    return key


def given_secrets() -> List[str]:
    """The secrets of WINDLASS_PUSH_SECRET, separated by blanks."""
    return os.environ.get("WINDLASS_PUSH_SECRET", "").split()


def sign(key: bytes, id: str, timestamp: str, body: bytes) -> str:
    """The value of a signature, without its version."""
    signed = f"{id}.{timestamp}.".encode() + body
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


class PushHandlers:
    """The part that WSGI and ASGI share: from a request to a call, and from its end to an answer."""

    def __init__(
        self,
        app: App,
        *,
        secrets: Optional[Sequence[str]] = None,
        prefix: str = "",
        tolerance: float = TOLERANCE,
    ) -> None:
        if secrets is None:
            secrets = given_secrets()
        self.app, self._prefix = app, prefix.rstrip("/")
        self._signatures = SignatureCheck(secrets, tolerance) if secrets else None

    def prepare(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> Tuple[Optional[Answer], Optional[Handler], Optional[Call]]:
        """The handler with its call, or the answer to a request that reaches none. The path is not decoded."""
        if path == self._prefix + "/health":
            return Answer(200, b'{"status":"ok"}'), None, None
        head = self._prefix + "/exec/"
        if not path.startswith(head):
            return _problem(404, "there is nothing at this path: calls come to /exec/SERVICE"), None, None
        if method != "POST":
            return _problem(405, "calls come by POST"), None, None
        if self._signatures is not None:
            try:
                self._signatures.check(headers, body)
            except BadSignature as error:
                # The server may have another secret for a moment, while it is replaced.
                return _problem(401, str(error), retryable=True), None, None
        name = unquote(path[len(head) :])
        handler = self.app.handler_of(name)
        if handler is None:
            return _problem(404, f"this worker does not serve `{name}`"), None, None
        try:
            fields = json.loads(body) if body else {}
            if not isinstance(fields, dict):
                raise ValueError
        except ValueError:
            return _problem(400, "the body is no JSON object"), None, None
        return None, handler, self._call(name, headers, fields)

    def _call(self, service: str, headers: Mapping[str, str], fields: Dict[str, Any]) -> Call:
        def text(name: str) -> Optional[str]:
            value = headers.get(name)
            return unquote(value) if value is not None else None

        deadline, attempt = headers.get("windlass-deadline", ""), headers.get("windlass-attempt", "")
        remaining = max(0.0, int(deadline) / 1000 - time.time()) if deadline.isdigit() else None
        return Call(
            service,
            fields.get("input"),
            key=text("idempotency-key") or "",
            attempt=int(attempt) if attempt.isdigit() else 1,
            run=text("windlass-run"),
            node=text("windlass-node"),
            call=text("windlass-call"),
            params=fields.get("params"),
            memo=fields.get("memo"),
            remaining=remaining,
            client=self.app.client,
        )

    @staticmethod
    def answer(outcome: Outcome, name: str) -> Answer:
        """The end of a call in the words of the push protocol."""
        body = encoded(_push_body(outcome), name)
        if outcome.get("retry_after_ms"):
            # The server reads the pause from the header of a 503 alone.
            return Answer(503, body, math.ceil(outcome["retry_after_ms"] / 1000))
        return Answer(200, body)


def _push_body(outcome: Outcome) -> Dict[str, Any]:
    more = {key: outcome[key] for key in ("logs",) if key in outcome}
    if outcome["outcome"] == "done":
        return {"result": outcome.get("result"), **more}
    if outcome["outcome"] == "suspended":
        suspend = {key: outcome[key] for key in ("memo", "recheck_ms") if key in outcome}
        return {"suspend": suspend, **more}
    fields: Dict[str, Any] = {key: outcome[key] for key in ("retryable", "temporary") if key in outcome}
    return {"error": outcome["error"], **fields, **more}


def _problem(status: int, detail: str, retryable: bool = False) -> Answer:
    return Answer(status, json.dumps({"error": detail, "retryable": retryable}).encode())


class WsgiHandlers(PushHandlers):
    """A WSGI application that performs the calls of an `App`; async handlers run in a loop of their own."""

    def __call__(self, environ: Dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        headers = {
            key[5:].replace("_", "-").lower(): value
            for key, value in environ.items()
            if key.startswith("HTTP_")
        }
        length = environ.get("CONTENT_LENGTH") or "0"
        n_bytes = int(length) if length.isdigit() else 0
        if n_bytes > BODY_MAX:
            answer = _problem(413, "the body is too large")
        else:
            # A server decodes the path; the name of a service may still have a percent sign from the client.
            path = environ.get("RAW_URI", "").split("?")[0] or _encoded_path(environ)
            body = environ["wsgi.input"].read(n_bytes)
            answer = self._perform(environ.get("REQUEST_METHOD", ""), path, headers, body)
        start_response(f"{answer.status} {responses.get(answer.status, 'Error')}", answer.headers)
        return [answer.body]

    def _perform(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        answer, handler, call = self.prepare(method, path, headers, body)
        if answer is not None or handler is None or call is None:
            return answer or _problem(500, "no answer")
        return self.answer(handler.answer(call), call.service)


def _encoded_path(environ: Mapping[str, Any]) -> str:
    return quote(environ.get("PATH_INFO", "").encode("latin-1"), safe="/")


Receive = Callable[[], Awaitable[Dict[str, Any]]]
Send = Callable[[Dict[str, Any]], Awaitable[None]]


class AsgiHandlers(PushHandlers):
    """An ASGI application that performs the calls of an `App`; blocking handlers run in threads.

    A server that closes the connection of a call cancels it.
    """

    async def __call__(self, scope: Dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"calls come by HTTP, not by {scope['type']}")
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        body = await _body(receive)
        path = scope.get("raw_path", b"").split(b"?")[0].decode("latin-1") or scope["path"]
        if body is None:
            answer = _problem(413, "the body is too large")
        else:
            answer = await self._perform(scope["method"], path, headers, body, receive)
        head = [(name.lower().encode(), value.encode()) for name, value in answer.headers]
        await send({"type": "http.response.start", "status": answer.status, "headers": head})
        await send({"type": "http.response.body", "body": answer.body})

    async def _perform(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, receive: Receive
    ) -> Answer:
        answer, handler, call = self.prepare(method, path, headers, body)
        if answer is not None or handler is None or call is None:
            return answer or _problem(500, "no answer")
        if handler.is_async:
            work = asyncio.ensure_future(handler.answer_async(call))
        else:
            work = asyncio.ensure_future(
                asyncio.get_running_loop().run_in_executor(None, handler.answer, call)
            )
        gone = asyncio.ensure_future(_disconnect(receive))
        try:
            await asyncio.wait([work, gone], return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                call.cancel("canceled")
                if handler.is_async:
                    work.cancel()
            return self.answer(await work, call.service)
        finally:
            gone.cancel()

    @staticmethod
    async def _lifespan(receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return


async def _body(receive: Receive) -> Optional[bytes]:
    pieces: List[bytes] = []
    n_bytes = 0
    while True:
        message = await receive()
        piece = message.get("body", b"")
        n_bytes += len(piece)
        if n_bytes > BODY_MAX:
            return None
        pieces.append(piece)
        if not message.get("more_body", False):
            return b"".join(pieces)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Registration:
    """Registers a push worker under its URL, and keeps it registered by heartbeats; use it with `with`.

    The server signs its calls under the `secret`, by default the first one of WINDLASS_PUSH_SECRET, or under the
    secret of the service.
    """

    def __init__(
        self,
        app: App,
        url: str,
        *,
        capacity: int = CAPACITY,
        worker_id: Optional[str] = None,
        secret: Optional[str] = None,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"`{url}` is no address of a worker: write http://host:port")
        secret = secret or next(iter(given_secrets()), None)
        if secret:
            key_of(secret)
        self.id = worker_id or own_id()
        self.drained = False
        self._beat = Heartbeat(
            Client(app.server, app.key, actor=app.actor, timeout=5.0),
            self.id,
            services=app.names,
            queues=[],
            capacity=capacity,
            load=lambda: 0,
            on_drain=self._drain,
            on_lost=self._drain,
            url=url,
            secret=secret,
        )

    def _drain(self, _reason: str) -> None:
        self.drained = True

    def start(self) -> Registration:
        self._beat.start()
        return self

    def stop(self) -> None:
        """Sends no more heartbeats: the server forgets the worker after some seconds."""
        self._beat.stop()

    def wait(self, timeout: float = 10.0) -> bool:
        """Waits until the server knows the worker."""
        return self._beat.registered.wait(timeout)

    def __enter__(self) -> Registration:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.stop()
