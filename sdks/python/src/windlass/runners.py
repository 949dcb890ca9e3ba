"""The threads and the event loop in which handlers run."""

from __future__ import annotations

import asyncio
import queue
import threading
from typing import Callable, List, Optional

from windlass.handler import Handler, Outcome
from windlass.leases import HeldCall

#: Takes the end of a call.
EndCall = Callable[[HeldCall, Outcome], None]


class ThreadRunner:
    """Threads for blocking handlers; they are started when they are needed, and do not keep the program alive."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._work: queue.SimpleQueue[Optional[Callable[[], None]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._n_threads = 0
        self._n_open = 0

    def start(self, held: HeldCall, handler: Handler, end: EndCall) -> None:
        def work() -> None:
            outcome = handler.answer(held.call)
            with self._lock:
                self._n_open -= 1
            end(held, outcome)

        with self._lock:
            self._n_open += 1
            is_new = self._n_open > self._n_threads and self._n_threads < self._most
            if is_new:
                self._n_threads += 1
                number = self._n_threads
        self._work.put(work)
        if is_new:
            threading.Thread(target=self._run, name=f"windlass-handler-{number}", daemon=True).start()

    def stop(self) -> None:
        """Ends the threads that have nothing to do."""
        with self._lock:
            n_threads = self._n_threads
        for _ in range(n_threads):
            self._work.put(None)

    def _run(self) -> None:
        while True:
            work = self._work.get()
            if work is None:
                return
            work()


class LoopRunner:
    """One event loop in a thread of its own, for all async handlers."""

    def __init__(self) -> None:
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._lock = threading.Lock()

    def start_all(self, calls: List[tuple[HeldCall, Handler]], end: EndCall) -> None:
        """Starts a batch of calls with one wake of the loop."""
        loop = self._running()

        def begin() -> None:
            for held, handler in calls:
                held.loop = loop
                held.task = loop.create_task(self._perform(held, handler, end))
                # The cancel came between the claim and this moment.
                if held.is_canceled:
                    held.task.cancel()

        loop.call_soon_threadsafe(begin)

    @staticmethod
    async def _perform(held: HeldCall, handler: Handler, end: EndCall) -> None:
        end(held, await handler.answer_async(held.call))

    def stop(self) -> None:
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._run, args=(self._loop,), name="windlass-loop", daemon=True
                ).start()
            return self._loop

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.close()
