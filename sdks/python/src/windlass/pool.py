"""A pool of slots: it claims jobs for some services, performs them, and sends their ends.

Two threads serve a pool. The claimer sends the ends that are there and asks for as many jobs as there are free slots.
While it waits for jobs, the sender sends ends as they come.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

from windlass import _wire
from windlass.call import Call
from windlass.convert import read_datetime
from windlass.errors import ApiError, Conflict, Unavailable
from windlass.handler import Outcome, encoded
from windlass.leases import HeldCall, HeldCalls
from windlass.runners import LoopRunner, ThreadRunner

if TYPE_CHECKING:
    from windlass._sync.client import Client
    from windlass.app import App

logger = logging.getLogger("windlass.worker")

#: Ends that are sent, and jobs that are claimed, in one request.
BATCH = 500
#: Bytes of the ends of one request: well below the limit of the server.
BATCH_BYTES = 1 << 20
#: Bytes of one end that are sent at all: a server hangs up on more before it can say that this is too much.
END_BYTES_MAX = 32 << 20
#: Seconds for which one claim waits for jobs: short enough to notice a server that went away.
CLAIM_WAIT = 20.0


@dataclass
class EndedCall:
    """The end of a call as it is sent."""

    held: HeldCall
    body: bytes
    #: Whether it stands for an end that the server refused.
    is_replacement: bool = False


@dataclass
class ExchangeReply:
    """The answer to an exchange: a verdict for each end, and claimed jobs."""

    verdicts: List[Dict[str, Any]] = field(default_factory=list)
    jobs: List[Dict[str, Any]] = field(default_factory=list)
    draining: bool = False
    #: The claim failed after the ends were taken.
    error: Optional[ApiError] = None


class Link:
    """The requests of a pool: ends and claims, in one request if there are both."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def exchange(self, ends: List[EndedCall], claim: Optional[Dict[str, Any]]) -> ExchangeReply:
        """Sends ends and claims jobs; raises an error if the ends were not taken."""
        results = b"[" + b",".join(end.body for end in ends) + b"]"
        if claim is None:
            answer = self._post("finish", b'{"results":' + results + b"}", is_idempotent=True)
        elif not ends:
            answer = self._post("claim", _wire.dump(claim), wait=(claim.get("wait_ms") or 0) / 1000)
        else:
            answer = self._post("exchange", b'{"finish":' + results + b',"claim":' + _wire.dump(claim) + b"}")
        reply = ExchangeReply(answer.get("results", []), answer.get("jobs", []), bool(answer.get("draining")))
        if answer.get("code"):
            reply.error = Unavailable(
                "the claim failed after the ends were taken", code=answer["code"], status=503
            )
        return reply

    def _post(self, route: str, body: bytes, **options: Any) -> Dict[str, Any]:
        answer: Dict[str, Any] = self._client.request(
            _wire.Request("POST", f"/api/v1/jobs/{route}", body, **options)
        )
        return answer

    def interrupt(self) -> None:
        """Breaks the requests that are under way."""
        self._client.interrupt()


@dataclass
class PoolSettings:
    """The share of a worker that a pool serves."""

    services: List[str]
    queues: List[str]
    slots: int
    worker_id: str
    lease: float
    #: Calls until the worker stops; shared by all pools.
    budget: Optional[CallBudget] = None


class CallBudget:
    """The calls that a worker may still claim before it stops."""

    def __init__(self, n_calls: int, spent: Callable[[], None]) -> None:
        self._left, self._spent = n_calls, spent
        self._lock = threading.Lock()

    def reserve(self, most: int) -> int:
        """Takes up to `most` calls from the budget."""
        with self._lock:
            taken = min(most, self._left)
            self._left -= taken
            return taken

    def give_back(self, n_calls: int) -> None:
        with self._lock:
            self._left += n_calls
            is_spent = self._left == 0
        if is_spent:
            self._spent()


