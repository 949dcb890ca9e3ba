"""The pull worker: it claims jobs for the services of an application, and performs them."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, List, Optional

from windlass._sync.client import Client
from windlass.errors import WindlassError
from windlass.heartbeat import Heartbeat
from windlass.leases import HeldCalls, LeaseKeeper
from windlass.pool import CallBudget, Pool, PoolSettings
from windlass.runners import LoopRunner

if TYPE_CHECKING:
    from windlass.app import App

logger = logging.getLogger("windlass.worker")

#: Seconds for which an answer with jobs may be on its way when the worker is told to stop.
ON_ITS_WAY = 0.2
#: Seconds that canceled handlers have at the end of a drain.
LAST_ENDS = 1.0
#: Seconds between two looks at the signals that came.
SIGNAL_LOOK = 0.1
#: The shortest and the longest lease that the server gives, in seconds.
LEASE_RANGE = (1.0, 3600.0)


class WorkerLost(WindlassError):
    """Another worker has taken the id of this one."""


class Worker:
    """A worker for the services of an application.

    `slots` are concurrent calls, shared by all services without slots of their own; `drain` is the time in seconds
    that open calls have after a signal to stop; after `max_calls` calls the worker drains by itself; `lease` is the
    length of a lease in seconds, which the worker extends at a third of it.
    """

    def __init__(
        self,
        app: App,
        *,
        slots: int = 16,
        drain: float = 25.0,
        max_calls: Optional[int] = None,
        lease: float = 30.0,
        worker_id: Optional[str] = None,
    ) -> None:
        if not app.services and not app.queues:
            raise ValueError("the application has no services: decorate functions with @app.service")
        if slots < 1:
            raise ValueError(f"a worker needs at least one slot, not {slots}")
        if not LEASE_RANGE[0] <= lease <= LEASE_RANGE[1]:
            raise ValueError(f"a lease has {LEASE_RANGE[0]:g} to {LEASE_RANGE[1]:g} seconds, not {lease}")
        if max_calls is not None and max_calls < 1:
            raise ValueError(f"max_calls is at least 1, not {max_calls}")
        self.app, self.drain_time, self.lease = app, drain, lease
        self.id = worker_id or own_id()
        self.held = HeldCalls()
        #: The reason for which the worker stops; `None` while it works.
        self.stop_reason: Optional[str] = None
        self._lost: Optional[str] = None
        self._stopping = threading.Event()
        #: Signals that came. A handler only adds to this list: the thread that it interrupts may hold any lock.
        self._signals: List[str] = []
        self._is_started = False
        self._loop = LoopRunner()
        budget = (
            None
            if max_calls is None
            else CallBudget(max_calls, lambda: self.stop("all its calls are claimed"))
        )
        self._pools = [self._pool(settings) for settings in self._shares(slots, budget)]
        # An answer that comes after the lease is of no use.
        keeper_client = self._client(timeout=max(1.0, min(10.0, lease / 3)))
        self._keeper = LeaseKeeper(keeper_client, self.held, lease)
        self._heartbeat = Heartbeat(
            self._client(timeout=5.0),
            self.id,
            services=sorted(app.services),
            queues=sorted(app.queues),
            capacity=self._capacity,
            load=lambda: len(self.held),
            on_drain=self.stop,
            on_lost=self._lose,
        )

    def _client(self, **options: Any) -> Client:
        return Client(self.app.server, self.app.key, actor=self.app.actor, **options)

    def _shares(self, slots: int, budget: Optional[CallBudget]) -> List[PoolSettings]:
        """One pool for all services without slots of their own, and one for each other."""
        shared = PoolSettings([], [], slots, self.id, self.lease, budget)
        shares = []
        for table, is_queue in ((self.app.services, False), (self.app.queues, True)):
            for name, service in sorted(table.items()):
                share = shared
                if service.slots is not None:
                    share = PoolSettings([], [], service.slots, self.id, self.lease, budget)
                    shares.append(share)
                (share.queues if is_queue else share.services).append(name)
        if shared.services or shared.queues:
            shares.insert(0, shared)
        self._capacity = sum(share.slots for share in shares)
        return shares

    def _pool(self, settings: PoolSettings) -> Pool:
        return Pool(
            self.app, self._client(), self._client(), settings, self.held, self._loop, self.stop, self._lose
        )

    def start(self) -> Worker:
        """Begins to work in threads; returns at once."""
        if self._is_started:
            raise RuntimeError("a worker starts once: make another one")
        self._is_started = True
        self._heartbeat.start()
        self._keeper.start()
        for pool in self._pools:
            pool.start()
        return self

    def stop(self, reason: str = "it is told to stop") -> None:
        """Lets the worker claim nothing more; `wait` or `close` let it end."""
        if self.stop_reason is None:
            self.stop_reason = reason
            logger.info("the worker claims no more: %s", reason)
        for pool in self._pools:
            pool.drain()
        self._stopping.set()

    def _lose(self, reason: str) -> None:
        self._lost = reason
        logger.error("the worker stops: %s", reason)
        self.stop(reason)

    def wait_until_registered(self, timeout: float = 10.0) -> bool:
        """Waits until the server knows the worker."""
        return self._heartbeat.registered.wait(timeout)

    def close(self) -> bool:
        """Drains the worker and ends it; returns whether all calls ended in time.

        Open calls have the drain time; after it they are canceled, and their leases expire.
        """
        self.stop()
        threading.Timer(ON_ITS_WAY, self._interrupt).start()
        is_clean = self._wait_for_calls(self.drain_time)
        if not is_clean:
            n_open = len(self.held)
            logger.warning("%d calls are open after %g s: they are canceled", n_open, self.drain_time)
            self.held.cancel_all("stopped")
            self._wait_for_calls(LAST_ENDS)
        for pool in self._pools:
            pool.stop()
        self._heartbeat.stop()
        self._keeper.stop()
        self._loop.stop()
        return is_clean

    def _interrupt(self) -> None:
        for pool in self._pools:
            pool.interrupt()

    def _wait_for_calls(self, timeout: float) -> bool:
        until = time.monotonic() + timeout
        # A claim may still be on its way, which the pools finish first.
        while any(pool.is_claiming for pool in self._pools) and time.monotonic() < until:
            if self._is_forced:
                return False
            time.sleep(0.02)
        while not self._is_forced:
            left = until - time.monotonic()
            if self.held.wait_until_empty(max(0.0, min(left, 0.2))):
                return True
            if left <= 0:
                return False
        return False

    @property
    def _is_forced(self) -> bool:
        """Whether a second signal came."""
        return len(self._signals) > 1

    def run(self, parent: Optional[int] = None) -> None:
        """Works until SIGTERM, SIGINT, a drain by the server, or the last of `max_calls`; a second signal ends it at once.

        It also ends when the process `parent` is its parent no more. Raises `WorkerLost` if another worker has taken
        the id.
        """
        self._take_signals()
        self.start()
        logger.info(
            "worker %s serves %s at %s",
            self.id,
            ", ".join(self.app.names + sorted(self.app.queues)),
            self.app.client.server,
        )
        while not self._stopping.is_set():
            if self._signals:
                self.stop(f"signal {self._signals[0]}")
            elif parent is not None and os.getppid() != parent:
                self.stop("the process that started it has ended")
            else:
                time.sleep(SIGNAL_LOOK)
        self.close()
        if self._lost is not None:
            raise WorkerLost(self._lost)

    def _take_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return

        def on_signal(number: int, _frame: Any) -> None:
            self._signals.append(signal.Signals(number).name)

        signal.signal(signal.SIGTERM, on_signal)
        signal.signal(signal.SIGINT, on_signal)

    def __enter__(self) -> Worker:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.close()


def own_id() -> str:
    """An id that no other worker has: the host, the process, and a random part."""
    given = os.environ.get("WINDLASS_WORKER_ID")
    return given or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
