"""The async client of a server."""

from __future__ import annotations

import asyncio
import json
from types import TracebackType
from typing import Any, AsyncIterator, Dict, Optional, Tuple, Type

from windlass import _wire
from windlass._async.accounts import AsyncAccountsApi, AsyncPricesApi
from windlass._async.approvals import AsyncApprovalsApi
from windlass._async.calls import AsyncCallsApi
from windlass._async.flows import AsyncFlowsApi
from windlass._async.http import AsyncTransport
from windlass._async.jobs import AsyncJobsApi
from windlass._async.queues import AsyncDeadLettersApi, AsyncQueuesApi
from windlass._async.runs import AsyncRun, AsyncRunsApi
from windlass._async.schedules import AsyncSchedulesApi
from windlass._async.workers import AsyncServicesApi, AsyncWorkersApi
from windlass.errors import ApiError, Interrupted, UnreadableAnswer

__all__ = ["AsyncClient"]


class AsyncClient:
    """The async client of a server.

    `server` defaults to WINDLASS_SERVER, `key` (an API key) to WINDLASS_KEY, and `actor` (the name in the audit) to
    WINDLASS_ACTOR. Each noun of the server has its own attribute: `client.runs.start("orders")`. A request that had
    no effect, or that is idempotent, is repeated up to three times.
    """

    def __init__(
        self,
        server: Optional[str] = None,
        key: Optional[str] = None,
        *,
        actor: Optional[str] = None,
        timeout: float = _wire.ANSWER_TIMEOUT,
    ) -> None:
        address = _wire.address(server)
        self._transport = AsyncTransport(address, _wire.headers(key, actor), timeout)
        self.server = address.base
        self.accounts = AsyncAccountsApi(self)
        self.approvals = AsyncApprovalsApi(self)
        self.calls = AsyncCallsApi(self)
        self.dead_letters = AsyncDeadLettersApi(self)
        self.flows = AsyncFlowsApi(self)
        self.jobs = AsyncJobsApi(self)
        self.prices = AsyncPricesApi(self)
        self.queues = AsyncQueuesApi(self)
        self.runs = AsyncRunsApi(self)
        self.schedules = AsyncSchedulesApi(self)
        self.services = AsyncServicesApi(self)
        self.workers = AsyncWorkersApi(self)

    async def start(self, flow: str, params: Any = None, **options: Any) -> AsyncRun:
        """Starts a run: short for `runs.start`."""
        return await self.runs.start(flow, params, **options)

    async def request(self, request: _wire.Request) -> Any:
        """Sends a request, again where that is harmless, and returns the value of the answer."""
        n_tries = 1
        while True:
            try:
                status, body, retry_after = await self._transport.send(request)
                return _wire.answer(request.path, status, body, retry_after)
            except ApiError as error:
                pause = _wire.pause_before_retry(request, error, n_tries)
                if pause is None:
                    raise
            n_tries += 1
            await asyncio.sleep(pause)

    async def raw(self, method: str, path: str, body: Any = None) -> Tuple[int, str]:
        """Makes any request once, for routes without a method here; returns the status and the text."""
        encoded = None if body is None else _wire.dump(body)
        status, answer, _ = await self._transport.send(_wire.Request(method.upper(), path, encoded))
        return status, answer.decode("utf-8", "replace")

    async def events(
        self, request: _wire.Request, after: Optional[str] = None
    ) -> AsyncIterator[_wire.ServerEvent]:
        """The events of a stream; it opens the stream again for ever when it breaks, after the last event it saw."""
        backoff = _wire.Backoff()
        has_answered = False
        while True:
            parser = _wire.EventParser()
            try:
                async for line in self._transport.lines(request, after):
                    has_answered = True
                    event = parser.line(line)
                    if event is not None:
                        backoff.reset()
                        after = event.id or after
                        yield event
                pause = backoff.pause()
            except ApiError as error:
                if not error.is_temporary or not (has_answered or isinstance(error, Interrupted)):
                    raise
                pause = backoff.pause(error)
            await asyncio.sleep(pause)

    async def health(self) -> Dict[str, Any]:
        """The version of the server; raises an error if it does not answer."""
        status, text = await self.raw("GET", "/healthz")
        if status != 200:
            raise _wire.error_of(status, text.encode())
        try:
            answer: Dict[str, Any] = json.loads(text)
        except ValueError:
            raise UnreadableAnswer(f"the answer of /healthz is no JSON: {text[:200]}", status) from None
        return answer

    def interrupt(self) -> None:
        """Breaks the requests that are under way; each raises `Interrupted`."""
        self._transport.interrupt()

    async def aclose(self) -> None:
        """Closes the open connections."""
        await self._transport.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.aclose()
