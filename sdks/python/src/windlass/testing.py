"""The test kit: a real server on an empty store, workers beside it, and calls of handlers without a server.

with Server() as server, server.worker(app):
    assert resize.send("cat.png").wait(10) == "cat.png at 80"

assert call(resize, {"file": "cat.png"}) == "cat.png at 80"
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Type, Union

from windlass._sync.client import Client
from windlass.call import Call, Suspended
from windlass.errors import ApiError, Fatal, Temporary, WindlassError
from windlass.handler import Handler

if TYPE_CHECKING:
    from windlass.app import App, Service
    from windlass.worker import Worker

__all__ = ["CallFailed", "Server", "Suspended", "call"]

#: Seconds that a server has to start and to answer.
START_TIMEOUT = 30.0


def binary() -> str:
    """The server binary: WINDLASS names it, or it is on the path."""
    named = os.environ.get("WINDLASS")
    found = named or shutil.which("windlass")
    if not found:
        raise FileNotFoundError(
            "there is no `windlass` on the path: install the server, or name the binary by WINDLASS"
        )
    if not os.access(found, os.X_OK):
        raise FileNotFoundError(f"WINDLASS is {found}, which is no program")
    return found


class Server:
    """A server with a store of its own in a temporary directory; `with` starts and ends it."""

    def __init__(self, *arguments: str, env: Optional[Dict[str, str]] = None) -> None:
        self._arguments, self._env = arguments, env or {}
        self._directory: Optional[tempfile.TemporaryDirectory[str]] = None
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._port = 0
        self._client: Optional[Client] = None

    @property
    def url(self) -> str:
        """The address of the server; the same after a restart."""
        if not self._port:
            raise RuntimeError("the server is not started: use `with Server() as server`")
        return f"http://127.0.0.1:{self._port}"

    @property
    def client(self) -> Client:
        """A blocking client of the server."""
        if self._client is None:
            self._client = Client(self.url)
        return self._client

    @property
    def log(self) -> str:
        """The output of the server."""
        return self._log_file.read_text(encoding="utf-8", errors="replace")

    @property
    def _log_file(self) -> Path:
        if self._directory is None:
            raise RuntimeError("the server is not started: use `with Server() as server`")
        return Path(self._directory.name) / "server.log"

    def start(self) -> Server:
        """Starts the server, or starts it again on its store and port."""
        if self._process is not None:
            raise RuntimeError("the server is started already")
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="windlass-test-")
        directory = self._directory.name
        command = [
            binary(), "serve", "--store", f"sqlite:{directory}/store.db", "--durability", "fast",
            "--listen", f"127.0.0.1:{self._port}", *self._arguments,
        ]  # fmt: skip
        begin = self._log_file.stat().st_size if self._log_file.exists() else 0
        with open(self._log_file, "ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=directory, env={**os.environ, **self._env}
            )
        self._wait_until_ready(begin)
        return self

    def _wait_until_ready(self, begin: int) -> None:
        until = time.monotonic() + START_TIMEOUT
        while time.monotonic() < until:
            found = re.search(r"listens on \S+:(\d+)", self.log[begin:])
            if found:
                self._port = int(found[1])
                with contextlib.suppress(ApiError):
                    self.client.health()
                    return
            if self._process is None or self._process.poll() is not None:
                break
            time.sleep(0.005)
        text = self.log[begin:]
        self._process = None if self._process is None or self._process.poll() is not None else self._process
        self.kill()
        raise WindlassError(f"the server did not start:\n{text}")

    def kill(self) -> None:
        """Kills the server as a power failure would; `start` brings it back."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Lets the server end by itself; `start` brings it back."""
        self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(START_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    @contextlib.contextmanager
    def worker(self, app: App, **options: Any) -> Iterator[Worker]:
        """Runs a worker for an application against this server; `options` are those of `Worker`."""
        from windlass.worker import Worker

        app.server, app._client, app._async_client = self.url, None, None
        options.setdefault("drain", 5.0)
        worker = Worker(app, **options).start()
        try:
            worker.wait_until_registered()
            yield worker
        finally:
            worker.close()

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.kill()
        if self._client is not None:
            self._client.close()
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None
        self._port, self._client = 0, None


class CallFailed(WindlassError):
    """A handler failed in `call`; `outcome` is the end that a worker would send."""

    def __init__(self, outcome: Dict[str, Any]) -> None:
        super().__init__(outcome["error"])
        self.outcome = outcome


def call(
    handler: Union[Service[Any, Any], Any],
    input: Any = None,
    *,
    memo: Any = None,
    key: str = "test",
    attempt: int = 1,
    params: Optional[Dict[str, Any]] = None,
    remaining: Optional[float] = None,
    labels: Optional[Dict[str, str]] = None,
    context: Optional[List[Call]] = None,
) -> Any:
    """Performs a call of a handler as a worker does, without a server: the input and the result pass through JSON.

    Returns the result. A suspended call raises `Suspended` with its memo, and a failed one `Fatal`, `Temporary` or
    `CallFailed`. `context` receives the `Call`, for its log lines.
    """
    import json

    from windlass._wire import dump
    from windlass.app import Service

    served = (
        handler.handler
        if isinstance(handler, Service)
        else Handler(handler, getattr(handler, "__name__", "handler"))
    )
    made = Call(
        served.name,
        json.loads(dump(input)),
        key=key,
        attempt=attempt,
        memo=memo,
        params=params,
        remaining=remaining,
        labels=labels or {},
    )
    if context is not None:
        context.append(made)
    outcome = served.answer(made)
    if outcome["outcome"] == "done":
        return json.loads(dump(outcome["result"]))
    if outcome["outcome"] == "suspended":
        raise Suspended(json.loads(dump(outcome["memo"])), outcome.get("recheck_ms"))
    if outcome.get("retryable") is False:
        raise Fatal(outcome["error"])
    if outcome.get("temporary"):
        after = outcome.get("retry_after_ms")
        raise Temporary(outcome["error"], retry_after=None if after is None else after / 1000)
    raise CallFailed(outcome)
