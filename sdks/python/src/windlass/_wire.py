"""The parts of HTTP that the blocking and the async client share: paths, bodies, errors, pauses, event streams."""

from __future__ import annotations

import json
import os
import select
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union
from urllib.parse import quote, urlencode, urlsplit

from windlass._version import __version__
from windlass.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Interrupted,
    Invalid,
    NotFound,
    ServerError,
    TooBusy,
    Unauthorized,
    Unavailable,
    Unreachable,
    UnreadableAnswer,
)

#: The server that a client without an address talks to.
DEFAULT_SERVER = "http://127.0.0.1:8070"
#: Seconds that a connection may take to come about.
CONNECT_TIMEOUT = 5.0
#: Seconds without an answer, beyond the time that the request asks the server to wait.
ANSWER_TIMEOUT = 30.0
#: Tries of one request.
TRIES_MAX = 4
#: The first pause between two tries, in seconds; each next one is twice as long.
RETRY_DELAY = 0.1
#: The longest pause that a client makes because the server asks for it.
RETRY_DELAY_MAX = 5.0
#: Characters of an answer of another program that an error shows.
SHOWN_CHARS = 200

Duration = Union[int, float, timedelta]
Moment = Union[str, datetime]


@dataclass(frozen=True)
class Address:
    """The parts of the URL of a server."""

    is_tls: bool
    host: str
    port: int
    prefix: str

    @property
    def base(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_tls else 'http'}://{host}:{self.port}{self.prefix}"


def address(server: Optional[str]) -> Address:
    """Reads the URL of a server; the default comes from WINDLASS_SERVER."""
    url = (server or os.environ.get("WINDLASS_SERVER") or DEFAULT_SERVER).strip()
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise ValueError(f"`{url}` is no address of a server: write http://host:port")
    is_tls = parts.scheme == "https"
    return Address(is_tls, host, port or (443 if is_tls else 80), parts.path.rstrip("/"))


def headers(key: Optional[str], actor: Optional[str]) -> Dict[str, str]:
    """The headers of every request."""
    fixed = {"User-Agent": f"windlass-python/{__version__}", "Accept": "application/json"}
    key = key if key is not None else os.environ.get("WINDLASS_KEY")
    if key:
        fixed["Authorization"] = f"Bearer {_visible(key, 'the API key')}"
    actor = actor or os.environ.get("WINDLASS_ACTOR")
    if actor:
        fixed["X-Windlass-Actor"] = _visible(actor, "the actor")
    return fixed


def _visible(text: str, noun: str) -> str:
    text = text.strip()
    if not text.isascii() or not text.isprintable():
        raise ValueError(f"{noun} cannot be sent in a header: give visible ASCII characters")
    return text


@dataclass(frozen=True)
class Request:
    """A request, ready to be sent."""

    method: str
    path: str
    body: Optional[bytes] = None
    #: Seconds that the server was asked to hold its answer back.
    wait: float = 0.0
    #: Doing it twice does no more than doing it once.
    is_idempotent: bool = False


def request(
    method: str,
    segments: Sequence[str],
    *,
    query: Optional[Mapping[str, Any]] = None,
    body: Any = None,
    wait: float = 0.0,
    idempotent: Optional[bool] = None,
) -> Request:
    """A request to a native route; each segment is encoded by itself, since names may have slashes."""
    path = "/api/v1/" + "/".join(quote(segment, safe="") for segment in segments)
    set_fields = {key: _query_value(value) for key, value in (query or {}).items() if value is not None}
    if set_fields:
        path += "?" + urlencode(set_fields)
    if idempotent is None:
        idempotent = method in ("GET", "PUT", "DELETE")
    return Request(method, path, None if body is None else dump(body), wait, idempotent)


def _query_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(_query_value(one) for one in value)
    return str(moment(value)) if isinstance(value, datetime) else str(value)


def dump(value: Any) -> bytes:
    """A value as JSON; dataclasses, enums, times and pydantic models are translated."""
    from windlass.convert import plain

    try:
        return json.dumps(
            value, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=plain
        ).encode()
    except ValueError as error:
        # NaN, infinities and half surrogate pairs are no JSON.
        raise ValueError(f"the value cannot be sent as JSON: {error}") from None


def present(**fields: Any) -> Dict[str, Any]:
    """The fields that are not `None`."""
    return {key: value for key, value in fields.items() if value is not None}


def millis(duration: Optional[Duration]) -> Optional[int]:
    """Seconds or a timedelta as whole milliseconds, as the server counts."""
    if duration is None:
        return None
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    return round(seconds * 1000)


def seconds(duration: Duration) -> float:
    return duration.total_seconds() if isinstance(duration, timedelta) else float(duration)


