"""Values between JSON and the types of handlers: plain annotations, dataclasses, typed dicts, enums, pydantic models.

JSON only: nothing is pickled. Every wrong place of an input is named, such as `$.width: expected an integer`.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, Callable, Dict, List, Tuple, Union
from uuid import UUID

#: A wrong place with its reason.
Problem = Tuple[str, str]
#: The value that stands for one that could not be read; its problem is in the list.
BROKEN = object()
#: Problems that one message names.
PROBLEMS_MAX = 20


class ConversionError(ValueError):
    """A value does not fit a type; the message names every place."""

    def __init__(self, problems: List[Problem]) -> None:
        shown = "; ".join(f"{place}: {reason}" for place, reason in problems[:PROBLEMS_MAX])
        more = len(problems) - PROBLEMS_MAX
        super().__init__(shown + (f"; and {more} more" if more > 0 else ""))
        self.problems = problems


def convert(value: Any, wanted: Any, place: str = "$") -> Any:
    """The JSON value as the wanted type; raises `ConversionError` with every wrong place."""
    problems: List[Problem] = []
    converted = read_as(value, wanted, place, problems)
    if problems:
        raise ConversionError(problems)
    return converted


# Reading


def read_as(value: Any, wanted: Any, place: str, problems: List[Problem]) -> Any:
    if wanted is Any or wanted is object or isinstance(wanted, typing.TypeVar):
        return value
    if wanted is None or wanted is type(None):
        return value if value is None else _refuse(place, "null", value, problems)
    simple = _SIMPLE.get(wanted) if isinstance(wanted, type) else None
    if simple is not None:
        return simple(value, place, problems)
    origin = typing.get_origin(wanted)
    if origin is not None:
        return _read_generic(value, wanted, origin, place, problems)
    if not isinstance(wanted, type):
        # A NewType is its supertype for JSON; anything else cannot be checked here.
        supertype = getattr(wanted, "__supertype__", None)
        return value if supertype is None else read_as(value, supertype, place, problems)
    if hasattr(wanted, "model_validate"):
        return _read_pydantic(value, wanted, place, problems)
    if dataclasses.is_dataclass(wanted):
        return _read_dataclass(value, wanted, place, problems)
    if issubclass(wanted, Enum):
        return _read_enum(value, wanted, place, problems)
    if is_typed_dict(wanted):
        return _read_typed_dict(value, wanted, place, problems)
    return _read_scalar_class(value, wanted, place, problems)


def _refuse(place: str, expected: str, value: Any, problems: List[Problem]) -> Any:
    problems.append((place, f"expected {expected}, got {describe(value)}"))
    return BROKEN


def describe(value: Any) -> str:
    """A JSON value in a few words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {value!r}"
    if isinstance(value, str):
        return f"the text {value[:40]!r}" + ("…" if len(value) > 40 else "")
    if isinstance(value, list):
        return "an array"
    return "an object" if isinstance(value, dict) else f"a {type(value).__name__}"


def _text(value: Any, place: str, problems: List[Problem]) -> Any:
    return value if isinstance(value, str) else _refuse(place, "a text", value, problems)


def _integer(value: Any, place: str, problems: List[Problem]) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    # JSON knows one kind of number: 3.0 is the integer 3.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return _refuse(place, "an integer", value, problems)


def _number(value: Any, place: str, problems: List[Problem]) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return _refuse(place, "a number", value, problems)


def _boolean(value: Any, place: str, problems: List[Problem]) -> Any:
    return value if isinstance(value, bool) else _refuse(place, "true or false", value, problems)


def _array(value: Any, place: str, problems: List[Problem]) -> Any:
    return value if isinstance(value, list) else _refuse(place, "an array", value, problems)


def _object(value: Any, place: str, problems: List[Problem]) -> Any:
    return value if isinstance(value, dict) else _refuse(place, "an object", value, problems)


_SIMPLE: Dict[type, Callable[[Any, str, List[Problem]], Any]] = {
    str: _text,
    int: _integer,
    float: _number,
    bool: _boolean,
    list: _array,
    dict: _object,
}


def _read_generic(value: Any, wanted: Any, origin: Any, place: str, problems: List[Problem]) -> Any:
    arguments = typing.get_args(wanted)
    if is_union(origin):
        return _read_union(value, arguments, place, problems)
    if origin is typing.Literal:
        # `1 == True` in Python, but not in JSON.
        if any(value == one and type(value) is type(one) for one in arguments):
            return value
        return _refuse(place, "one of " + ", ".join(repr(one) for one in arguments), value, problems)
    if getattr(wanted, "__metadata__", None) is not None:
        return read_as(value, arguments[0], place, problems)
    if origin is tuple:
        return _read_tuple(value, arguments, place, problems)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _read_mapping(value, arguments, place, problems)
    if isinstance(origin, type) and issubclass(origin, Iterable):
        if not isinstance(value, list):
            return _refuse(place, "an array", value, problems)
        one = arguments[0] if arguments else Any
        items = [read_as(item, one, f"{place}[{i}]", problems) for i, item in enumerate(value)]
        if origin in (set, frozenset):
            return origin(items) if not problems else BROKEN
        return items
    return read_as(value, origin, place, problems)


