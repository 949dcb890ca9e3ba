"""The exchange of a pool with a scripted server: refusals, lost answers, retries."""

from __future__ import annotations

import json
import time
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest

from windlass import App, Call, _wire
from windlass.errors import Conflict, Interrupted
from windlass.leases import HeldCalls
from windlass.pool import Pool, PoolSettings, remaining_of
from windlass.runners import LoopRunner

JOB = {"service": "echo", "queue": "echo", "attempt": 1, "key": "k", "lease_until": "2026-01-01T00:00:30Z"}


class ScriptedServer:
    """Stands for the clients of a pool; it hands out jobs, and fails as the script says."""

    def __init__(self, inputs: List[Any]) -> None:
        self.jobs = [
            {**JOB, "id": f"job_{n}", "lease": f"job_{n}.1.s", "input": one} for n, one in enumerate(inputs)
        ]
        #: Called with the route and the ends of each request; it raises an error or returns verdicts.
        self.on_ends: Callable[[str, List[Dict[str, Any]]], Optional[List[str]]] = lambda _route, _ends: None
        self.on_claim: Callable[[], None] = lambda: None
        self.ended: Dict[str, Dict[str, Any]] = {}
        self.routes: List[str] = []

    def request(self, request: _wire.Request) -> Any:
        route = request.path.rsplit("/", 1)[-1]
        self.routes.append(route)
        body = json.loads(request.body or b"{}")
        ends = body.get("results", body.get("finish", []))
        claim = body if route == "claim" else body.get("claim")
        answer: Dict[str, Any] = {"results": [], "jobs": []}
        if ends:
            verdicts = self.on_ends(route, ends) or ["ok"] * len(ends)
            for end, verdict in zip(ends, verdicts):
                answer["results"].append({"id": end["id"], "verdict": verdict})
                if verdict == "ok":
                    self.ended[end["id"]] = end
        if claim is not None:
            self.on_claim()
            answer["jobs"], self.jobs = self.jobs[: claim["max"]], self.jobs[claim["max"] :]
            if not answer["jobs"] and claim["wait_ms"]:
                time.sleep(0.02)
        return answer

    def interrupt(self) -> None:
        """Nothing waits here for long."""


@pytest.fixture
def run() -> Iterator[Any]:
    pools: List[Pool] = []

    def start(server: ScriptedServer, slots: int = 4) -> Any:
        app = App()

        @app.service
        def echo(x: Any) -> Any:
            return x

        lost: List[str] = []
        held = HeldCalls()
        settings = PoolSettings(["echo"], [], slots, "w", 30.0)
        client: Any = server
        pools.append(Pool(app, client, client, settings, held, LoopRunner(), lost.append, lost.append))
        pools[-1].start()
        return held, lost

    yield start
    for pool in pools:
        pool.stop()


def wait_for(holds: Callable[[], Any]) -> None:
    until = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.01)


def test_ends_travel_with_the_next_claim(run: Any) -> None:
    server = ScriptedServer(list(range(40)))
    run(server, slots=2)
    wait_for(lambda: len(server.ended) == 40)
    assert [server.ended[f"job_{n}"]["result"] for n in range(40)] == list(range(40))
    assert "exchange" in server.routes


def test_a_lost_answer_is_asked_for_again(run: Any) -> None:
    server = ScriptedServer([1, 2, 3])
    failures = [
        Interrupted("x"),
        _wire.error_of(503, b'{"code":"draining"}', "0.1"),
        _wire.error_of(429, b"{}", "0.1"),
    ]

    def on_ends(_route: str, _ends: Any) -> None:
        if failures:
            raise failures.pop()

    server.on_ends = on_ends
    held, _ = run(server)
    wait_for(lambda: len(server.ended) == 3 and not len(held))


def test_an_end_that_the_server_could_not_take_is_sent_again(run: Any) -> None:
    server = ScriptedServer([1])
    verdicts = [["error"], ["error"]]
    server.on_ends = lambda _route, _ends: verdicts.pop() if verdicts else None
    run(server)
    wait_for(lambda: "job_0" in server.ended)


def test_the_end_that_is_refused_fails_alone(run: Any) -> None:
    server = ScriptedServer([1, "bad", 3, 4])

    def on_ends(_route: str, ends: Any) -> None:
        if any(end.get("result") == "bad" for end in ends):
            raise _wire.error_of(413, b'{"detail":"too large"}')

    server.on_ends = on_ends
    held, _ = run(server)
    wait_for(lambda: len(server.ended) == 4 and not len(held))
    end = server.ended["job_1"]
    assert (end["outcome"], end["retryable"]) == ("failed", False) and "too large" in end["error"]
    assert server.ended["job_0"]["outcome"] == "done"


def test_a_refused_claim_keeps_no_end(run: Any) -> None:
    server = ScriptedServer([1, 2, 3, 4, 5, 6])
    refusals: List[str] = []

    def on_ends(route: str, _ends: Any) -> None:
        if route == "exchange":
            refusals.append(route)
            raise _wire.error_of(422, b'{"code":"invalid_body","detail":"claim.services: wrong"}')

    server.on_ends = on_ends
    run(server, slots=2)
    wait_for(lambda: len(server.ended) == 6)
    assert all(end["outcome"] == "done" for end in server.ended.values())


def test_a_lost_id_is_passed_on(run: Any) -> None:
    server = ScriptedServer([])

    def on_claim() -> None:
        raise Conflict("another worker has the id", code="worker_lost", status=409)

    server.on_claim = on_claim
    _, lost = run(server)
    wait_for(lambda: lost)
    assert "another worker" in lost[0]


def test_the_clock_of_this_machine_plays_no_part() -> None:
    job = {"deadline": "2020-01-01T00:01:00Z", "lease_until": "2020-01-01T00:00:30Z"}
    assert remaining_of(job, 30.0) == 60.0
    assert remaining_of({"lease_until": "2020-01-01T00:00:30Z"}, 30.0) is None
    assert remaining_of({**job, "deadline": "2019-12-31T23:00:00Z"}, 30.0) == 0.0
    assert Call("x", remaining=60.0).remaining == pytest.approx(60.0, abs=1)
