"""Handlers: functions of the user as services, with typed inputs and ends."""

from __future__ import annotations

import inspect
import logging
import sys
import traceback
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from windlass._wire import dump, millis
from windlass.call import Call, Suspended, _current, sendable
from windlass.convert import (
    BROKEN,
    ConversionError,
    Problem,
    describe,
    member,
    read_as,
    takes_objects,
    type_hints,
)
from windlass.errors import BadInput, Canceled, Fatal, Temporary

logger = logging.getLogger("windlass.worker")

#: Characters of the message of an error that are sent; the log has the whole.
MESSAGE_MAX = 4000

#: The end of an attempt, in the fields of `finish` without `id` and `lease`.
Outcome = Dict[str, Any]


class Handler:
    """A function that serves calls.

    A handler with one parameter gets the whole input as its value; if its type is no object, an object with the name of
    the parameter as its only field is unpacked. Several parameters are the fields of an input
    object; an input that is no object fills the first one if the others have defaults. A parameter with the
    annotation `Call`, at any place, gets the context.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"`{name}` is a generator: a handler returns its result")
        self.function, self.name = function, name
        self.is_async = inspect.iscoroutinefunction(function)
        signature = inspect.signature(function)
        self._hints: Optional[Dict[str, Any]] = None
        self._call_name = _call_parameter(signature, name)
        self.parameters: List[inspect.Parameter] = []
        self._takes_rest = False
        for parameter in signature.parameters.values():
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                raise TypeError(
                    f"`{name}` has *{parameter.name}: an input is one value or an object of fields"
                )
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self._takes_rest = True
            elif parameter.name != self._call_name:
                if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                    raise TypeError(
                        f"`{name}` has the positional parameter {parameter.name}: give it by name"
                    )
                self.parameters.append(parameter)

    @property
    def hints(self) -> Dict[str, Any]:
        """Types of the parameters; evaluated late, so that they may name classes that follow the handler."""
        if self._hints is None:
            self._hints = type_hints(self.function)
        return self._hints

    @property
    def is_whole(self) -> bool:
        """Whether the input as a whole is the value of the only parameter."""
        return len(self.parameters) == 1 and not self._takes_rest

    def payload(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """The input that calls the handler with these arguments; it is checked as the worker will check it."""
        names = [one.name for one in self.parameters]
        if len(args) > len(names):
            raise TypeError(f"`{self.name}` takes {len(names)} values, {len(args)} were given")
        given = dict(zip(names, args))
        for key, value in kwargs.items():
            if key in given:
                raise TypeError(f"`{self.name}` got two values for `{key}`")
            if key not in names and not self._takes_rest:
                raise TypeError(
                    f"`{self.name}` has no parameter `{key}`; it has {', '.join(names) or 'none'}"
                )
            given[key] = value
        if self.is_whole:
            only = self.parameters[0]
            value = given[only.name] if only.name in given else _default(only, self.name)
        else:
            value = given
        import json

        # The worker sees JSON, so this is judged: a mistake appears here, not in a dead letter.
        value = json.loads(dump(value))
        self.bind(value)
        return value

    def bind(self, input: Any) -> Dict[str, Any]:
        """The arguments of the handler for an input; raises `BadInput` with every wrong place."""
        problems: List[Problem] = []
        hints = self.hints
        if self.is_whole:
            only = self.parameters[0]
            if input is None and only.default is not inspect.Parameter.empty:
                return {}
            hint, place = hints.get(only.name, Any), "$"
            if isinstance(input, dict) and list(input) == [only.name] and not takes_objects(hint):
                # A flow gives fields by name; no object could be the value itself.
                input, place = input[only.name], member("$", only.name)
            arguments = {only.name: read_as(input, hint, place, problems)}
        else:
            arguments = self._bind_fields(input, hints, problems)
        if problems:
            raise BadInput(f"wrong input of `{self.name}`: {ConversionError(problems)}")
        return arguments

    def _bind_fields(self, input: Any, hints: Dict[str, Any], problems: List[Problem]) -> Dict[str, Any]:
        if not self.parameters and not self._takes_rest:
            return {}
        if input is None:
            input = {}
        names = [one.name for one in self.parameters]
        if not isinstance(input, dict):
            others = self.parameters[1:]
            if self.parameters and all(one.default is not inspect.Parameter.empty for one in others):
                return {names[0]: read_as(input, hints.get(names[0], Any), "$", problems)}
            problems.append(("$", f"expected an object with {', '.join(names)}, got {describe(input)}"))
            return {}
        arguments = {}
        for one in self.parameters:
            place = member("$", one.name)
            if one.name in input:
                arguments[one.name] = read_as(input[one.name], hints.get(one.name, Any), place, problems)
            elif one.default is inspect.Parameter.empty:
                problems.append((place, "is missing"))
        for key in input:
            if key in names:
                continue
            if self._takes_rest and key != self._call_name:
                arguments[key] = input[key]
            else:
                problems.append((member("$", str(key)), f"is unknown; known are {', '.join(names)}"))
        return {key: value for key, value in arguments.items() if value is not BROKEN}

    def _arguments(self, call: Call) -> Dict[str, Any]:
        arguments = self.bind(call.input)
        if self._call_name:
            arguments[self._call_name] = call
        return arguments

    def answer(self, call: Call) -> Outcome:
        """Performs a call of a blocking handler; an async one runs in a loop of its own."""
        token = _current.set(call)
        try:
            arguments = self._arguments(call)
            if self.is_async:
                import asyncio

                result = asyncio.run(self.function(**arguments))
            else:
                result = self.function(**arguments)
            if inspect.isawaitable(result):
                raise Fatal(f"`{self.name}` returned a coroutine: declare it with `async def`")
            return self._done(result, call)
        except BaseException as error:
            return self._ended_by(error, call)
        finally:
            _current.reset(token)

    async def answer_async(self, call: Call) -> Outcome:
        """Performs a call of an async handler."""
        token = _current.set(call)
        try:
            return self._done(await self.function(**self._arguments(call)), call)
        except BaseException as error:
            return self._ended_by(error, call)
        finally:
            _current.reset(token)

    def _done(self, result: Any, call: Call) -> Outcome:
        return _with_logs({"outcome": "done", "result": result}, call)

    def _ended_by(self, error: BaseException, call: Call) -> Outcome:
        if isinstance(error, Suspended):
            outcome: Outcome = {"outcome": "suspended", "memo": error.memo}
            if error.recheck_ms is not None:
                outcome["recheck_ms"] = error.recheck_ms
            return _with_logs(outcome, call)
        if isinstance(error, Canceled) or _is_cancel(error):
            reason = call.cancel_reason or "its handler stopped"
            return _with_logs({"outcome": "failed", "error": f"canceled: {reason}"}, call)
        return _with_logs(failure(error, self.name), call)


def _is_cancel(error: BaseException) -> bool:
    """Whether a task was canceled; a program without an event loop does not load `asyncio` for this question."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def failure(error: BaseException, name: str) -> Outcome:
    """The end of a call whose handler raised an error."""
    outcome: Outcome = {"outcome": "failed", "error": message_of(error)}
    if isinstance(error, Fatal):
        outcome["retryable"] = False
    elif isinstance(error, Temporary):
        outcome["temporary"] = True
        if error.retry_after is not None:
            outcome["retry_after_ms"] = millis(error.retry_after)
    else:
        outcome["log"] = _trace_of(error)
        logger.warning("`%s` failed: %s", name, outcome["error"])
    return outcome


