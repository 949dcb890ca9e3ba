"""Approvals: decisions of people that runs wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncIterator, Optional

from windlass._async.api import AsyncApi
from windlass._wire import present

if TYPE_CHECKING:
    from windlass.schema import ApprovalInfo, RunSummary


class AsyncApprovalsApi(AsyncApi):
    """Lists and decides approvals."""

    async def list(self, *, assignee: Optional[str] = None) -> AsyncIterator[ApprovalInfo]:
        """Open approvals, all pages."""
        async for approval in self._each(["approvals"], assignee=assignee):
            yield approval

    async def decide(
        self,
        run: str,
        decision: Any = True,
        *,
        node: Optional[str] = None,
        comment: Optional[str] = None,
        by: Optional[str] = None,
    ) -> RunSummary:
        """Decides an approval: `True` approves, `False` rejects, a word is another action."""
        body = {"decision": decision, **present(node=node, comment=comment, by=by)}
        summary: RunSummary = await self._post(["runs", run, "decide"], body)
        return summary