def moment(at: Optional[Moment]) -> Optional[str]:
    """A time as RFC 3339; one without a zone is meant in the zone of this machine."""
    if at is None or isinstance(at, str):
        return at
    return at.astimezone(timezone.utc).isoformat()


def after(delay: Duration) -> str:
    """The time after a delay from now, as RFC 3339."""
    return (datetime.now(timezone.utc) + timedelta(seconds=seconds(delay))).isoformat()


# Answers


def answer(path: str, status: int, body: bytes, retry_after: Optional[str]) -> Any:
    """The value of a successful answer; raises the error of another one."""
    if not 200 <= status < 300:
        raise error_of(status, body, retry_after)
    if not body:
        return None
    try:
        return json.loads(body)
    except ValueError:
        raise UnreadableAnswer(f"the answer of {path} is no JSON: {_shown(body)}", status) from None


def error_of(status: int, body: bytes, retry_after: Optional[str] = None) -> ApiError:
    """The error of an answer; a proxy in between may have sent it without `application/problem+json`."""
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    is_problem = isinstance(problem, dict)
    fields: Dict[str, Any] = problem if is_problem else {}
    detail = fields.get("detail") or fields.get("error") or fields.get("title")
    if not detail:
        text = "" if is_problem else _shown(body)
        detail = f"the server answered {status}" + (f": {text}" if text else "")
    errors = [one for one in fields.get("errors") or [] if isinstance(one, dict)]
    code = fields.get("code")
    kind: Any = None
    if code:
        from windlass.codes import BY_CODE

        kind = BY_CODE.get(code)
    kind = kind or _class_of(status)
    error: ApiError = kind(
        str(detail),
        code=code or _word_of(status),
        status=status,
        errors=errors,
        retry_after=_seconds_of(retry_after),
    )
    return error


def _shown(body: bytes) -> str:
    return body.decode("utf-8", "replace").strip()[:SHOWN_CHARS]


def _seconds_of(text: Optional[str]) -> Optional[float]:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None


def _class_of(status: int) -> Any:
    classes = {
        401: Unauthorized,
        403: Forbidden,
        404: NotFound,
        409: Conflict,
        429: TooBusy,
        503: Unavailable,
    }
    return classes.get(status, ServerError if status >= 500 else Invalid)


def _word_of(status: int) -> str:
    words = {
        400: "bad_request",
        401: "unauthorized",
        403: "forbidden",
        404: "not_found",
        405: "method_not_allowed",
        409: "conflict",
        413: "too_large",
        422: "invalid",
        429: "busy",
        503: "unavailable",
    }
    return words.get(status, "server_error" if status >= 500 else "refused")


def pause_before_retry(request: Request, error: ApiError, n_tries: int) -> Optional[float]:
    """Seconds until the next try of a request, or `None` if it must not be repeated."""
    if n_tries >= TRIES_MAX:
        return None
    had_no_effect = isinstance(error, (Unreachable, TooBusy)) or error.code == "draining"
    may_repeat = isinstance(error, (Interrupted, Unavailable)) or error.status in (502, 504)
    if not had_no_effect and not (may_repeat and request.is_idempotent):
        return None
    pause = RETRY_DELAY * 2 ** (n_tries - 1)
    return float(min(max(pause, error.retry_after or 0.0), RETRY_DELAY_MAX))


class Backoff:
    """Pauses of a loop that never gives up: from a tenth of a second to five seconds."""

    def __init__(self, first: float = RETRY_DELAY, most: float = RETRY_DELAY_MAX) -> None:
        self._first, self._most, self._next = first, most, first

    def reset(self) -> None:
        self._next = self._first

    def pause(self, error: Optional[ApiError] = None) -> float:
        pause = self._next
        self._next = min(pause * 2, self._most)
        return min(max(pause, (error.retry_after if error else None) or 0.0), self._most)


def is_readable(sock: Any) -> bool:
    """Whether an idle connection has something to read: the server closed it, and the end is all that can come."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock.fileno(), select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([sock.fileno()], [], [], 0)[0])


# Event streams


@dataclass
class ServerEvent:
    """One event of a stream; `id` is where to go on after a break."""

    event: str = "message"
    data: str = ""
    id: Optional[str] = None


class EventParser:
    """Reads the lines of a stream of server-sent events."""

    def __init__(self) -> None:
        self._fields: List[Tuple[str, str]] = []

    def line(self, line: str) -> Optional[ServerEvent]:
        """Takes a line without its end; returns the event that it completes."""
        if line:
            if not line.startswith(":"):
                name, _, value = line.partition(":")
                self._fields.append((name, value[1:] if value.startswith(" ") else value))
            return None
        fields, self._fields = self._fields, []
        if not fields:
            return None
        event = ServerEvent(data="\n".join(value for name, value in fields if name == "data"))
        for name, value in fields:
            if name == "event":
                event.event = value
            elif name == "id":
                event.id = value
        return event