def message_of(error: BaseException) -> str:
    """An error in one text, also if it refuses to be one."""
    try:
        text = str(error)
    except Exception:
        text = "its message cannot be read"
    if not isinstance(error, (Fatal, Temporary)) or not text:
        name = type(error).__name__
        text = f"{name}: {text}" if text else name
    return sendable(text[:MESSAGE_MAX])


def _trace_of(error: BaseException) -> str:
    try:
        lines = traceback.format_exception(type(error), error, error.__traceback__)
    except Exception:
        return "the trace cannot be read"
    return sendable("".join(lines))


def _with_logs(outcome: Outcome, call: Call) -> Outcome:
    lines = call.log.lines()
    if lines:
        outcome["logs"] = lines
    return outcome


def encoded(outcome: Outcome, name: str) -> bytes:
    """An end as JSON; a result without a form in JSON fails the call for good, with the reason."""
    try:
        return dump(outcome)
    except (ValueError, TypeError, RecursionError) as error:
        part = "memo" if outcome.get("outcome") == "suspended" else "result"
        reason = f"the {part} of `{name}` cannot be sent: {message_of(error)}"
        logger.error("%s", reason)
        return dump({"outcome": "failed", "error": reason, "retryable": False})


def _call_parameter(signature: inspect.Signature, name: str) -> Optional[str]:
    """The parameter that takes the context: one with the annotation `Call`, or one without an annotation named call."""
    found = []
    for parameter in signature.parameters.values():
        annotation: Union[str, Any] = parameter.annotation
        text = annotation if isinstance(annotation, str) else ""
        is_context = annotation is Call or text.strip("\"'").split(".")[-1] == "Call"
        if is_context or (parameter.name == "call" and annotation is inspect.Parameter.empty):
            found.append(parameter.name)
    if len(found) > 1:
        raise TypeError(f"`{name}` has several parameters for the call: {', '.join(found)}")
    return found[0] if found else None


def _default(parameter: inspect.Parameter, name: str) -> Any:
    if parameter.default is inspect.Parameter.empty:
        raise TypeError(f"`{name}` needs a value for `{parameter.name}`")
    return parameter.default