def is_union(origin: Any) -> bool:
    """Whether the origin of a type is that of `Union[X, Y]` or `X | Y`."""
    return origin is Union or getattr(origin, "__name__", "") == "UnionType"


def _read_union(value: Any, choices: Tuple[Any, ...], place: str, problems: List[Problem]) -> Any:
    if value is None and type(None) in choices:
        return None
    choices = tuple(choice for choice in choices if choice is not type(None))
    tried: List[List[Problem]] = []
    # An exact kind first: `int | float` keeps an integer, `str | int` a text.
    for choice in sorted(choices, key=lambda choice: type(value) is not choice):
        wrong: List[Problem] = []
        converted = read_as(value, choice, place, wrong)
        if not wrong:
            return converted
        tried.append(wrong)
    if len(tried) == 1:
        problems.extend(tried[0])
        return BROKEN
    # The choice that got furthest says most.
    deepest = max(tried, key=lambda wrong: len(wrong[0][0]))
    if len(deepest[0][0]) > len(place):
        problems.extend(deepest)
        return BROKEN
    names = " or ".join(dict.fromkeys(name_of(choice) for choice in choices))
    return _refuse(place, names, value, problems)


_NAMES = {
    str: "a text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    list: "an array",
    dict: "an object",
}


def name_of(wanted: Any) -> str:
    """A type in words."""
    origin = typing.get_origin(wanted) or wanted
    return _NAMES.get(origin, f"a `{getattr(wanted, '__name__', wanted)}`")


def _read_tuple(value: Any, arguments: Tuple[Any, ...], place: str, problems: List[Problem]) -> Any:
    if not isinstance(value, list):
        return _refuse(place, "an array", value, problems)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(read_as(item, arguments[0], f"{place}[{i}]", problems) for i, item in enumerate(value))
    if len(value) != len(arguments):
        problems.append((place, f"expected {len(arguments)} items, got {len(value)}"))
        return BROKEN
    return tuple(read_as(item, arguments[i], f"{place}[{i}]", problems) for i, item in enumerate(value))


def _read_mapping(value: Any, arguments: Tuple[Any, ...], place: str, problems: List[Problem]) -> Any:
    if not isinstance(value, dict):
        return _refuse(place, "an object", value, problems)
    key_type, value_type = arguments if len(arguments) == 2 else (str, Any)
    converted = {}
    for key, item in value.items():
        inner = member(place, key)
        name = key
        if key_type is int:
            try:
                name = int(key)
            except ValueError:
                problems.append((inner, "expected an integer as its key"))
                continue
        elif key_type is not str:
            name = read_as(key, key_type, inner, problems)
        converted[name] = read_as(item, value_type, inner, problems)
    return converted


def member(place: str, key: str) -> str:
    """The place of a field."""
    return f"{place}.{key}" if key.isidentifier() else f"{place}[{key!r}]"


def _read_dataclass(value: Any, wanted: Any, place: str, problems: List[Problem]) -> Any:
    if not isinstance(value, dict):
        return _refuse(place, f"an object (`{wanted.__name__}`)", value, problems)
    hints = type_hints(wanted)
    known = [field for field in dataclasses.fields(wanted) if field.init]
    arguments = {}
    for field in known:
        inner = member(place, field.name)
        if field.name in value:
            arguments[field.name] = read_as(value[field.name], hints.get(field.name, Any), inner, problems)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            problems.append((inner, "is missing"))
    _refuse_unknown(value, [field.name for field in known], place, problems)
    if problems:
        return BROKEN
    try:
        return wanted(**arguments)
    except (TypeError, ValueError) as error:
        problems.append((place, str(error)))
        return BROKEN


def _refuse_unknown(
    value: Mapping[str, Any], known: Sequence[str], place: str, problems: List[Problem]
) -> None:
    for key in value:
        if key not in known:
            problems.append(
                (member(place, str(key)), "is unknown; known are " + (", ".join(known) or "no fields"))
            )


def is_typed_dict(wanted: Any) -> bool:
    return isinstance(wanted, type) and issubclass(wanted, dict) and hasattr(wanted, "__required_keys__")


