"""Runs of flows: start, read, follow, control."""

from __future__ import annotations

import asyncio
import json
import time as clock
from typing import TYPE_CHECKING, Any, AsyncIterator, Dict, List, Mapping, Optional

from windlass._async.api import AsyncApi
from windlass._wire import Duration, Moment, ServerEvent, millis, present, request, seconds
from windlass.errors import ApiError, RunFailed, StillOpen

if TYPE_CHECKING:
    from windlass._async.client import AsyncClient
    from windlass.schema import (
        JournalEntry,
        LogLevel,
        LogLine,
        NodeAttemptInfo,
        OnShortBalance,
        RunDetail,
        RunPriority,
        RunSummary,
        StartMode,
        StartResponse,
        Why,
    )

#: The first pause between two looks at a run or job whose end is awaited, in seconds.
LOOK_FIRST = 0.02
#: The longest pause between two looks.
LOOK_LAST = 1.0
#: The longest time that the server holds back its answer to a start.
START_WAIT_MAX = 60.0

ENDED = frozenset(["completed", "failed", "canceled"])


class AsyncRun:
    """A run of a flow; its methods are those of `client.runs` without the id."""

    def __init__(self, client: AsyncClient, started: StartResponse) -> None:
        self._client = client
        self.id: str = started["id"]
        self.flow: str = started["flow"]
        self.version: int = started["version"]
        #: False if the `request_id` belongs to an earlier start.
        self.created: bool = started["created"]
        #: The answer to the start; it has `run` if the start waited for the end.
        self.started = started

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} of {self.flow} v{self.version}>"

    async def get(self) -> RunDetail:
        """The run as it is now."""
        return await self._client.runs.get(self.id)

    async def wait(self, timeout: Optional[Duration] = None) -> RunDetail:
        """Waits for the end of the run, however it ends; raises `StillOpen` after `timeout` seconds."""
        return await self._client.runs.wait(self.id, timeout)

    async def result(self, timeout: Optional[Duration] = None) -> Any:
        """Waits for the end and returns the result; raises `RunFailed` if the run failed or was canceled."""
        return await self._client.runs.result(self.id, timeout)

    def follow(self, after: Optional[int] = None) -> AsyncIterator[JournalEntry]:
        """The entries of the journal as they come, until the end of the run."""
        return self._client.runs.follow(self.id, after)

    async def signal(self, key: str, value: Any = None, *, id: Optional[str] = None) -> RunSummary:
        """Sends a value to the run; a repetition with the same `id` is a no-op."""
        return await self._client.runs.signal(self.id, key, value, id=id)

    async def cancel(self, reason: Optional[str] = None) -> RunSummary:
        """Ends the run."""
        return await self._client.runs.cancel(self.id, reason)

    async def why(self) -> Why:
        """The reasons for which the run waits."""
        return await self._client.runs.why(self.id)


