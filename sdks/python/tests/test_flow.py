"""The builder of flows."""

from __future__ import annotations

from typing import Any, Callable, List

import pytest

from windlass import App, Client
from windlass.flow import Flow
from windlass.testing import Server

Name = Callable[[str], str]


def film(name: str) -> Flow:
    flow = Flow(name, text=str, width=80)
    speak = flow.call("speak", "audio_tts", text=flow.params.text, retries=2, retry_delay=0.5, timeout=60)
    cut = flow.call("cut", "audio_cut", audio=speak.output.urls[0], when=speak.output.seconds > 60)
    review = flow.approval("review", assignees=["ann"], after=cut)
    flow.delay("rest", 2, after=review)
    flow.result(audio=cut.output.urls[0], first=speak)
    return flow


def test_the_definition_is_plain() -> None:
    assert film("film").definition() == {
        "form": "dag",
        "variables": {
            "text": {"type": "string", "required": True},
            "width": {"type": "number", "defaultValue": 80},
        },
        "nodes": [
            {
                "id": "speak",
                "type": "audio_tts",
                "config": {"text": "$var.text"},
                "retry": {"max": 2, "delay_ms": 500},
                "timeout_ms": 60000,
            },
            {"id": "cut", "type": "audio_cut", "config": {"audio": "$node.speak.output.urls[0]"}},
            {"id": "review", "type": "approval", "config": {"params": {"assignees": ["ann"]}}},
            {"id": "rest", "type": "delay", "config": {"delaySeconds": 2}},
            {
                "id": "end",
                "type": "end",
                "config": {
                    "outputs": [
                        {"name": "audio", "source": "$node.cut.output.urls[0]"},
                        {"name": "first", "source": "$node.speak.output"},
                    ]
                },
            },
        ],
        "edges": [
            {"source": "speak", "target": "cut", "condition": "$node.speak.output.seconds > 60"},
            {"source": "cut", "target": "review"},
            {"source": "review", "target": "rest"},
            {"source": "cut", "target": "end"},
            {"source": "speak", "target": "end"},
            {"source": "rest", "target": "end"},
        ],
    }


def test_the_server_finds_no_problem(client: Client, name: Name) -> None:
    validation = film(name("film")).validate(client)
    assert validation["ok"], validation["problems"]


def test_conditions_join() -> None:
    flow = Flow("x", n=int)
    a = flow.call("a", n=1)
    condition = ((a.output.kind == "x") & (a.output["n"] >= 2)) | ~(flow.params.n != 3)
    assert str(condition) == '(($node.a.output.kind == "x") && ($node.a.output.n >= 2)) || (!($var.n != 3))'
    b = flow.call("b", when=condition)
    flow.call("c", when=flow.params.n > 1)
    edges = flow.definition()["edges"]
    assert edges[0] == {"source": "a", "target": "b", "condition": str(condition)} and b.id == "b"
    assert edges[1] == {"source": "start", "target": "c", "condition": "$var.n > 1"}


def test_mistakes_are_named_at_once() -> None:
    flow = Flow("x", n=int)
    a = flow.call("a")
    attempts: List[Callable[[], Any]] = [
        lambda: flow.call("a"),
        lambda: flow.call("a b"),
        lambda: flow.params.missing,
        lambda: bool(a.output),
        lambda: list(a.output),
        lambda: a.output[-1],
        lambda: a.output["a b"],
        lambda: bool(a.output == 1) and 2,
        lambda: Flow("y").call("b", x=a.output),
        lambda: flow.call("d", None, 5, x=1),
        lambda: Flow("z", n=set),
    ]
    for attempt in attempts:
        with pytest.raises((ValueError, TypeError, AttributeError, IndexError)):
            attempt()


def test_publish_makes_a_version_only_for_a_change(client: Client, name: Name) -> None:
    flow = film(name("film"))
    assert flow.diff(client) is None
    assert flow.publish(client)["version"] == 1
    assert flow.publish(client)["version"] == 1
    flow.call("more", after=flow.nodes["speak"])
    changes = flow.diff(client)
    assert changes is not None and any(one["path"].startswith("/nodes") for one in changes["changes"])
    assert flow.publish(client, note="more")["version"] == 2


def test_a_flow_runs_on_a_worker(server: Server, app: App, name: Name) -> None:
    @app.service(name("length"))
    def length(text: str) -> int:
        return len(text)

    @app.service(name("join"))
    async def join(left: int, right: int) -> str:
        return f"{left}+{right}"

    flow = Flow(name("both"), a=str, b=str)
    left = flow.call("left", length, text=flow.params.a)
    right = flow.call("right", length, text=flow.params.b)
    both = flow.call("both", join, left=left, right=right.output)
    flow.result(sum=both)
    outer = Flow(name("outer"))
    inner = outer.run("inner", flow, a="x", b="yyy")
    outer.result(inner=inner.output.sum)
    with server.worker(app):
        flow.publish(app.client)
        outer.publish(app.client)
        assert app.client.start(flow.name, {"a": "xx", "b": "yyy"}).result(15) == {"sum": "2+3"}
        assert app.client.start(outer.name).result(15) == {"inner": "1+3"}
