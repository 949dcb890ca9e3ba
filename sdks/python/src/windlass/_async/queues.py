"""Queues and their dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncIterator, Dict, List, Mapping, Optional

from windlass._async.api import AsyncApi
from windlass._wire import present, request

if TYPE_CHECKING:
    from windlass.schema import DeadLetterGroups, DeadLettersMoved, QueueInfo

#: Seconds that the server may take to move ten thousand dead letters.
MOVING = 60.0


class AsyncQueuesApi(AsyncApi):
    """Reads, pauses and limits queues."""

    async def list(self) -> AsyncIterator[QueueInfo]:
        """Queues by name, all pages."""
        async for queue in self._each(["queues"], "queues"):
            yield queue

    async def get(self, queue: str) -> QueueInfo:
        """A queue with its depth, limits and figures."""
        info: QueueInfo = await self._get("queues", queue)
        return info

    async def pause(self, queue: str) -> QueueInfo:
        """Lets no worker claim jobs of the queue; running jobs continue."""
        info: QueueInfo = await self._post(["queues", queue, "pause"], {}, idempotent=True)
        return info

    async def resume(self, queue: str) -> QueueInfo:
        """Ends the pause of a queue."""
        info: QueueInfo = await self._post(["queues", queue, "resume"], {}, idempotent=True)
        return info

    async def limit(self, queue: str, **limits: Any) -> QueueInfo:
        """Sets limits of a queue, such as `concurrency=5` or `rate={"count": 100, "per_ms": 60000}`.

        An absent limit stays; `None` removes one.
        """
        sent = request("PATCH", ["queues", queue], body={"limits": limits}, idempotent=True)
        info: QueueInfo = await self._client.request(sent)
        return info


class AsyncDeadLettersApi(AsyncApi):
    """Reads, replays and discards dead letters of a queue."""

    async def list(
        self, queue: str, *, count: int = 50, after: Optional[str] = None, fingerprint: Optional[str] = None
    ) -> List[Dict[str, Any]]:
        """Dead letters as objects, oldest first."""
        page = await self._get(
            "queues", queue, "dlq", count=count, after=after, fingerprint=fingerprint, format="objects"
        )
        items: List[Dict[str, Any]] = page["items"]
        return items

    async def groups(self, queue: str) -> DeadLetterGroups:
        """Dead letters, grouped by error."""
        groups: DeadLetterGroups = await self._get("queues", queue, "dlq", "groups")
        return groups

    async def replay(
        self,
        queue: str,
        *,
        count: Optional[int] = None,
        ids: Optional[List[str]] = None,
        fingerprint: Optional[str] = None,
        priority: Optional[int] = None,
        patch: Optional[Mapping[str, Any]] = None,
        per_second: Optional[int] = None,
        replay_id: Optional[str] = None,
    ) -> DeadLettersMoved:
        """Opens dead letters again; a repetition with the same `replay_id` is a no-op."""
        body = present(
            count=count, ids=ids, fingerprint=fingerprint, override_priority=priority, patch=patch,
            per_second=per_second, replay_id=replay_id,
        )  # fmt: skip
        path = ["queues", queue, "dlq", "replay"]
        moved: DeadLettersMoved = await self._post(path, body, wait=MOVING, idempotent=replay_id is not None)
        return moved

    async def discard(
        self,
        queue: str,
        reason: str,
        *,
        count: Optional[int] = None,
        ids: Optional[List[str]] = None,
        fingerprint: Optional[str] = None,
    ) -> DeadLettersMoved:
        """Gives dead letters up."""
        body = {"reason": reason, **present(count=count, ids=ids, fingerprint=fingerprint)}
        path = ["queues", queue, "dlq", "discard"]
        moved: DeadLettersMoved = await self._post(path, body, wait=MOVING)
        return moved
