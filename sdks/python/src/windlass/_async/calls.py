"""Suspended calls: report their ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional, Union

from windlass._async.api import AsyncApi
from windlass._wire import Duration, millis, present
from windlass.errors import Conflict

if TYPE_CHECKING:
    from windlass.schema import CallOutcome, LeaseVerdict


class AsyncCallsApi(AsyncApi):
    """Reports the ends of suspended calls, under the whole id from `call.call`."""

    async def report(
        self, call: str, result: Any = None, *, logs: Optional[List[Any]] = None
    ) -> LeaseVerdict:
        """Ends a suspended call with a result; an identical repetition is `ok` again.

        Raises `Conflict` if the call ended in another way.
        """
        return await self._report(call, "done", result=result, logs=logs)

    async def fail(
        self,
        call: str,
        error: str,
        *,
        retryable: bool = True,
        temporary: bool = False,
        logs: Optional[List[Any]] = None,
    ) -> LeaseVerdict:
        """Ends a suspended call as failed."""
        fields = {"error": error, "retryable": retryable, "temporary": temporary}
        return await self._report(call, "failed", logs=logs, **fields)

    async def suspend(self, call: str, memo: Any, *, recheck: Optional[Duration] = None) -> LeaseVerdict:
        """Gives a suspended call another memo, and another time of its recheck."""
        return await self._report(call, "suspended", memo=memo, recheck_ms=millis(recheck))

    async def _report(self, call: str, outcome: CallOutcome, **fields: Union[Any, None]) -> LeaseVerdict:
        body = {"outcome": outcome, **present(**fields)}
        answer = await self._post(["calls", call, "report"], body, idempotent=True)
        verdict: LeaseVerdict = answer["verdict"]
        if verdict == "lost":
            raise Conflict(
                "the call ended already, or its worker has another claim", code="stale_lease", status=200
            )
        return verdict
