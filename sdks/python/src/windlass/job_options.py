"""Options of jobs, for type checkers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, TypedDict, Union


class JobOptions(TypedDict, total=False):
    """Options of `Service.options` and `client.jobs.create`; durations in seconds or as a timedelta."""

    queue: str
    priority: int
    run_at: Union[str, datetime]
    delay: Union[float, timedelta]
    retries: int
    retry_delay: Union[float, timedelta]
    backoff: Literal["fixed", "exponential"]
    timeout: Union[float, timedelta]
    dedup_key: str
    unique_for: Union[float, timedelta]
    limit_key: str
    account: str
