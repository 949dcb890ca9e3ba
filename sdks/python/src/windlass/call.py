"""The context of a call: the things that a handler knows of it, and the ways in which it can end."""

from __future__ import annotations

import contextvars
import json
import logging
import threading
import time
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NoReturn, Optional

from windlass._wire import Duration, dump, millis
from windlass.errors import Canceled

if TYPE_CHECKING:
    from windlass._sync.client import Client

logger = logging.getLogger("windlass.call")

#: Lines of a log that the server keeps for one attempt.
LINES_MAX = 1000

_current: contextvars.ContextVar[Optional[Call]] = contextvars.ContextVar("windlass_call", default=None)


class Suspended(BaseException):
    """Raised by `call.suspend()`. No `Exception`, so that a handler does not catch it by accident."""

    def __init__(self, memo: Any, recheck_ms: Optional[int]) -> None:
        super().__init__("the call is suspended")
        self.memo, self.recheck_ms = memo, recheck_ms


def sendable(text: str) -> str:
    """A text without half surrogate pairs, which no JSON has."""
    return text.encode("utf-8", "replace").decode()


def _loggable(data: Dict[str, Any]) -> Any:
    """Data of a log line as JSON. A line never costs the result: a value without a form in JSON is shown as text."""
    try:
        return json.loads(dump(data))
    except (ValueError, TypeError, RecursionError):
        return {key: sendable(repr(value)) for key, value in data.items()}


class CallLog:
    """Log lines that travel with the end of the attempt, and appear in `windlass run logs`."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._lines: List[Dict[str, Any]] = []

    def __call__(self, message: object, **data: Any) -> None:
        self.info(message, **data)

    def info(self, message: object, **data: Any) -> None:
        self._add("info", logging.INFO, message, data)

    def warn(self, message: object, **data: Any) -> None:
        self._add("warn", logging.WARNING, message, data)

    warning = warn

    def error(self, message: object, **data: Any) -> None:
        self._add("error", logging.ERROR, message, data)

    def lines(self) -> List[Dict[str, Any]]:
        """The lines so far."""
        return list(self._lines)

    def _add(self, level: str, number: int, message: object, data: Dict[str, Any]) -> None:
        logger.log(number, "%s: %s", self._service, message)
        if len(self._lines) < LINES_MAX:
            line: Dict[str, Any] = {"level": level, "message": sendable(str(message))}
            if data:
                line["data"] = _loggable(data)
            self._lines.append(line)


class Call:
    """One call of a service, given to a handler that has a parameter with this annotation."""

    def __init__(
        self,
        service: str,
        input: Any = None,
        *,
        key: str = "",
        attempt: int = 1,
        run: Optional[str] = None,
        node: Optional[str] = None,
        call: Optional[str] = None,
        queue: Optional[str] = None,
        params: Optional[Dict[str, Any]] = None,
        memo: Any = None,
        priority: int = 0,
        remaining: Optional[float] = None,
        labels: Optional[Dict[str, str]] = None,
        client: Optional[Client] = None,
    ) -> None:
        #: Identical for all attempts: send it as idempotency key where the outside world must act only once.
        self.key = key
        #: Counts from 1.
        self.attempt = attempt
        #: The run and its node; `None` for a job without a run.
        self.run, self.node = run, node
        #: The id under which a suspended call can be reported: `client.calls.report(call.call, result)`.
        self.call = call
        self.service, self.queue = service, queue
        #: The input as JSON; the parameters of the handler have it with their types.
        self.input = input
        #: The parameters of the node, overridden by those of the run.
        self.params: Dict[str, Any] = params or {}
        #: The value that an earlier attempt left with `suspend`.
        self.memo = memo
        self.priority = priority
        #: `call.log("rendered", seconds=3)`, also `.warn` and `.error`.
        self.log = CallLog(service)
        #: The reason for which the call should stop: `canceled`, `lost`, `deadline` or `stopped`.
        self.cancel_reason: Optional[str] = None
        self._until = None if remaining is None else time.monotonic() + remaining
        self._labels, self._client = labels, client
        self._canceled = threading.Event()
        self._on_cancel: List[Callable[[], Any]] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<Call of {self.service}, attempt {self.attempt}, key {self.key!r}>"

    @staticmethod
    def current() -> Call:
        """The call that this handler performs, also without a parameter for it."""
        call = _current.get()
        if call is None:
            raise RuntimeError("there is no call here: `Call.current()` works inside a handler")
        return call

    @property
    def remaining(self) -> Optional[float]:
        """Seconds until the attempt is given up, at least 0; `None` without a limit."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    @property
    def deadline(self) -> Optional[datetime]:
        """The time at which the attempt is given up, by the clock of this machine; `None` without a limit."""
        left = self.remaining
        return None if left is None else datetime.now(timezone.utc) + timedelta(seconds=left)

    @property
    def labels(self) -> Dict[str, str]:
        """The labels of the run, which are read from the server at the first use; empty for a job without a run."""
        if self._labels is None:
            if self.run is None or self._client is None:
                self._labels = {}
            else:
                self._labels = dict(self._client.runs.get(self.run).get("labels") or {})
        return self._labels

    @property
    def cancelled(self) -> bool:
        """Whether the answer is not needed any more: the run or job was canceled, or the lease or time is over."""
        return self._canceled.is_set()

    def check(self) -> None:
        """Raises `Canceled` if the answer is not needed any more: for loops of blocking handlers."""
        if self.cancelled:
            raise Canceled(f"the call should stop: {self.cancel_reason}")

    def wait_cancelled(self, timeout: Duration) -> bool:
        """Sleeps for so many seconds, or until the call should stop; returns whether it should."""
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        return self._canceled.wait(seconds)

    def on_cancel(self, stop: Callable[[], Any]) -> None:
        """Calls `stop` when the call should stop, from another thread; at once if it should already."""
        with self._lock:
            if not self.cancelled:
                self._on_cancel.append(stop)
                return
        stop()

    def suspend(self, memo: Any = None, *, recheck: Optional[Duration] = None) -> NoReturn:
        """Ends the attempt without a result and holds no worker: the work continues elsewhere.

        The server calls again with this memo after `recheck` seconds. Without it, the interval of the node or
        service applies, or a report under `call.call` ends the call.
        """
        raise Suspended(memo, millis(recheck))

    def cancel(self, reason: str = "canceled") -> None:
        """Tells the handler to stop; the worker calls it."""
        with self._lock:
            if self.cancelled:
                return
            self.cancel_reason = reason
            self._canceled.set()
            hooks, self._on_cancel = self._on_cancel, []
        for hook in hooks:
            try:
                hook()
            except Exception:
                logger.exception("a function of on_cancel failed in %s", self.service)
