"""Handlers: binding of inputs, ends, and calls without a server."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any, Dict, List, Optional

import pytest

from windlass import App, Call, Canceled, Fatal, Temporary
from windlass.errors import BadInput
from windlass.handler import Handler, encoded, message_of
from windlass.testing import CallFailed, Suspended, call


@dataclasses.dataclass
class Charge:
    order: str
    cents: int


def resize(file: str, width: int = 80) -> str:
    return f"{file} at {width}"


def pay(what: Charge, call: Call) -> str:
    return f"{call.key}: {what.order} {what.cents}"


def test_an_object_fills_the_parameters() -> None:
    assert call(resize, {"file": "cat.png", "width": 40}) == "cat.png at 40"
    assert call(resize, {"file": "cat.png"}) == "cat.png at 80"


def test_an_input_that_is_no_object_fills_the_first_parameter() -> None:
    assert call(resize, "cat.png") == "cat.png at 80"


def test_one_parameter_is_the_whole_input() -> None:
    assert call(pay, {"order": "A", "cents": 5}, key="k") == "k: A 5"
    assert call(lambda x: x, [1, {"a": 2}]) == [1, {"a": 2}]


def test_a_field_with_the_name_of_the_only_parameter_is_unpacked() -> None:
    def shout(text: str) -> str:
        return text.upper()

    def keys(fields: Dict[str, Any]) -> List[str]:
        return list(fields)

    assert call(shout, {"text": "a"}) == "A" and call(shout, "a") == "A"
    assert call(keys, {"fields": {"a": 1}}) == ["fields"]
    with pytest.raises(Fatal, match=r"\$.text: expected a text, got the number 1"):
        call(shout, {"text": 1})


def test_a_handler_without_parameters_ignores_its_input() -> None:
    assert call(lambda: 7, {"anything": 1}) == 7


def test_further_fields_go_to_keywords() -> None:
    def collect(first: int, **rest: Any) -> Dict[str, Any]:
        return {"first": first, **rest}

    assert call(collect, {"first": 1, "b": 2}) == {"first": 1, "b": 2}


@pytest.mark.parametrize(
    ("input", "place"),
    [
        ({"file": "a", "width": "wide"}, "$.width: expected an integer, got the text 'wide'"),
        ({"width": 3}, "$.file: is missing"),
        ({"file": "a", "hight": 3}, "$.hight: is unknown; known are file, width"),
        (None, "$.file: is missing"),
        (5, "$: expected a text, got the number 5"),
    ],
)
def test_a_wrong_input_is_refused_for_good(input: Any, place: str) -> None:
    with pytest.raises(Fatal) as caught:
        call(resize, input)
    assert str(caught.value) == f"wrong input of `resize`: {place}"


def test_async_handlers_are_called_too() -> None:
    async def later(x: int) -> int:
        await asyncio.sleep(0)
        return x + Call.current().attempt

    assert call(later, 1, attempt=3) == 4


def test_calls_end_as_the_handler_chooses() -> None:
    def end(how: str, call: Call) -> str:
        if how == "suspend":
            call.suspend({"id": 7}, recheck=1.5)
        if how == "fatal":
            raise Fatal("declined")
        if how == "temporary":
            raise Temporary("busy", retry_after=2)
        if how == "again":
            return f"memo {call.memo}"
        raise ValueError("odd")

    with pytest.raises(Suspended) as suspended:
        call(end, "suspend")
    assert (suspended.value.memo, suspended.value.recheck_ms) == ({"id": 7}, 1500)
    with pytest.raises(Fatal, match="declined"):
        call(end, "fatal")
    with pytest.raises(Temporary) as temporary:
        call(end, "temporary")
    assert temporary.value.retry_after == 2
    with pytest.raises(CallFailed, match="ValueError: odd") as failed:
        call(end, "x")
    assert "Traceback" in failed.value.outcome["log"] and "retryable" not in failed.value.outcome
    assert call(end, "again", memo=3) == "memo 3"


def test_suspend_passes_through_a_broad_except() -> None:
    def broad(call: Call) -> str:
        try:
            call.suspend(1)
        except Exception:
            return "caught"

    with pytest.raises(Suspended):
        call(broad)


def test_strange_errors_end_the_call_and_not_the_worker() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def raise_odd() -> None:
        raise Odd

    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(CallFailed, match="Odd: its message cannot be read"):
        call(raise_odd)
    with pytest.raises(CallFailed, match="SystemExit: 3"):
        call(leave)
    assert message_of(ValueError("\ud800")) == "ValueError: ?"


def test_a_result_without_json_fails_for_good() -> None:
    body = encoded({"outcome": "done", "result": object()}, "x")
    assert b'"retryable":false' in body and b"has no form in JSON" in body
    loop: List[Any] = []
    loop.append(loop)
    assert b"cannot be sent" in encoded({"outcome": "done", "result": loop}, "x")


def test_a_canceled_call_says_so() -> None:
    made = Call("x", remaining=5.0)
    heard: List[str] = []
    made.on_cancel(lambda: heard.append("stop"))
    made.check()
    assert not made.cancelled and 4 < (made.remaining or 0) <= 5
    made.cancel("canceled")
    made.cancel("again")
    made.on_cancel(lambda: heard.append("late"))
    assert made.cancelled and heard == ["stop", "late"] and made.wait_cancelled(0)
    with pytest.raises(Canceled, match="canceled"):
        made.check()


def test_log_lines_travel_with_the_end() -> None:
    def talk(call: Call) -> None:
        call.log("first", n=1)
        call.log.warn("second")

    made: List[Call] = []
    call(talk, context=made)
    lines = [{"level": "info", "message": "first", "data": {"n": 1}}, {"level": "warn", "message": "second"}]
    assert made[0].log.lines() == lines


def test_a_log_line_never_costs_the_result() -> None:
    def talk(call: Call) -> str:
        call.log("odd \ud800", value=b"x", n=1)
        return "done"

    made: List[Call] = []
    assert call(talk, context=made) == "done"
    assert made[0].log.lines()[0] == {
        "level": "info",
        "message": "odd ?",
        "data": {"value": "b'x'", "n": "1"},
    }
    assert message_of(Fatal("\ud800")) == "?"


def test_functions_that_cannot_be_handlers_are_refused() -> None:
    def generator() -> Any:
        yield 1

    def many(*values: int) -> None: ...

    def two(a: Call, b: Call) -> None: ...

    for function, message in [(generator, "generator"), (many, r"\*values"), (two, "several parameters")]:
        with pytest.raises(TypeError, match=message):
            Handler(function, "x")
    app = App()
    app.service("x")(resize)
    with pytest.raises(ValueError, match="has a handler already"):
        app.service("x")(resize)
    with pytest.raises(ValueError, match="at least one slot"):
        app.service("y", slots=0)(resize)


def test_send_checks_the_arguments_here() -> None:
    service = App().service(resize)
    assert service("a", width=2) == "a at 2"
    assert service.handler.payload(("a",), {"width": 3}) == {"file": "a", "width": 3}
    with pytest.raises(BadInput, match=r"\$.width: expected an integer"):
        service.handler.payload(("a",), {"width": "x"})
    with pytest.raises(TypeError, match="no parameter `size`"):
        service.handler.payload((), {"size": 1})
    with pytest.raises(TypeError, match="two values for `file`"):
        service.handler.payload(("a",), {"file": "b"})
    whole = App().service(pay)
    assert whole.handler.payload((Charge("A", 5),), {}) == {"order": "A", "cents": 5}
    with pytest.raises(TypeError, match="needs a value for `what`"):
        whole.handler.payload((), {})


def test_later_classes_may_be_named() -> None:
    def serve(x: Later) -> int:
        return x.n

    serve.__globals__["Later"] = Later
    assert call(serve, {"n": 4}) == 4


def test_unknown_annotations_are_named() -> None:
    def serve(x: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(CallFailed, match="name something unknown"):
        call(serve, 1)


@dataclasses.dataclass
class Later:
    n: int
    tag: Optional[str] = None
