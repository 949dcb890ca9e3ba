"""The clients against the real server, blocking and async."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, Callable

import pytest

from windlass import AsyncClient, Client, RunFailed, StillOpen, errors
from windlass.codes import NotAssigned, RequestTaken, UnknownRun
from windlass.testing import Server

Name = Callable[[str], str]

UPPER = {
    "start": "a",
    "nodes": {
        "a": {
            "kind": "local",
            "func": "upper",
            "prep": {"input_key": "$params.name"},
            "post": {"output_key": "name"},
        }
    },
    "edges": [],
}


def waiting(kind: str, **params: Any) -> Any:
    return {"nodes": [{"id": "wait", "type": kind, "config": {"params": params}}], "edges": []}


def test_a_run_from_its_start_to_its_journal(client: Client, name: Name) -> None:
    flow = name("greet")
    assert client.flows.create(flow, UPPER)["version"] == 1
    run = client.start(flow, {"name": "Ada"}, wait=5, labels={"team": "a"})
    assert run.started["status"] == "completed" and run.result(5) == {"name": "ADA"}
    assert [entry["seq"] for entry in run.follow()] == [entry["seq"] for entry in client.runs.journal(run.id)]
    assert run.get()["labels"] == {"team": "a"}
    assert [attempt["node"] for attempt in client.runs.attempts(run.id)] == ["a"]
    assert any("completed" in line["message"] for line in client.runs.logs(run.id))
    assert run.id in [one["id"] for one in client.runs.list(f"flow:{flow}")]
    assert len(list(client.runs.list(flow=flow, limit=1))) == 1


def test_a_repeated_start_makes_one_run(client: Client, name: Name) -> None:
    flow = name("once")
    client.flows.create(flow, UPPER)
    first = client.start(flow, {"name": "a"}, request_id=flow)
    second = client.start(flow, {"name": "a"}, request_id=flow)
    assert first.id == second.id and first.created and not second.created
    with pytest.raises(RequestTaken):
        client.start(flow, {"name": "b"}, request_id=flow)


def test_flows_have_versions_and_differences(client: Client, name: Name) -> None:
    flow = name("versions")
    client.flows.create(flow, UPPER)
    lower = {**UPPER, "nodes": {"a": {**UPPER["nodes"]["a"], "func": "lower"}}}  # type: ignore[index]
    assert client.flows.publish(flow, lower, note="lower")["version"] == 2
    assert [one["version"] for one in client.flows.versions(flow)] == [2, 1]
    assert client.flows.version(flow, 2)["definition"]["nodes"]["a"]["func"] == "lower"
    assert [one["path"] for one in client.flows.diff(flow)["changes"]] == ["/nodes/a/func"]
    assert not client.flows.validate("start: a\nnodes: {a: {kind: chioce}}")["ok"]
    with pytest.raises(errors.Conflict):
        client.flows.create(flow, UPPER)
    with pytest.raises(errors.Invalid) as caught:
        client.flows.create(name("bad"), {"start": "a", "nodes": {"a": {"kind": "chioce"}}})
    assert (
        caught.value.remedy == "did you mean `choice`?" and caught.value.errors[0]["path"] == "$.nodes.a.kind"
    )


def test_runs_are_signaled_paused_and_canceled(client: Client, name: Name) -> None:
    flow = name("signal")
    client.flows.create(flow, waiting("wait_event", signal_key="paid"))
    run = client.start(flow)
    with pytest.raises(StillOpen):
        run.wait(0.1)
    assert "paid" in str(run.why()["reasons"])
    assert client.runs.pause(run.id)["status"] == "paused"
    client.runs.resume(run.id)
    run.signal("paid", {"receipt": 7}, id="s1")
    assert run.wait(5)["node_states"]["wait"]["output"] == {"receipt": 7}
    other = client.start(flow)
    other.cancel("not needed")
    with pytest.raises(RunFailed, match="is canceled"):
        other.result(5)
    assert client.runs.rerun(run.id, "wait", dry_run=True)["nodes"]


def test_follow_sees_entries_as_they_come(client: Client, name: Name) -> None:
    flow = name("follow")
    client.flows.create(flow, waiting("wait_event", signal_key="go"))
    run = client.start(flow)
    threading.Timer(0.3, lambda: run.signal("go", 1)).start()
    entries = list(run.follow())
    assert len(entries) >= 2 and run.get()["status"] == "completed"
    assert len(list(run.follow(after=entries[0]["seq"]))) == len(entries) - 1


def test_approvals_are_listed_and_decided(client: Client, name: Name) -> None:
    flow = name("approval")
    client.flows.create(flow, waiting("approval", assignees=["ann"]))
    run = client.start(flow)
    until = time.monotonic() + 5
    while run.id not in [one["run"] for one in client.approvals.list(assignee="ann")]:
        assert time.monotonic() < until
    with pytest.raises(NotAssigned):
        client.approvals.decide(run.id, True, by="eve")
    client.approvals.decide(run.id, True, by="ann", comment="fine")
    assert run.wait(5)["node_states"]["wait"]["output"] is True


def test_queues_jobs_and_dead_letters(client: Client, name: Name) -> None:
    queue = name("queue")
    job = client.jobs.create("work", {"n": 1}, queue=queue, dedup_key="d", delay=3600)
    assert client.jobs.create("work", queue=queue, dedup_key="d").id == job.id
    many = client.jobs.create_many([{"name": "work", "queue": queue, "payload": n} for n in range(3)])
    assert len(many) == 3 and len(list(client.jobs.list(queue=queue))) == 4
    assert client.queues.pause(queue)["paused"] and not client.queues.resume(queue)["paused"]
    assert client.queues.limit(queue, concurrency=5)["limits"]["concurrency"] == 5
    assert queue in [one["name"] for one in client.queues.list()]
    assert job.cancel()["status"] == "canceled"
    assert client.jobs.retry(job.id)["status"] == "queued"
    claimed = client.jobs.claim({"worker_id": "t", "queues": [queue], "max": 3, "lease_ms": 5000})["jobs"]
    assert [one["input"] for one in claimed] == [0, 1, 2]
    ends: Any = [
        {"id": one["id"], "lease": one["lease"], "outcome": "failed", "error": "no", "retryable": False}
        for one in claimed
    ]
    assert client.jobs.extend([one["lease"] for one in claimed], 10)["results"][0]["verdict"] == "ok"
    assert [one["verdict"] for one in client.jobs.finish(ends)["results"]] == ["ok"] * 3
    assert len(client.dead_letters.list(queue)) == 3
    group = client.dead_letters.groups(queue)["groups"][0]
    assert group["count"] == 3
    assert client.dead_letters.replay(queue, count=1, priority=3, replay_id="r1")["moved"] == 1
    assert client.dead_letters.discard(queue, "closed", count=2)["moved"] == 2
    assert len(list(client.jobs.attempts(claimed[0]["id"]))) >= 1


def test_schedules_accounts_prices_services_and_workers(client: Client, name: Name) -> None:
    flow, account, service = name("scheduled"), name("account"), name("service")
    client.flows.create(flow, UPPER)
    made = client.schedules.create("0 9 * * 1-5", flow=flow, timezone="Europe/Berlin", params={"name": "x"})
    assert client.schedules.change(made["id"], cron_expr="@daily")["cron_expr"] == "@daily"
    assert not client.schedules.enable(made["id"], False)["enabled"]
    assert client.schedules.trigger(made["id"]).get("run_id")
    assert len(client.schedules.next(made["id"], 3)["next_runs"]) == 3
    assert client.schedules.preview("@hourly", count=2)["count"] == 2
    assert made["id"] in [one["id"] for one in client.schedules.list()]
    client.schedules.delete(made["id"])
    with pytest.raises(errors.NotFound):
        client.schedules.get(made["id"])
    client.accounts.open(account, "Acme")
    assert client.accounts.deposit(account, 500, "k1")["created"]
    assert not client.accounts.deposit(account, 500, "k1")["created"]
    assert client.accounts.get(account)["balance"] == 500
    assert [one["amount"] for one in client.accounts.ledger(account)] == [500]
    assert client.prices.set(service, 3)["unit_price"] == 3 and client.prices.get(service)["unit_price"] == 3
    client.prices.delete(service)
    assert client.services.set(service, timeout_ms=5000)["timeout_ms"] == 5000
    client.workers.register(name("worker"), services=[service], capacity=2)
    assert client.services.get(service)["n_workers"] == 1


def test_unknown_things_raise_their_class(client: Client) -> None:
    with pytest.raises(UnknownRun) as caught:
        client.runs.get("run_00000000000000000000000000000000")
    assert (caught.value.code, caught.value.status) == ("unknown_run", 404)
    assert client.raw("GET", "/healthz")[0] == 200


def test_a_server_that_is_away_is_named() -> None:
    begun = time.monotonic()
    with pytest.raises(errors.Unreachable, match=r"http://127.0.0.1:9 does not answer"):
        Client("http://127.0.0.1:9").runs.get("run_1")
    assert 0.5 < time.monotonic() - begun < 5


def test_the_async_client_does_the_same(server: Server, name: Name) -> None:
    async def all_of_it() -> None:
        flow = name("async")
        async with AsyncClient(server.url) as client:
            await client.flows.create(flow, waiting("wait_event", signal_key="go"))
            runs = await asyncio.gather(*[client.start(flow, request_id=f"{flow}-{n}") for n in range(20)])
            assert len({run.id for run in runs}) == 20
            await asyncio.gather(*[run.signal("go", "x") for run in runs])
            for run in runs:
                assert (await run.wait(5))["status"] == "completed"
            assert [entry["seq"] async for entry in runs[0].follow()]
            assert len([run async for run in client.runs.list(flow=flow)]) == 20
            with pytest.raises(UnknownRun):
                await client.runs.get("run_00000000000000000000000000000000")
            job = await client.jobs.create("none", queue=name("q"))
            with pytest.raises(StillOpen):
                await job.wait(0.05)
        with pytest.raises(errors.Unreachable):
            await AsyncClient("http://127.0.0.1:9").health()

    asyncio.run(all_of_it())


def test_a_client_of_threads_survives_a_restart() -> None:
    with Server() as server:
        client = server.client
        threads = [threading.Thread(target=client.health) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.kill()
        server.start()
        # The idle connections are dead; a request that is not idempotent must not meet one.
        assert client.flows.create("after", UPPER)["version"] == 1

        async def twice() -> None:
            async with AsyncClient(server.url) as one:
                await one.health()
                server.kill()
                server.start()
                assert (await one.flows.publish("after", UPPER))["version"] == 2

        asyncio.run(twice())


def test_follow_goes_on_after_a_restart() -> None:
    with Server() as server:
        client = server.client
        client.flows.create("follow", waiting("wait_event", signal_key="go"))
        run = client.start("follow")

        def restart() -> None:
            server.kill()
            time.sleep(0.3)
            server.start()
            run.signal("go", 1)

        thread = threading.Timer(0.3, restart)
        thread.start()
        numbers = [entry["seq"] for entry in run.follow()]
        thread.join()
        assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) >= 2
