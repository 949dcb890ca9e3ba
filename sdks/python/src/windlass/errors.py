"""Errors of the package: answers of the server, failures on the way to it, and the ends that handlers choose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = [
    "ApiError",
    "BadInput",
    "Canceled",
    "Conflict",
    "Fatal",
    "Forbidden",
    "Interrupted",
    "Invalid",
    "JobFailed",
    "NotFound",
    "RunFailed",
    "ServerError",
    "StillOpen",
    "Temporary",
    "TimedOut",
    "TooBusy",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
    "UnreadableAnswer",
    "WindlassError",
]


class WindlassError(Exception):
    """The base of all errors of this package."""


class ApiError(WindlassError):
    """A request that failed. `code` is one stable word: that of the server, or of this package if none answered.

    `errors` has every wrong place as `{path, reason, hint}`; `retry_after` is the pause that the server asks for, in
    seconds. Each code of the server has a subclass in `windlass.codes`.
    """

    def __init__(
        self,
        detail: str,
        *,
        code: str,
        status: Optional[int] = None,
        errors: Optional[List[Dict[str, Any]]] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code
        self.status = status
        self.errors = errors or []
        self.retry_after = retry_after

    @property
    def remedy(self) -> Optional[str]:
        """The hints of the server, joined; `None` if it gave none."""
        return "; ".join(error["hint"] for error in self.errors if error.get("hint")) or None

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in (408, 425, 429) or (self.status or 0) >= 500

    def __str__(self) -> str:
        parts = [self.detail]
        for error in self.errors:
            reason, path = error.get("reason") or "", error.get("path") or ""
            hint = f" ({error['hint']})" if error.get("hint") else ""
            # The detail of a single error is that error.
            if reason not in self.detail:
                parts.append(f"; {path}: {reason}{hint}")
            else:
                parts.append(hint)
        return f"{''.join(parts)} [{self.code}]"


class Unauthorized(ApiError):
    """The API key is missing or wrong: give `key=`, or set WINDLASS_KEY."""


class Forbidden(ApiError):
    """The server does not allow this request."""


class NotFound(ApiError):
    """The path names a thing that does not exist."""


class Conflict(ApiError):
    """The state at the server forbids the request."""


class Invalid(ApiError):
    """The request is wrong; `errors` names every place."""


class TooBusy(ApiError):
    """Too much work waits: repeat the request after `retry_after` seconds."""


class Unavailable(ApiError):
    """The server drains, or its store is away."""


class ServerError(ApiError):
    """The server, or a proxy in front of it, failed."""


class Unreachable(ApiError):
    """No connection to the server came about, so the request had no effect."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, code="unreachable")

    is_temporary = True


class TimedOut(ApiError):
    """No answer came in time; whether the request had an effect is unknown."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, code="timed_out")

    is_temporary = True


class Interrupted(ApiError):
    """The connection broke before the answer; whether the request had an effect is unknown."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, code="interrupted")

    is_temporary = True


class UnreadableAnswer(ApiError):
    """The answer is not of the contract: another program may listen at this address."""

    def __init__(self, detail: str, status: Optional[int] = None) -> None:
        super().__init__(detail, code="unreadable_answer", status=status)


class RunFailed(WindlassError):
    """A run ended as failed or canceled; `run` has everything that the server knows of it."""

    def __init__(self, run: Dict[str, Any]) -> None:
        error = run.get("error") or {}
        node = f" at node `{error['node']}`" if error.get("node") else ""
        super().__init__(
            f"{run.get('id')} is {run.get('status')}{node}: {error.get('message') or 'no error given'}"
        )
        self.run = run


class JobFailed(WindlassError):
    """A job ended as failed or canceled; `job` has everything that the server knows of it."""

    def __init__(self, job: Dict[str, Any]) -> None:
        error = job.get("error") or {}
        super().__init__(
            f"{job.get('id')} is {job.get('status')}: {error.get('message') or 'no error given'}"
        )
        self.job = job


class StillOpen(WindlassError, TimeoutError):
    """A run or job had not ended when the time of the wait was over."""


class Fatal(WindlassError):
    """Raised by a handler: the call fails, and no retry can help."""


class Temporary(WindlassError):
    """Raised by a handler: a fault that may be gone a moment later, such as a busy provider.

    `retry_after` is the shortest pause before the next attempt, in seconds.
    """

    def __init__(self, message: str, *, retry_after: Union[float, timedelta, None] = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Canceled(WindlassError):
    """Raised by `call.check()`: the answer is not needed any more."""


class BadInput(Fatal):
    """The input of a call does not fit the handler; the message names every place."""
