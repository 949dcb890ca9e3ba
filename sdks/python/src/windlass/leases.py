"""The leases that a worker holds, and the thread that keeps them.

Lease keeping depends neither on the event loop of the handlers nor on their threads: a handler that blocks its loop
loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import TYPE_CHECKING, Callable, Dict, List, Optional

from windlass.errors import ApiError

if TYPE_CHECKING:
    from windlass._sync.client import Client
    from windlass.call import Call

logger = logging.getLogger("windlass.worker")

#: Leases that one request extends.
BATCH = 500
#: Seconds between two looks at the deadlines of calls.
TICK_MAX = 0.25
#: Seconds after a failed extension until the next one, at most.
RETRY_DELAY = 0.5


class HeldCall:
    """A claimed call, from the claim until the server has taken its end."""

    __slots__ = ("call", "id", "is_canceled", "lease", "loop", "task")

    def __init__(self, id: str, lease: str, call: Call) -> None:
        self.id, self.lease, self.call = id, lease, call
        self.is_canceled = False
        #: The task of an async handler with its loop.
        self.task: Optional[asyncio.Task[None]] = None
        self.loop: Optional[asyncio.AbstractEventLoop] = None

    def cancel(self, reason: str) -> None:
        """Tells the handler to stop: a task is canceled, a blocking handler sees it in its call."""
        if self.is_canceled:
            return
        self.is_canceled = True
        self.call.cancel(reason)
        if self.task is not None and self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.task.cancel)


class HeldCalls:
    """All calls of a worker, by their leases."""

    def __init__(self) -> None:
        self._held: Dict[str, HeldCall] = {}
        self._lock = threading.Lock()
        self._is_empty = threading.Condition(self._lock)

    def __len__(self) -> int:
        return len(self._held)

    def take(self, calls: List[HeldCall]) -> None:
        with self._lock:
            for one in calls:
                self._held[one.lease] = one

    def has(self, lease: str) -> bool:
        """Whether the lease is still this worker's."""
        return lease in self._held

    def let_go(self, lease: str, lost: bool = False) -> None:
        """Removes a call: its end was taken, or another worker has the job."""
        with self._lock:
            one = self._held.pop(lease, None)
            if not self._held:
                self._is_empty.notify_all()
        if one is not None and lost:
            one.cancel("lost")

    def all(self) -> List[HeldCall]:
        with self._lock:
            return list(self._held.values())

    def get(self, lease: str) -> Optional[HeldCall]:
        return self._held.get(lease)

    def wait_until_empty(self, timeout: float) -> bool:
        with self._lock:
            return self._is_empty.wait_for(lambda: not self._held, timeout)

    def cancel_all(self, reason: str) -> None:
        for one in self.all():
            one.cancel(reason)


class LeaseKeeper:
    """Extends leases at a third of their length, and passes on cancels and deadlines."""

    def __init__(
        self, client: Client, held: HeldCalls, lease: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client, self._held, self._lease, self._clock = client, held, lease, clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="windlass-leases", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        due = self._clock() + self._lease / 3
        while not self._stop.wait(min(TICK_MAX, self._lease / 12)):
            self._end_overdue()
            if self._clock() < due:
                continue
            is_kept = self._extend_all()
            due = self._clock() + (self._lease / 3 if is_kept else min(RETRY_DELAY, self._lease / 6))

    def _end_overdue(self) -> None:
        for one in self._held.all():
            if one.call.remaining == 0.0:
                one.cancel("deadline")

    def _extend_all(self) -> bool:
        leases = [one.lease for one in self._held.all()]
        is_kept = True
        for begin in range(0, len(leases), BATCH):
            try:
                answer = self._client.jobs.extend(leases[begin : begin + BATCH], self._lease)
            except ApiError as error:
                logger.warning("leases could not be extended, will try again: %s", error)
                is_kept = False
                continue
            except Exception:
                logger.exception("leases could not be extended, will try again")
                is_kept = False
                continue
            for said in answer["results"]:
                self._hear(said["lease"], said["verdict"])
        return is_kept

    def _hear(self, lease: str, verdict: str) -> None:
        if verdict == "canceled":
            one = self._held.get(lease)
            if one is not None:
                one.cancel("canceled")
        elif verdict == "lost" and self._held.has(lease):
            logger.warning("another worker has the job of lease %s", lease.rsplit(".", 1)[0])
            self._held.let_go(lease, lost=True)
