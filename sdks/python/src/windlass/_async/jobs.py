"""Jobs: create, read, cancel, retry; the routes of pull workers."""

from __future__ import annotations

import asyncio
import time as clock
from typing import TYPE_CHECKING, Any, AsyncIterator, Dict, List, Mapping, Optional

from windlass._async.api import AsyncApi
from windlass._async.runs import ENDED, LOOK_FIRST, LOOK_LAST
from windlass._wire import Duration, Moment, after, millis, moment, present, seconds
from windlass.errors import ApiError, JobFailed, StillOpen

if TYPE_CHECKING:
    from windlass._async.client import AsyncClient
    from windlass.schema import (
        BackoffKind,
        ClaimRequest,
        ClaimResponse,
        ExchangeResponse,
        ExtendResponse,
        FinishResponse,
        JobAttempt,
        JobCreated,
        JobDetail,
        JobResult,
        JobSummary,
        NewJob,
    )


class AsyncJob:
    """A created job; its methods are those of `client.jobs` without the id."""

    def __init__(self, client: AsyncClient, created: JobCreated) -> None:
        self._client = client
        self.id: str = created["id"]
        #: Whether an open job with the same `dedup_key` was there already.
        self.duplicate: bool = created.get("duplicate", False)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    async def get(self) -> JobDetail:
        """The job as it is now."""
        return await self._client.jobs.get(self.id)

    async def wait(self, timeout: Optional[Duration] = None) -> Any:
        """Waits for the result; raises `JobFailed` or, after `timeout` seconds, `StillOpen`."""
        return await self._client.jobs.wait(self.id, timeout)

    async def cancel(self) -> JobDetail:
        """Cancels the job."""
        return await self._client.jobs.cancel(self.id)


def new_job(
    name: str,
    payload: Any = None,
    *,
    queue: str,
    priority: Optional[int] = None,
    run_at: Optional[Moment] = None,
    delay: Optional[Duration] = None,
    retries: Optional[int] = None,
    retry_delay: Optional[Duration] = None,
    backoff: Optional[BackoffKind] = None,
    timeout: Optional[Duration] = None,
    dedup_key: Optional[str] = None,
    unique_for: Optional[Duration] = None,
    limit_key: Optional[str] = None,
    account: Optional[str] = None,
) -> NewJob:
    """The body of a job; times in seconds or as a timedelta, `run_at` as a datetime or RFC 3339."""
    if run_at is not None and delay is not None:
        raise ValueError("give `run_at` or `delay`, not both")
    retry = present(max=retries, delay_ms=millis(retry_delay), backoff=backoff)
    job: Dict[str, Any] = present(
        name=name,
        queue=queue,
        payload=payload,
        priority=priority,
        run_at=moment(run_at) if delay is None else after(delay),
        retry=retry or None,
        timeout_ms=millis(timeout),
        dedup_key=dedup_key,
        unique_for_ms=millis(unique_for),
        limit_key=limit_key,
        account=account,
    )
    return job  # type: ignore[return-value]


class AsyncJobsApi(AsyncApi):
    """Creates, reads and ends jobs."""

    async def create(
        self, name: str, payload: Any = None, *, queue: str = "default", **options: Any
    ) -> AsyncJob:
        """Creates a job; `options` are those of `new_job`.

        While an open job of the queue has the same `dedup_key`, the answer is that job, and a request whose
        connection broke is repeated.
        """
        job = new_job(name, payload, queue=queue, **options)
        created = await self._post(["jobs"], job, idempotent="dedup_key" in job)
        return AsyncJob(self._client, created)

    async def create_many(self, jobs: List[NewJob]) -> List[JobCreated]:
        """Creates up to 10,000 jobs, in order: all, or none if one is wrong."""
        is_idempotent = all(job.get("dedup_key") for job in jobs)
        created = await self._post(["jobs"], jobs, idempotent=is_idempotent)
        items: List[JobCreated] = created["items"]
        return items

    async def get(self, job: str) -> JobDetail:
        """A job with its payload and its latest attempt."""
        detail: JobDetail = await self._get("jobs", job)
        return detail

    async def wait(self, job: str, timeout: Optional[Duration] = None) -> Any:
        """Waits for the result of a job; raises `JobFailed` or, after `timeout` seconds, `StillOpen`."""
        until = None if timeout is None else clock.monotonic() + seconds(timeout)
        pause, has_answered = LOOK_FIRST, False
        while True:
            is_over = until is not None and clock.monotonic() >= until
            try:
                detail = await self.get(job)
                has_answered = True
                if detail["status"] == "completed":
                    return detail["latest_attempt"].get("result")
                if detail["status"] in ENDED:
                    raise JobFailed(dict(detail))
                if is_over:
                    raise StillOpen(f"{job} is {detail['status']} after {seconds(timeout or 0):g} s")
            except ApiError as error:
                if not error.is_temporary or is_over or not (has_answered or until):
                    raise
            await asyncio.sleep(pause if until is None else max(0.0, min(pause, until - clock.monotonic())))
            pause = min(pause * 1.5, LOOK_LAST)

    async def list(
        self,
        *,
        status: Optional[str] = None,
        queue: Optional[str] = None,
        name: Optional[str] = None,
        worker: Optional[str] = None,
        schedule: Optional[str] = None,
        since: Optional[Moment] = None,
        until: Optional[Moment] = None,
    ) -> AsyncIterator[JobSummary]:
        """Jobs, newest first, all pages, without payloads and results."""
        filters: Dict[str, Any] = dict(
            status=status, queue=queue, name=name, worker=worker, schedule=schedule, since=since, until=until
        )
        async for job in self._each(["jobs"], **filters):
            yield job

    async def attempts(self, job: str) -> AsyncIterator[JobAttempt]:
        """The attempts of a job, oldest first."""
        async for attempt in self._each(["jobs", job, "attempts"]):
            yield attempt

    async def cancel(self, job: str) -> JobDetail:
        """Cancels a job; a running one ends when its worker stops, or 30 seconds later."""
        detail: JobDetail = await self._post(["jobs", job, "cancel"], {})
        return detail

    async def retry(self, job: str) -> JobDetail:
        """Ends the delay of a job, or opens a failed or canceled one again."""
        detail: JobDetail = await self._post(["jobs", job, "retry"], {})
        return detail

    async def claim(self, claim: ClaimRequest) -> ClaimResponse:
        """Claims jobs for a worker, which waits for some as long as `wait_ms` says."""
        wait = (claim.get("wait_ms") or 0) / 1000
        claimed: ClaimResponse = await self._post(["jobs", "claim"], claim, wait=wait)
        return claimed

    async def finish(self, results: List[JobResult]) -> FinishResponse:
        """Ends claimed jobs; an identical repetition is `ok` again."""
        finished: FinishResponse = await self._post(["jobs", "finish"], {"results": results}, idempotent=True)
        return finished

    async def exchange(self, results: List[JobResult], claim: ClaimRequest) -> ExchangeResponse:
        """Ends claimed jobs, and claims the next ones in the same request."""
        wait = (claim.get("wait_ms") or 0) / 1000
        body = {"finish": results, "claim": claim}
        exchanged: ExchangeResponse = await self._post(["jobs", "exchange"], body, wait=wait)
        return exchanged

    async def extend(self, leases: List[str], lease: Optional[Duration] = None) -> ExtendResponse:
        """Extends leases; the verdicts also tell which jobs were canceled."""
        body: Mapping[str, Any] = {"leases": leases, **present(lease_ms=millis(lease))}
        extended: ExtendResponse = await self._post(["jobs", "extend"], body, idempotent=True)
        return extended
