"""The heartbeat of a worker: it registers, tells its load, and registers again when the server does not know it."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Callable, List, Optional

from windlass.errors import ApiError, Conflict, NotFound

if TYPE_CHECKING:
    from windlass._sync.client import Client

logger = logging.getLogger("windlass.worker")

#: Seconds between two heartbeats; the server forgets a worker after 15 by default.
EVERY = 5.0
#: Seconds until a registration that failed is tried again.
RETRY_DELAY = 1.0


class Heartbeat:
    """Tells the server in a thread of its own that a worker lives."""

    def __init__(
        self,
        client: Client,
        worker_id: str,
        *,
        services: List[str],
        queues: List[str],
        capacity: int,
        load: Callable[[], int],
        on_drain: Callable[[str], None],
        on_lost: Callable[[str], None],
        url: Optional[str] = None,
        secret: Optional[str] = None,
        every: float = EVERY,
    ) -> None:
        self._client, self._id, self._url, self._every = client, worker_id, url, every
        self._services, self._queues, self._capacity = services, queues, capacity
        self._secret = secret
        self._load, self._on_drain, self._on_lost = load, on_drain, on_lost
        self._is_registered = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="windlass-heartbeat", daemon=True)
        #: The registration was accepted once.
        self.registered = threading.Event()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._beat()
            except Conflict as error:
                # Both workers would take the id from each other for ever.
                self._on_lost(str(error))
                return
            except ApiError as error:
                logger.warning("a heartbeat failed: %s", error)
            except Exception:
                logger.exception("a heartbeat failed")
            self._stop.wait(self._every if self._is_registered else RETRY_DELAY)

    def _beat(self) -> None:
        if self._is_registered:
            try:
                if self._client.workers.heartbeat(self._id, url=self._url, load=self._load()):
                    self._on_drain("the server drains this worker")
                return
            except NotFound:
                logger.info("the server does not know this worker any more: it registers again")
                self._is_registered = False
        self._client.workers.register(
            self._id,
            services=self._services,
            queues=self._queues,
            url=self._url,
            capacity=self._capacity,
            secret=self._secret,
        )
        self._is_registered = True
        self.registered.set()
        logger.info("registered as %s for %s", self._id, ", ".join(self._services + self._queues))