def _read_typed_dict(value: Any, wanted: Any, place: str, problems: List[Problem]) -> Any:
    if not isinstance(value, dict):
        return _refuse(place, f"an object (`{wanted.__name__}`)", value, problems)
    hints = type_hints(wanted)
    for key in sorted(wanted.__required_keys__):
        if key not in value:
            problems.append((member(place, key), "is missing"))
    # A typed dict may have more keys than its type names.
    return {
        key: read_as(one, hints.get(key, Any), member(place, key), problems) for key, one in value.items()
    }


def takes_objects(wanted: Any) -> bool:
    """Whether an object of JSON may be a value of a type."""
    origin = typing.get_origin(wanted)
    if origin is not None and is_union(origin):
        return any(takes_objects(one) for one in typing.get_args(wanted))
    if origin is typing.Literal:
        return False
    if getattr(wanted, "__metadata__", None) is not None:
        return takes_objects(typing.get_args(wanted)[0])
    kind = origin or getattr(wanted, "__supertype__", wanted)
    if not isinstance(kind, type) or kind is object:
        return True
    if dataclasses.is_dataclass(kind) or hasattr(kind, "model_validate") or issubclass(kind, Mapping):
        return True
    is_known = kind in _SIMPLE or kind in _TEXT_CLASSES or kind in (type(None), timedelta)
    return not is_known and not issubclass(kind, (Enum, Iterable))


def _read_enum(value: Any, wanted: Any, place: str, problems: List[Problem]) -> Any:
    for one in wanted:
        if one.value == value and type(one.value) is type(value):
            return one
    return _refuse(place, "one of " + ", ".join(repr(one.value) for one in wanted), value, problems)


def _read_pydantic(value: Any, wanted: Any, place: str, problems: List[Problem]) -> Any:
    try:
        return wanted.model_validate(value)
    except ValueError as error:
        errors: Any = getattr(error, "errors", None)
        if errors is None:
            problems.append((place, str(error)))
            return BROKEN
        for one in errors():
            inner = place
            for step in one.get("loc", ()):
                inner = f"{inner}[{step}]" if isinstance(step, int) else member(inner, str(step))
            problems.append((inner, one.get("msg", "is wrong")))
        return BROKEN


def _read_scalar_class(value: Any, wanted: Any, place: str, problems: List[Problem]) -> Any:
    reader = _TEXT_CLASSES.get(wanted)
    if reader is not None:
        name, read = reader
        if isinstance(value, str) or (wanted is Decimal and isinstance(value, (int, float))):
            try:
                return read(str(value))
            except (ValueError, InvalidOperation):
                pass
        return _refuse(place, name, value, problems)
    if wanted is timedelta:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return timedelta(seconds=value)
        return _refuse(place, "a number of seconds", value, problems)
    if wanted in (set, frozenset, tuple):
        return wanted(value) if isinstance(value, list) else _refuse(place, "an array", value, problems)
    # A class of the user without a form in JSON takes the value as it is, or refuses it.
    if isinstance(value, wanted):
        return value
    problems.append(
        (place, f"`{wanted.__name__}` has no form in JSON: use a dataclass, a typed dict or a pydantic model")
    )
    return BROKEN


def read_datetime(text: str) -> datetime:
    # Before 3.11 `fromisoformat` knows no `Z`.
    return datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text)


_TEXT_CLASSES: Dict[Any, Tuple[str, Callable[[str], Any]]] = {
    datetime: ("a time (RFC 3339)", read_datetime),
    date: ("a date", date.fromisoformat),
    time: ("a time of day", time.fromisoformat),
    Decimal: ("a decimal number", Decimal),
    UUID: ("a UUID", UUID),
}


def type_hints(holder: Any) -> Dict[str, Any]:
    """The evaluated annotations of a function or class."""
    try:
        return typing.get_type_hints(holder, include_extras=False)
    except TypeError as error:
        name = getattr(holder, "__qualname__", holder)
        raise TypeError(
            f"the annotations of `{name}` cannot be read on this Python: {error}; write Optional[X] for X | None"
        ) from error
    except NameError as error:
        name = getattr(holder, "__qualname__", holder)
        raise TypeError(
            f"the annotations of `{name}` name something unknown: {error}; define it at the level of the module"
        ) from error


# Writing


def plain(value: Any) -> Any:
    """The form in JSON of a value that `json` does not know; the `default` of `json.dumps`."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (Decimal, UUID)):
        return str(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (bytes, bytearray)):
        raise ValueError("bytes have no form in JSON: encode them, for example as base64, or send a link")
    raise ValueError(f"a `{type(value).__name__}` has no form in JSON: return plain values or a dataclass")
