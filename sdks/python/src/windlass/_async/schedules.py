"""Schedules: cron expressions that start jobs and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncIterator, Mapping, Optional

from windlass._async.api import AsyncApi
from windlass._wire import Duration, millis, present, request

if TYPE_CHECKING:
    from windlass.schema import (
        CatchupRule,
        DstRule,
        NextRuns,
        OverlapRule,
        ScheduledTask,
        ScheduleInfo,
        Triggered,
    )


class AsyncSchedulesApi(AsyncApi):
    """Creates, reads and changes schedules."""

    async def create(
        self,
        cron: str,
        *,
        flow: Optional[str] = None,
        params: Optional[Mapping[str, Any]] = None,
        version: Optional[int] = None,
        task: Optional[ScheduledTask] = None,
        account: Optional[str] = None,
        timezone: Optional[str] = None,
        name: Optional[str] = None,
        enabled: Optional[bool] = None,
        overlap: Optional[OverlapRule] = None,
        catchup: Optional[CatchupRule] = None,
        window: Optional[Duration] = None,
        dst: Optional[DstRule] = None,
    ) -> ScheduleInfo:
        """Creates a schedule that starts a `flow`, or a job as a `task` (`{"name", "queue_name", "payload"}`)."""
        body = present(
            cron_expr=cron, flow=flow, params=params, version=version, task=task, account=account,
            timezone=timezone, name=name, enabled=enabled, overlap=overlap, catchup=catchup,
            window_ms=millis(window), dst=dst,
        )  # fmt: skip
        info: ScheduleInfo = await self._post(["schedules"], body)
        return info

    async def list(self) -> AsyncIterator[ScheduleInfo]:
        """Schedules, oldest first, all pages."""
        async for schedule in self._each(["schedules"], "schedules"):
            yield schedule

    async def get(self, schedule: str) -> ScheduleInfo:
        """One schedule."""
        info: ScheduleInfo = await self._get("schedules", schedule)
        return info

    async def change(self, schedule: str, **fields: Any) -> ScheduleInfo:
        """Changes fields of a schedule, named as in its body; absent fields stay."""
        sent = request("PATCH", ["schedules", schedule], body=fields, idempotent=True)
        info: ScheduleInfo = await self._client.request(sent)
        return info

    async def delete(self, schedule: str) -> None:
        """Deletes a schedule; its open jobs and runs continue."""
        await self._client.request(request("DELETE", ["schedules", schedule], idempotent=False))

    async def enable(self, schedule: str, enabled: bool = True) -> ScheduleInfo:
        """Turns a schedule on or off."""
        info: ScheduleInfo = await self._post(
            ["schedules", schedule, "toggle"], {"enabled": enabled}, idempotent=True
        )
        return info

    async def trigger(self, schedule: str) -> Triggered:
        """Starts the target of a schedule now."""
        started: Triggered = await self._post(["schedules", schedule, "trigger"], {})
        return started

    async def next(self, schedule: str, count: Optional[int] = None) -> NextRuns:
        """The next times of a schedule."""
        times: NextRuns = await self._get("schedules", schedule, "next", count=count)
        return times

    async def preview(
        self,
        cron: str,
        *,
        timezone: Optional[str] = None,
        dst: Optional[DstRule] = None,
        count: Optional[int] = None,
    ) -> NextRuns:
        """The next times of a cron expression."""
        body = present(cron_expr=cron, timezone=timezone, dst=dst, count=count)
        times: NextRuns = await self._post(["schedules", "preview"], body, idempotent=True)
        return times