class Pool:
    """Slots for some services of a worker."""

    def __init__(
        self,
        app: App,
        claiming: Client,
        sending: Client,
        settings: PoolSettings,
        held: HeldCalls,
        loop: LoopRunner,
        on_drain: Callable[[str], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self._app, self._settings, self._held, self._loop = app, settings, held, loop
        self._on_drain, self._on_lost = on_drain, on_lost
        self._threads = ThreadRunner(settings.slots)
        self._claiming, self._sending = Link(claiming), Link(sending)
        self._changed = threading.Condition()
        self._free = settings.slots
        self._ends: List[EndedCall] = []
        #: The claimer waits for jobs, so that the sender has the ends.
        self._is_waiting = False
        self._is_claiming = False
        self._is_draining = False
        self._is_over = False
        self._claimer = threading.Thread(target=self._claim_for_ever, name="windlass-claims", daemon=True)
        self._sender = threading.Thread(target=self._send_for_ever, name="windlass-ends", daemon=True)

    def start(self) -> None:
        self._claimer.start()
        self._sender.start()

    @property
    def is_claiming(self) -> bool:
        """Whether a claim is under way, whose jobs are not held yet."""
        return self._is_claiming

    def drain(self) -> None:
        """Claims nothing more; open calls go on, and their ends are sent."""
        with self._changed:
            self._is_draining = True
            self._changed.notify_all()

    def interrupt(self) -> None:
        """Breaks a claim that waits for jobs."""
        if self._is_waiting:
            self._claiming.interrupt()

    def stop(self) -> None:
        """Ends both threads; unsent ends are lost, and their leases expire."""
        with self._changed:
            self._is_over = self._is_draining = True
            self._changed.notify_all()
        self._threads.stop()

    # Claims

    def _claim_for_ever(self) -> None:
        backoff = _wire.Backoff()
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._is_over or self._ends or (self._free > 0 and not self._is_draining)
                )
                if self._is_over:
                    return
                free = 0 if self._is_draining else min(self._free, BATCH)
                self._is_claiming = free > 0
                ends = self._take_ends()
            pause = self._turn(ends, free, backoff)
            if pause:
                with self._changed:
                    self._changed.wait_for(lambda: self._is_over, pause)

    def _turn(self, ends: List[EndedCall], free: int, backoff: _wire.Backoff) -> float:
        """One exchange; returns the seconds to wait before the next one."""
        budget = self._settings.budget
        if free and budget is not None:
            free = budget.reserve(free)
        claim = self._claim_of(free, wait=not ends) if free else None
        if claim is None and not ends:
            # The budget is used up, which ends the worker.
            self._is_claiming = False
            return 0.05
        n_claimed = 0
        try:
            with self._changed:
                self._is_claiming = claim is not None
                self._is_waiting = claim is not None and not ends
                self._changed.notify_all()
            reply = self._claiming.exchange(ends, claim)
            n_claimed = len(reply.jobs)
            self._hear(ends, reply.verdicts)
            self._begin(reply.jobs)
            if reply.draining:
                self._on_drain("the server drains this worker")
            if reply.error is not None:
                return self._pause_of(reply.error, backoff)
            backoff.reset()
            return 0.0
        except ApiError as error:
            if not ends:
                return self._pause_of(error, backoff)
            if claim is not None and not error.is_temporary:
                # The claim may be the part that is refused: the ends go alone, and the next claim tells.
                return self._send(ends, backoff) or self._pause_of(error, backoff)
            return self._refused(ends, error, backoff)
        except Exception:
            logger.exception("the worker met a fault in its own code, and goes on")
            self._put_back(ends)
            return backoff.pause()
        finally:
            with self._changed:
                self._is_waiting = self._is_claiming = False
            if budget is not None and free:
                budget.give_back(free - n_claimed)

    def _claim_of(self, most: int, wait: bool) -> Dict[str, Any]:
        settings = self._settings
        return {
            "worker_id": settings.worker_id,
            "services": settings.services,
            "queues": settings.queues,
            "max": most,
            "wait_ms": int(CLAIM_WAIT * 1000) if wait else 0,
            "lease_ms": round(settings.lease * 1000),
        }

    def _pause_of(self, error: ApiError, backoff: _wire.Backoff) -> float:
        if self._is_draining:
            return 0.0
        if isinstance(error, Conflict) and error.code == "worker_lost":
            self._on_lost(str(error))
            return 0.0
        if error.is_temporary:
            logger.warning("no jobs could be claimed, will try again: %s", error)
        else:
            logger.error("the server refuses the claims of this worker, will try again: %s", error)
        return backoff.pause(error)

    def _begin(self, jobs: List[Dict[str, Any]]) -> None:
        """Starts the handlers of claimed jobs."""
        if not jobs:
            return
        held = [self._held_call(job) for job in jobs]
        self._held.take(held)
        with self._changed:
            self._free -= len(held)
        of_loop = []
        for one in held:
            handler = self._app.handler_of(one.call.service, one.call.queue)
            if handler is None:
                reason = f"worker `{self._settings.worker_id}` does not serve `{one.call.service}`"
                self._end(one, {"outcome": "failed", "error": reason})
            elif handler.is_async:
                of_loop.append((one, handler))
            else:
                self._threads.start(one, handler, self._end)
        if of_loop:
            self._loop.start_all(of_loop, self._end)

    def _held_call(self, job: Dict[str, Any]) -> HeldCall:
        call = Call(
            job["service"],
            job.get("input"),
            key=job["key"],
            attempt=job["attempt"],
            run=job.get("run"),
            node=job.get("node"),
            call=job.get("call"),
            queue=job["queue"],
            params=job.get("params"),
            memo=job.get("memo"),
            priority=job.get("priority", 0),
            remaining=remaining_of(job, self._settings.lease),
            client=self._app.client,
        )
        return HeldCall(job["id"], job["lease"], call)

    # Ends

    def _end(self, held: HeldCall, outcome: Outcome) -> None:
        """Frees the slot of a call, and keeps its end for the next exchange."""
        ended = self._encoded(held, outcome) if self._held.has(held.lease) else None
        with self._changed:
            self._free += 1
            if ended is not None:
                self._ends.append(ended)
            self._changed.notify_all()

    @staticmethod
    def _encoded(held: HeldCall, outcome: Outcome) -> EndedCall:
        name = held.call.service
        fields = {"id": held.id, "lease": held.lease, **outcome}
        try:
            body = _wire.dump(fields)
        except Exception:
            outcome = _parsed(encoded(outcome, name))
            body = _wire.dump({"id": held.id, "lease": held.lease, **outcome})
        if len(body) > END_BYTES_MAX:
            reason = f"the result of `{name}` has {len(body)} bytes: store it elsewhere and return a link"
            return _replacement(held, reason)
        return EndedCall(held, body)

    def _take_ends(self) -> List[EndedCall]:
        """Ends for one request, bounded by number and bytes; those of lost leases are dropped."""
        taken: List[EndedCall] = []
        n_bytes = n_seen = 0
        for end in self._ends:
            if taken and (len(taken) == BATCH or n_bytes + len(end.body) > BATCH_BYTES):
                break
            n_seen += 1
            if self._held.has(end.held.lease):
                taken.append(end)
                n_bytes += len(end.body)
        del self._ends[:n_seen]
        return taken

    def _put_back(self, ends: List[EndedCall]) -> None:
        with self._changed:
            self._ends[:0] = ends

    def _send_for_ever(self) -> None:
        backoff = _wire.Backoff()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_over or (self._ends and self._is_waiting))
                if self._is_over:
                    return
                ends = self._take_ends()
            pause = self._send(ends, backoff) if ends else 0.0
            if pause:
                with self._changed:
                    self._changed.wait_for(lambda: self._is_over, pause)

    def _send(self, ends: List[EndedCall], backoff: _wire.Backoff) -> float:
        try:
            reply = self._sending.exchange(ends, None)
        except ApiError as error:
            return self._refused(ends, error, backoff)
        except Exception:
            logger.exception("the worker met a fault in its own code, and goes on")
            self._put_back(ends)
            return backoff.pause()
        backoff.reset()
        self._hear(ends, reply.verdicts)
        return 0.0

    def _hear(self, ends: List[EndedCall], verdicts: List[Dict[str, Any]]) -> None:
        again = []
        for end, said in zip(ends, verdicts):
            if said["verdict"] == "error":
                again.append(end)
                continue
            if said["verdict"] == "lost":
                logger.warning("the end of %s came too late: another worker has the job", end.held.id)
            self._held.let_go(end.held.lease)
        if again:
            logger.warning("%d ends were not taken, will try again", len(again))
            time.sleep(_wire.RETRY_DELAY)
            self._put_back(again)

    def _refused(self, ends: List[EndedCall], error: ApiError, backoff: _wire.Backoff) -> float:
        """Handles a request of ends that failed: it waits for the server, or finds the end that is refused."""
        is_about_them = error.status in (400, 413, 422)
        if not is_about_them:
            logger.warning("ends were not taken, will try again: %s", error)
            self._put_back(ends)
            return backoff.pause(error)
        if len(ends) > 1:
            self._send(ends[: len(ends) // 2], backoff)
            self._send(ends[len(ends) // 2 :], backoff)
        elif not ends[0].is_replacement:
            logger.error("the end of %s is refused, so its call fails: %s", ends[0].held.id, error)
            self._put_back([_replacement(ends[0].held, f"its end could not be sent: {error}")])
        else:
            logger.error("the end of %s is refused, so its lease expires: %s", ends[0].held.id, error)
            self._held.let_go(ends[0].held.lease)
        return 0.0


def remaining_of(job: Dict[str, Any], lease: float) -> Optional[float]:
    """Seconds until the deadline of a claimed job. Both times are of the server, so the clock here plays no part."""
    if not job.get("deadline"):
        return None
    deadline, lease_until = read_datetime(job["deadline"]), read_datetime(job["lease_until"])
    return max(0.0, _between(lease_until, deadline) + lease)


def _between(begin: datetime, end: datetime) -> float:
    return (end - begin).total_seconds()


def _replacement(held: HeldCall, reason: str) -> EndedCall:
    fields = {"id": held.id, "lease": held.lease, "outcome": "failed", "error": reason, "retryable": False}
    return EndedCall(held, _wire.dump(fields), is_replacement=True)


def _parsed(body: bytes) -> Outcome:
    import json

    outcome: Outcome = json.loads(body)
    return outcome
