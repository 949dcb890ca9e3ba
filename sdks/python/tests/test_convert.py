"""Values between JSON and types."""

from __future__ import annotations

import dataclasses
import sys
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, Dict, List, Literal, NewType, Optional, Tuple, TypedDict, Union
from uuid import UUID

import pytest

from windlass._wire import dump
from windlass.convert import ConversionError, convert


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Size:
    width: int
    height: int = 10


@dataclasses.dataclass
class Picture:
    name: str
    sizes: List[Size]
    color: Color = Color.RED
    taken: Optional[datetime] = None


class Card(TypedDict):
    number: str


UserId = NewType("UserId", int)


@pytest.mark.parametrize(
    ("value", "wanted", "converted"),
    [
        (3, int, 3),
        (3.0, int, 3),
        (3, float, 3.0),
        ("x", str, "x"),
        (True, bool, True),
        (None, type(None), None),
        ({"a": 1}, dict, {"a": 1}),
        ([1, "a"], list, [1, "a"]),
        ([1, 2], Tuple[int, ...], (1, 2)),
        ([1, "a"], Tuple[int, str], (1, "a")),
        ([1, 1], set, {1}),
        ({"1": 2}, Dict[int, int], {1: 2}),
        (None, Optional[int], None),
        (5, Union[str, int], 5),
        ("5", Union[int, str], "5"),
        ("a", Literal["a", "b"], "a"),
        ("red", Color, Color.RED),
        (7, UserId, 7),
        ({"number": "1", "more": 2}, Card, {"number": "1", "more": 2}),
        ("2026-11-19T21:00:00Z", datetime, datetime(2026, 11, 19, 21, tzinfo=timezone.utc)),
        (1.5, timedelta, timedelta(seconds=1.5)),
        ("1.10", Decimal, Decimal("1.10")),
        ("12345678123456781234567812345678", UUID, UUID("12345678123456781234567812345678")),
        ({"width": 1}, Size, Size(1)),
        (
            {"name": "cat", "sizes": [{"width": 1, "height": 2}], "color": "blue"},
            Picture,
            Picture("cat", [Size(1, 2)], Color.BLUE),
        ),
        ({"x": object}, Any, {"x": object}),
    ],
)
def test_values_become_their_types(value: Any, wanted: Any, converted: Any) -> None:
    assert convert(value, wanted) == converted


@pytest.mark.parametrize(
    ("value", "wanted", "message"),
    [
        ("wide", int, "$: expected an integer, got the text 'wide'"),
        (True, int, "$: expected an integer, got true"),
        (3.5, int, "$: expected an integer, got the number 3.5"),
        (True, float, "$: expected a number, got true"),
        (None, str, "$: expected a text, got null"),
        (1, bool, "$: expected true or false, got the number 1"),
        ({}, List[int], "$: expected an array, got an object"),
        (
            [1, "a", "b"],
            List[int],
            "$[1]: expected an integer, got the text 'a'; $[2]: expected an integer, got the text 'b'",
        ),
        ({"a b": "x"}, Dict[str, int], "$['a b']: expected an integer, got the text 'x'"),
        ("c", Literal["a", "b"], "$: expected one of 'a', 'b', got the text 'c'"),
        (1, Literal[True], "$: expected one of True, got the number 1"),
        ("green", Color, "$: expected one of 'red', 'blue', got the text 'green'"),
        ([], Union[int, str], "$: expected an integer or a text, got an array"),
        ({"width": "x"}, Optional[Size], "$.width: expected an integer, got the text 'x'"),
        (
            {"height": 1, "depth": 2},
            Size,
            "$.width: is missing; $.depth: is unknown; known are width, height",
        ),
        (
            {"name": 1, "sizes": [{"width": None}]},
            Picture,
            "$.name: expected a text, got the number 1; $.sizes[0].width: expected an integer, got null",
        ),
        ({}, Card, "$.number: is missing"),
        ("soon", datetime, "$: expected a time (RFC 3339), got the text 'soon'"),
        ([1], Tuple[int, str], "$: expected 2 items, got 1"),
    ],
)
def test_every_wrong_place_is_named(value: Any, wanted: Any, message: str) -> None:
    with pytest.raises(ConversionError) as caught:
        convert(value, wanted)
    assert str(caught.value) == message


@pytest.mark.skipif(sys.version_info < (3, 10), reason="X | Y came with 3.10")
def test_unions_of_newer_pythons_are_known() -> None:
    assert convert(None, eval("int | None")) is None
    with pytest.raises(ConversionError, match="expected an integer or a text"):
        convert([], eval("int | str"))


def test_pydantic_models_are_read_and_written() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Order", id=(int, ...), tags=(List[str], []))
    order = convert({"id": 7, "tags": ["a"]}, model)
    assert order.id == 7 and dump(order) == b'{"id":7,"tags":["a"]}'
    with pytest.raises(ConversionError) as caught:
        convert({"tags": ["a", 1]}, model, "$.order")
    assert "$.order.id: Field required" in str(caught.value) and "$.order.tags[1]: " in str(caught.value)


def test_results_become_json() -> None:
    value = {
        "size": Size(1),
        "color": Color.BLUE,
        "at": datetime(2026, 1, 2),
        "left": timedelta(seconds=2),
        "ids": {2},
    }
    wanted = (
        b'{"size":{"width":1,"height":10},"color":"blue","at":"2026-01-02T00:00:00","left":2.0,"ids":[2]}'
    )
    assert dump(value) == wanted


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "cannot be sent as JSON"),
        (b"x", "base64"),
        (object(), "has no form in JSON"),
        ("\ud800", "surrogates"),
    ],
)
def test_values_without_json_are_refused(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dump({"x": value})
