"""Push handlers: signatures, both protocols of Python servers, and calls of the real server."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from windlass import App, Call, Fatal, RunFailed, Temporary
from windlass.flow import Flow
from windlass.push import AsgiHandlers, BadSignature, Registration, SignatureCheck, WsgiHandlers, key_of, sign
from windlass.testing import Server

Name = Callable[[str], str]
SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()

OTHER_SECRET = "whsec_" + base64.b64encode(b"fedcba9876543210fedcba9876543210").decode()


def make_app() -> App:
    app = App("http://127.0.0.1:9")

    @app.service
    def shout(text: str, call: Call) -> str:
        call.log("shouting")
        return text.upper()

    @app.service("a b/c")
    async def end(how: str, call: Call) -> str:
        if how == "suspend":
            call.suspend({"n": 1}, recheck=2)
        if how == "fatal":
            raise Fatal("no")
        if how == "temporary":
            raise Temporary("busy", retry_after=1.2)
        await asyncio.sleep(60 if how == "slow" else 0)
        return f"{call.key} {call.attempt} {call.run} {call.node} {call.memo} {call.params} {call.remaining is not None}"

    return app


def wsgi(
    handlers: WsgiHandlers, path: str, body: Any = None, method: str = "POST", **headers: str
) -> Tuple[int, Any, Dict[str, str]]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    environ: Dict[str, Any] = {"REQUEST_METHOD": method, "PATH_INFO": path, "CONTENT_LENGTH": str(len(raw))}
    environ["wsgi.input"] = io.BytesIO(raw)
    environ.update({f"HTTP_{key.upper()}": value for key, value in headers.items()})
    seen: List[Any] = []
    answer = b"".join(handlers(environ, lambda status, head: seen.extend([status, head])))
    return int(seen[0].split()[0]), json.loads(answer), dict(seen[1])


def asgi(
    handlers: AsgiHandlers,
    path: str,
    body: Any,
    headers: Optional[Dict[str, str]] = None,
    gone_after: float = 60.0,
) -> Tuple[int, Any]:
    async def perform() -> Tuple[int, Any]:
        sent: List[Dict[str, Any]] = []
        messages = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]

        async def receive() -> Dict[str, Any]:
            if messages:
                return messages.pop(0)
            await asyncio.sleep(gone_after)
            return {"type": "http.disconnect"}

        async def send(message: Dict[str, Any]) -> None:
            sent.append(message)

        pairs = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "headers": pairs}
        await handlers(scope, receive, send)
        return sent[0]["status"], json.loads(sent[1]["body"])

    return asyncio.run(perform())


def test_the_signature_is_that_of_standard_webhooks() -> None:
    # The example of the specification.
    key = key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    value = sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert value == "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_only_signed_and_fresh_requests_pass() -> None:
    check = SignatureCheck(["whsec_" + base64.b64encode(b"x" * 24).decode(), SECRET])
    good = {
        "webhook-id": "1",
        "webhook-timestamp": "1000",
        "webhook-signature": "v2,x v1,wrong v1," + sign(key_of(SECRET), "1", "1000", b"body"),
    }
    check.check(good, b"body", now=1200)
    for headers, body, now, message in [
        (good, b"other", 1000, "the signature is wrong"),
        ({**good, "webhook-id": "2"}, b"body", 1000, "the signature is wrong"),
        ({**good, "webhook-signature": "v1,é"}, b"body", 1000, "the signature is wrong"),
        (good, b"body", 1301, "301 s away"),
        ({**good, "webhook-timestamp": "soon"}, b"body", 1000, "is no time"),
        ({}, b"body", 1000, "is not signed"),
    ]:
        with pytest.raises(BadSignature, match=message):
            check.check(headers, body, now=now)
    for secret in ["", "abc", "whsec_!", "whsec_YQ=="]:
        with pytest.raises(ValueError, match="a secret has"):
            key_of(secret)


def test_wsgi_answers_in_the_words_of_the_protocol() -> None:
    handlers = WsgiHandlers(make_app(), secrets=[])
    status, answer, _ = wsgi(handlers, "/exec/shout", {"input": "a"})
    assert (status, answer) == (200, {"result": "A", "logs": [{"level": "info", "message": "shouting"}]})
    context = {
        "idempotency_key": "k%20k",
        "windlass_attempt": "2",
        "windlass_run": "run_1",
        "windlass_node": "n",
    }
    body = {"input": "x", "params": {"p": 1}, "memo": 7}
    deadline = str(int(time.time() * 1000) + 5000)
    answer = wsgi(handlers, "/exec/a b/c", body, **context, windlass_deadline=deadline)[1]
    assert answer == {"result": "k k 2 run_1 n 7 {'p': 1} True"}
    assert wsgi(handlers, "/exec/a b/c", {"input": "suspend"})[1] == {
        "suspend": {"memo": {"n": 1}, "recheck_ms": 2000}
    }
    assert wsgi(handlers, "/exec/a b/c", {"input": "fatal"})[1] == {"error": "no", "retryable": False}
    status, answer, headers = wsgi(handlers, "/exec/a b/c", {"input": "temporary"})
    assert (status, answer) == (503, {"error": "busy", "temporary": True}) and headers["Retry-After"] == "2"
    assert wsgi(handlers, "/exec/shout", {"input": 5})[1]["retryable"] is False
    assert wsgi(handlers, "/exec/other", {})[0] == 404
    assert wsgi(handlers, "/else", {})[0] == 404
    assert wsgi(handlers, "/exec/shout", b"[1]")[0] == 400
    assert wsgi(handlers, "/exec/shout", {}, method="GET")[0] == 405
    assert wsgi(handlers, "/health", {}, method="GET")[0] == 200


def test_unsigned_calls_are_refused() -> None:
    body = {"input": "a"}
    handlers = WsgiHandlers(make_app(), secrets=[SECRET])
    status, answer, _ = wsgi(handlers, "/exec/shout", body)
    assert status == 401 and answer["retryable"] is True and "is not signed" in answer["error"]
    now = str(int(time.time()))
    signature = "v1," + sign(key_of(SECRET), "1", now, json.dumps(body).encode())
    signed = {"webhook_id": "1", "webhook_timestamp": now, "webhook_signature": signature}
    assert wsgi(handlers, "/exec/shout", body, **signed)[0] == 200
    names = {key.replace("_", "-"): value for key, value in signed.items()}
    assert asgi(AsgiHandlers(make_app(), secrets=[SECRET]), "/exec/shout", body, names)[0] == 200
    assert asgi(AsgiHandlers(make_app(), secrets=[SECRET]), "/exec/shout", body)[0] == 401


def test_asgi_performs_both_kinds_of_handlers() -> None:
    handlers = AsgiHandlers(make_app(), secrets=[], prefix="/windlass")
    assert asgi(handlers, "/windlass/exec/shout", {"input": "a"})[1]["result"] == "A"
    assert asgi(handlers, "/windlass/exec/a%20b%2Fc", {"input": "fatal"})[1]["error"] == "no"
    assert asgi(handlers, "/exec/shout", {"input": "a"})[0] == 404


def test_a_closed_connection_cancels_an_async_handler() -> None:
    begun = time.monotonic()
    answer = asgi(AsgiHandlers(make_app(), secrets=[]), "/exec/a%20b%2Fc", {"input": "slow"}, gone_after=0.1)[
        1
    ]
    assert "canceled" in answer["error"] and time.monotonic() - begun < 5


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Says nothing: the tests have the answers."""


