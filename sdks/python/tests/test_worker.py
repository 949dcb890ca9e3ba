"""The pull worker against the real server: ends, leases, cancels, drains, and servers that go away."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, Callable, Dict, List

import pytest

from windlass import App, Call, Canceled, Fatal, JobFailed, Temporary, Worker, errors
from windlass.flow import Flow
from windlass.testing import Server

Name = Callable[[str], str]


def eventually(holds: Callable[[], Any], seconds: float = 10.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def test_sync_and_async_handlers_serve_jobs(server: Server, app: App, name: Name) -> None:
    @app.service(name("resize"))
    def resize(file: str, width: int = 80) -> str:
        return f"{file} at {width}"

    @app.service(name("later"))
    async def later(call: Call, x: int) -> Dict[str, Any]:
        await asyncio.sleep(0.01)
        call.log("added", x=x)
        return {"x": x + 1, "attempt": call.attempt, "key": call.key}

    with server.worker(app):
        assert resize.send("cat.png", width=40).wait(10) == "cat.png at 40"
        job = later.send(4)
        assert job.wait(10) == {"x": 5, "attempt": 1, "key": job.id}
        jobs = [resize.send(str(n)) for n in range(50)]
        assert [one.wait(10) for one in jobs] == [f"{n} at 80" for n in range(50)]

        async def send() -> Any:
            return await (await later.send_async(7)).wait(10)

        assert asyncio.run(send())["x"] == 8


def test_a_queue_handler_takes_jobs_of_any_name(server: Server, app: App, name: Name) -> None:
    queue = name("mail")

    @app.queue(queue)
    def any_mail(to: str) -> str:
        return f"{Call.current().service} to {to}"

    with server.worker(app):
        assert app.client.jobs.create("hello", "ann", queue=queue).wait(10) == "hello to ann"


def test_ends_decide_about_retries(server: Server, app: App, name: Name) -> None:
    attempts: List[int] = []

    @app.service(name("ends"))
    def ends(how: str, call: Call) -> str:
        attempts.append(call.attempt)
        if how == "fatal":
            raise Fatal("the card was declined")
        if how == "strange":
            raise KeyError("missing")
        if call.attempt < 3:
            raise Temporary("busy", retry_after=0.05)
        return "paid"

    quick = ends.options(retries=3, retry_delay=0.01, backoff="fixed")
    with server.worker(app):
        with pytest.raises(JobFailed, match="the card was declined"):
            quick.send("fatal").wait(10)
        assert attempts == [1]
        attempts.clear()
        assert quick.send("temporary").wait(10) == "paid"
        assert attempts == [1, 2, 3]
        with pytest.raises(JobFailed, match="KeyError: 'missing'"):
            ends.options(retries=0).send("strange").wait(10)


def test_a_wrong_input_burns_no_retries(server: Server, app: App, name: Name) -> None:
    @app.service(name("typed"))
    def typed(file: str, width: int) -> None: ...

    with server.worker(app):
        job = app.client.jobs.create(typed.name, {"file": 1, "width": "wide"}, queue=typed.queue, retries=5)
        with pytest.raises(JobFailed) as caught:
            job.wait(10)
        told = caught.value.job["error"]["message"]
        assert "$.file: expected a text, got the number 1; $.width: expected an integer" in told
        assert job.get()["attempt"] == 1 and job.get()["is_dead_letter"]


def test_a_suspended_job_is_called_again(server: Server, app: App, name: Name) -> None:
    @app.service(name("print"))
    def printing(n: int, call: Call) -> str:
        if call.memo is None:
            call.suspend({"page": 1}, recheck=0.1)
        if call.memo["page"] < n:
            call.suspend({"page": call.memo["page"] + 1}, recheck=0.1)
        return f"{call.memo['page']} pages"

    with server.worker(app):
        assert printing.send(3).wait(10) == "3 pages"


def test_a_suspended_call_of_a_run_is_reported(server: Server, app: App, name: Name) -> None:
    calls: List[str] = []

    @app.service(name("provider"))
    async def provider(call: Call, what: str) -> None:
        assert call.labels == {"team": "video"} and call.params["what"] == what
        calls.append(call.call or "")
        call.suspend({"job": 7})

    flow = Flow(name("reported"), what=str)
    film = flow.call("film", provider, what=flow.params.what, until_reported=True)
    flow.result(url=film.output.url)
    with server.worker(app):
        flow.publish(app.client)
        run = app.client.start(flow.name, {"what": "cat"}, labels={"team": "video"})
        eventually(lambda: calls and run.get()["node_states"]["film"]["status"] == "suspended")
        assert app.client.calls.report(calls[0], {"url": "asset://7"}) == "ok"
        assert run.result(10) == {"url": "asset://7"}
        with pytest.raises(errors.Conflict):
            app.client.calls.report(calls[0], {"url": "asset://8"})


def test_logs_of_handlers_are_in_the_run(server: Server, app: App, name: Name) -> None:
    @app.service(name("talk"))
    def talk(call: Call, x: int) -> int:
        call.log.warn("the provider was slow", seconds=41)
        return x

    flow = Flow(name("logs"))
    flow.call("talk", talk, 1)
    with server.worker(app):
        flow.publish(app.client)
        run = app.client.start(flow.name)
        run.wait(10)
        lines = list(app.client.runs.logs(run.id, level="warn"))
        assert [(line["message"], line["data"]["seconds"]) for line in lines] == [
            ("the provider was slow", 41)
        ]


def test_a_blocked_event_loop_loses_no_lease(server: Server, app: App, name: Name) -> None:
    attempts: List[int] = []

    @app.service(name("blocking"))
    async def blocking(call: Call, seconds: float) -> str:
        attempts.append(call.attempt)
        time.sleep(seconds)
        return "done"

    with server.worker(app, lease=1.0):
        assert blocking.send(5.0).wait(20) == "done"
    assert attempts == [1]


def test_a_cancel_reaches_both_kinds_of_handlers(server: Server, app: App, name: Name) -> None:
    seen: Dict[str, str] = {}
    running = threading.Semaphore(0)

    @app.service(name("sleeper"))
    async def sleeper(call: Call, x: int) -> None:
        running.release()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen["async"] = call.cancel_reason or ""
            raise

    @app.service(name("looper"))
    def looper(call: Call, x: int) -> None:
        call.on_cancel(lambda: seen.update(hook="called"))
        running.release()
        try:
            while True:
                call.check()
                call.wait_cancelled(0.5)
        except Canceled:
            seen["sync"] = call.cancel_reason or ""
            raise

    with server.worker(app, lease=1.0):
        jobs = [sleeper.send(1), looper.send(1)]
        assert running.acquire(timeout=10) and running.acquire(timeout=10)
        for job in jobs:
            job.cancel()
        eventually(lambda: all(job.get()["status"] == "canceled" for job in jobs))
    assert seen == {"async": "canceled", "sync": "canceled", "hook": "called"}


def test_a_deadline_cancels_a_handler(server: Server, app: App, name: Name) -> None:
    reasons: List[str] = []

    @app.service(name("slow"))
    async def slow(call: Call, x: int) -> None:
        assert call.remaining is not None and 0.3 < call.remaining <= 1.0
        assert call.deadline is not None
        try:
            await asyncio.sleep(60)
        finally:
            reasons.append(call.cancel_reason or "")

    with server.worker(app, lease=10.0):
        with pytest.raises(JobFailed):
            slow.options(timeout=1.0, retries=0).send(1).wait(10)
        eventually(lambda: reasons == ["deadline"])


def test_slots_of_a_service_bound_its_calls(server: Server, app: App, name: Name) -> None:
    lock, now, most = threading.Lock(), [0], [0]

    @app.service(name("narrow"), slots=2)
    def narrow(x: int) -> int:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.05)
        with lock:
            now[0] -= 1
        return x

    @app.service(name("wide"))
    def wide(x: int) -> int:
        return x

    with server.worker(app, slots=8):
        jobs = [narrow.send(n) for n in range(10)] + [wide.send(n) for n in range(3)]
        assert [job.wait(10) for job in jobs] == [*range(10), *range(3)]
    assert most == [2]


def test_a_drain_lets_open_calls_end(server: Server, app: App, name: Name) -> None:
    begun, done = threading.Event(), []

    @app.service(name("slow"))
    def slow(x: int) -> int:
        begun.set()
        time.sleep(0.5)
        done.append(x)
        return x

    with server.worker(app, slots=1) as worker:
        first, second = slow.send(1), slow.send(2)
        assert begun.wait(10)
        assert worker.close() and done == [1]
        assert first.wait(5) == 1 and second.get()["status"] == "queued"


def test_a_drain_ends_in_time(server: Server, app: App, name: Name) -> None:
    begun, seen = threading.Event(), []

    @app.service(name("stuck"))
    def stuck(call: Call, x: int) -> None:
        begun.set()
        call.wait_cancelled(60)
        seen.append(call.cancel_reason)

    with server.worker(app, drain=0.3) as worker:
        stuck.send(1)
        assert begun.wait(10)
        since = time.monotonic()
        worker.close()
        assert time.monotonic() - since < 3
    eventually(lambda: seen == ["stopped"])


def test_the_server_drains_a_worker(server: Server, app: App, name: Name) -> None:
    @app.service(name("idle"))
    def idle(x: int) -> int:
        return x

    with server.worker(app) as worker:
        app.client.workers.drain(worker.id)
        eventually(lambda: worker.stop_reason is not None)
        assert "drains" in (worker.stop_reason or "")


def test_a_worker_stops_after_its_calls(server: Server, app: App, name: Name) -> None:
    @app.service(name("few"))
    def few(x: int) -> int:
        return x

    with server.worker(app, max_calls=5) as worker:
        jobs = [few.send(n) for n in range(8)]
        eventually(lambda: worker.stop_reason is not None)
        worker.close()
        eventually(lambda: sum(job.get()["status"] == "completed" for job in jobs) == 5)


def test_large_and_impossible_results(server: Server, app: App, name: Name) -> None:
    @app.service(name("large"))
    def large(n: int) -> Any:
        return "x" * n if n else object()

    quick = large.options(retries=0)
    with server.worker(app):
        assert len(quick.send(5_000_000).wait(20)) == 5_000_000
        with pytest.raises(JobFailed, match="has no form in JSON"):
            quick.send(0).wait(10)
        with pytest.raises(JobFailed):
            quick.send(40_000_000).wait(20)
        assert quick.send(3).wait(10) == "xxx"


def test_a_worker_outlives_its_server(name: Name) -> None:
    attempts: List[int] = []
    begun = threading.Event()
    app = App()

    @app.service
    def slow(call: Call, x: int) -> int:
        attempts.append(call.attempt)
        begun.set()
        time.sleep(1.0)
        return x

    with Server() as server, server.worker(app, lease=30.0):
        first = slow.send(1)
        assert begun.wait(10)
        server.kill()
        time.sleep(2.0)
        server.start()
        assert first.wait(20) == 1 and attempts == [1]
        assert slow.send(2).wait(20) == 2


def test_waiting_workers_go_on_by_themselves() -> None:
    app = App()

    @app.service
    def echo(x: int) -> int:
        return x

    with Server() as server:
        app.server = server.url
        workers = [Worker(app, slots=1, drain=1.0).start() for _ in range(20)]
        assert all(worker.wait_until_registered(30) for worker in workers)
        # All claims wait for jobs; most connections break in the middle of an answer that never comes.
        server.kill()
        time.sleep(1.0)
        server.start()
        jobs = [echo.send(n) for n in range(40)]
        assert [job.wait(30) for job in jobs] == list(range(40))
        names = [f"{job.get()['latest_attempt']['worker_id']}" for job in jobs]
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.close()
        assert set(names) <= {worker.id for worker in workers} and len(set(names)) > 5


def test_a_handler_that_never_returns_gives_up_its_lease(server: Server, app: App, name: Name) -> None:
    release = threading.Event()

    @app.service(name("never"))
    def never(x: int) -> None:
        release.wait(60)

    with server.worker(app, lease=1.0, drain=0.1) as worker:
        job = never.send(1)
        eventually(lambda: job.get()["status"] == "running")
        worker.close()
        # The lease is kept no more, so another worker gets the job.
        other = App(server.url)
        other.service(never.name)(lambda x: "other")
        with server.worker(other):
            assert job.wait(20) == "other"
    release.set()


def test_wrong_settings_are_refused(app: App) -> None:
    with pytest.raises(ValueError, match="has no services"):
        Worker(app)
    app.service("x")(lambda: 1)
    for options, message in [
        ({"slots": 0}, "at least one slot"),
        ({"lease": 0.5}, "a lease has 1 to 3600 seconds"),
        ({"max_calls": 0}, "max_calls is at least 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            Worker(app, **options)  # type: ignore[arg-type]