class AsyncRunsApi(AsyncApi):
    """Starts, reads and controls runs."""

    async def start(
        self,
        flow: str,
        params: Optional[Mapping[str, Any]] = None,
        *,
        wait: Optional[Duration] = None,
        request_id: Optional[str] = None,
        version: Optional[int] = None,
        labels: Optional[Mapping[str, str]] = None,
        priority: Optional[RunPriority] = None,
        account: Optional[str] = None,
        budget: Optional[int] = None,
        on_short_balance: Optional[OnShortBalance] = None,
        exec_mode: Optional[StartMode] = None,
        start_node_ids: Optional[List[str]] = None,
        manual: Optional[bool] = None,
    ) -> AsyncRun:
        """Starts a run of a flow, named by its name or id.

        With a `request_id` the start is repeated when the connection breaks, and makes one run. `wait` lets the
        server answer at the end of the run or after so many seconds, up to 60.
        """
        body = present(
            params=params,
            request_id=request_id,
            version=version,
            labels=labels,
            priority=priority,
            account=account,
            budget=budget,
            on_short_balance=on_short_balance,
            exec_mode=exec_mode,
            start_node_ids=start_node_ids,
            manual=manual,
        )
        hold = min(seconds(wait), START_WAIT_MAX) if wait else 0.0
        query = {"wait_ms": millis(hold)} if hold else None
        path = ["flows", flow, "runs"]
        started = await self._post(path, body, query=query, wait=hold, idempotent=request_id is not None)
        return AsyncRun(self._client, started)

    async def get(self, run: str) -> RunDetail:
        """A run with the states of its nodes."""
        detail: RunDetail = await self._get("runs", run)
        return detail

    async def wait(self, run: str, timeout: Optional[Duration] = None) -> RunDetail:
        """Waits for the end of a run, however it ends; raises `StillOpen` after `timeout` seconds.

        A server that goes away meanwhile is waited for; one that never answered only if there is a `timeout`.
        """
        until = None if timeout is None else clock.monotonic() + seconds(timeout)
        pause, has_answered = LOOK_FIRST, False
        while True:
            is_over = until is not None and clock.monotonic() >= until
            try:
                detail = await self.get(run)
                has_answered = True
                if detail["status"] in ENDED:
                    return detail
                if is_over:
                    raise StillOpen(f"{run} is {detail['status']} after {seconds(timeout or 0):g} s")
            except ApiError as error:
                if not error.is_temporary or is_over or not (has_answered or until):
                    raise
            await asyncio.sleep(pause if until is None else max(0.0, min(pause, until - clock.monotonic())))
            pause = min(pause * 1.5, LOOK_LAST)

    async def result(self, run: str, timeout: Optional[Duration] = None) -> Any:
        """Waits for the end of a run and returns its result, or its shared state if it has none.

        Raises `RunFailed` if the run failed or was canceled.
        """
        detail = await self.wait(run, timeout)
        if detail["status"] != "completed":
            raise RunFailed(dict(detail))
        result = detail.get("result")
        return detail["shared"] if result is None else result

    async def list(
        self,
        query: Optional[str] = None,
        *,
        flow: Optional[str] = None,
        status: Optional[str] = None,
        label: Optional[str] = None,
        account: Optional[str] = None,
        parent: Optional[str] = None,
        since: Optional[Moment] = None,
        until: Optional[Moment] = None,
        q: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> AsyncIterator[RunSummary]:
        """Runs, newest first, all pages; `query` is the language of searches, such as `status:failed flow:pay`."""
        filters: Dict[str, Any] = dict(
            query=query, flow=flow, status=status, label=label, account=account, parent=parent, since=since,
            until=until, q=q,
        )  # fmt: skip
        n_left = limit
        async for one in self._each(["runs"], limit=min(limit or 1000, 1000), **filters):
            if n_left is not None:
                if n_left <= 0:
                    return
                n_left -= 1
            yield one

    async def follow(self, run: str, after: Optional[int] = None) -> AsyncIterator[JournalEntry]:
        """The entries of the journal after the number `after`, as they come, until the end of the run.

        A stream that breaks is opened again at its last entry, however long the server is away.
        """
        stream = request("GET", ["runs", run, "events"])
        event: ServerEvent
        async for event in self._client.events(stream, None if after is None else str(after)):
            if event.event == "entry":
                yield json.loads(event.data)
            elif event.event == "end":
                return

    async def signal(
        self, run: str, key: str, value: Any = None, *, id: Optional[str] = None, by: Optional[str] = None
    ) -> RunSummary:
        """Sends a value to a run; a repetition with the same `id` is a no-op."""
        body = {"key": key, "value": value, **present(id=id, by=by)}
        summary: RunSummary = await self._post(["runs", run, "signal"], body, idempotent=id is not None)
        return summary

    async def cancel(self, run: str, reason: Optional[str] = None) -> RunSummary:
        """Ends a run; calls that do not confirm within 30 seconds are abandoned."""
        summary: RunSummary = await self._post(
            ["runs", run, "cancel"], present(reason=reason), idempotent=True
        )
        return summary

    async def pause(self, run: str) -> RunSummary:
        """Lets a run enter no more nodes."""
        return await self._act(run, "pause")

    async def resume(self, run: str) -> RunSummary:
        """Lets a paused run continue."""
        return await self._act(run, "resume")

    async def step(self, run: str) -> RunSummary:
        """Enters one more node of a paused or manual run."""
        return await self._act(run, "step")

    async def retry(self, run: str, *, dry_run: bool = False) -> Dict[str, Any]:
        """Repeats the failed and canceled nodes of an ended run; a dry run only shows the effects."""
        return await self._round(run, "retry", {}, dry_run)

    async def rerun(
        self,
        run: str,
        from_node: str,
        *,
        shared: Optional[Mapping[str, Any]] = None,
        dry_run: bool = False,
    ) -> Dict[str, Any]:
        """Runs again from a node, with the current or the given shared state; a dry run only shows the effects."""
        return await self._round(run, "rerun", {"from": from_node, **present(shared=shared)}, dry_run)

    async def continue_node(self, run: str, node: str, result: Any = None) -> RunSummary:
        """Ends a suspended or waiting node with a result."""
        summary: RunSummary = await self._post(["runs", run, "continue"], {"node": node, "result": result})
        return summary

    async def set_budget(self, run: str, budget: int) -> RunSummary:
        """Sets the largest cost of a run."""
        summary: RunSummary = await self._post(["runs", run, "budget"], {"budget": budget}, idempotent=True)
        return summary

    async def why(self, run: str) -> Why:
        """The reasons for which a run waits, and the commands that end the wait."""
        reasons: Why = await self._get("runs", run, "why")
        return reasons

    async def attempts(self, run: str) -> AsyncIterator[NodeAttemptInfo]:
        """Every attempt of every node, oldest first."""
        async for attempt in self._each(["runs", run, "attempts"]):
            yield attempt

    async def journal(self, run: str) -> AsyncIterator[JournalEntry]:
        """Every entry of the journal, oldest first."""
        async for entry in self._each(["runs", run, "journal"]):
            yield entry

    async def logs(
        self, run: str, *, level: Optional[LogLevel] = None, node: Optional[str] = None
    ) -> AsyncIterator[LogLine]:
        """The log lines of a run, oldest first."""
        async for line in self._each(["runs", run, "logs"], level=level, node=node):
            yield line

    async def _act(self, run: str, verb: str) -> RunSummary:
        summary: RunSummary = await self._post(["runs", run, verb], {})
        return summary

    async def _round(self, run: str, verb: str, body: Dict[str, Any], dry_run: bool) -> Dict[str, Any]:
        query = {"dry_run": 1} if dry_run else None
        answer: Dict[str, Any] = await self._post(["runs", run, verb], body, query=query, idempotent=dry_run)
        return answer