@pytest.fixture
def listening() -> Iterator[Callable[[Any], str]]:
    """Serves a WSGI application in a thread, and returns its address."""
    servers = []

    def listen(handlers: Any) -> str:
        made = make_server("127.0.0.1", 0, handlers, handler_class=Quiet)
        threading.Thread(target=made.serve_forever, daemon=True).start()
        servers.append(made)
        return f"http://127.0.0.1:{made.server_port}"

    yield listen
    for made in servers:
        made.shutdown()
        made.server_close()


def test_the_server_signs_its_calls(server: Server, name: Name, listening: Any) -> None:
    app = App(server.url)

    @app.service(name("signed"))
    def signed(text: str) -> str:
        return text.upper()

    flow = Flow(name("signed-push"))
    flow.result(text=flow.call("signed", signed, text="a", push=True))
    address = listening(WsgiHandlers(app, secrets=[OTHER_SECRET, SECRET]))
    with Registration(app, address, secret=SECRET) as registration:
        assert registration.wait()
        flow.publish(app.client)
        assert app.client.start(flow.name).result(15) == {"text": "A"}


def test_calls_under_another_secret_fail(server: Server, name: Name, listening: Any) -> None:
    app = App(server.url)

    @app.service(name("foreign"))
    def foreign(text: str) -> str:
        return text.upper()

    flow = Flow(name("foreign-push"))
    flow.call("foreign", foreign, text="a", push=True)
    address = listening(WsgiHandlers(app, secrets=[SECRET]))
    with Registration(app, address, secret=OTHER_SECRET) as registration:
        assert registration.wait()
        flow.publish(app.client)
        with pytest.raises(RunFailed, match="the signature is wrong"):
            app.client.start(flow.name).result(15)


def test_the_server_calls_a_registered_push_worker(server: Server, name: Name, listening: Any) -> None:
    app, seen = App(server.url), []

    @app.service(name("press"))
    def press(call: Call, text: str) -> Dict[str, Any]:
        seen.append((call.attempt, call.memo))
        if call.attempt == 1 and call.memo is None:
            raise ValueError("first")
        if call.memo is None:
            call.suspend({"page": 1}, recheck=0.1)
        return {"text": text.upper(), "node": call.node, "labels": call.labels}

    flow = Flow(name("push"), text=str)
    node = flow.call("press", press, text=flow.params.text, push=True, retries=2, retry_delay=0.01)
    flow.result(pressed=node.output)
    with Registration(app, listening(WsgiHandlers(app, secrets=[]))) as registration:
        assert registration.wait()
        flow.publish(app.client)
        run = app.client.start(flow.name, {"text": "a"}, labels={"team": "x"})
        assert run.result(15) == {"pressed": {"text": "A", "node": "press", "labels": {"team": "x"}}}
    assert seen[0] == (1, None) and seen[-1][1] == {"page": 1}
    with pytest.raises(ValueError, match="is no address of a worker"):
        Registration(app, "ftp://example.org")
