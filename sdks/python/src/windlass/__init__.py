"""Workers, clients and flows for the Windlass server.

    from windlass import App

    app = App()

    @app.service
    def resize(file: str, width: int = 80) -> str:
        return f"{file} at {width}"

`python -m windlass worker jobs:app` serves it, and `resize.send("cat.png").wait(30)` calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass._version import __version__
from windlass.errors import (
    ApiError,
    BadInput,
    Canceled,
    Fatal,
    JobFailed,
    RunFailed,
    StillOpen,
    Temporary,
    WindlassError,
)

if TYPE_CHECKING:
    from windlass._async.client import AsyncClient
    from windlass._async.jobs import AsyncJob
    from windlass._async.runs import AsyncRun
    from windlass._sync.client import Client
    from windlass._sync.jobs import Job
    from windlass._sync.runs import Run
    from windlass.app import App, Service
    from windlass.call import Call
    from windlass.flow import Flow
    from windlass.worker import Worker

__all__ = [
    "ApiError",
    "App",
    "AsyncClient",
    "AsyncJob",
    "AsyncRun",
    "BadInput",
    "Call",
    "Canceled",
    "Client",
    "Fatal",
    "Flow",
    "Job",
    "JobFailed",
    "Run",
    "RunFailed",
    "Service",
    "StillOpen",
    "Temporary",
    "WindlassError",
    "Worker",
    "__version__",
]

#: Modules of the names that are loaded when they are used first: `asyncio` alone takes longer than all of the rest.
_MODULES = {
    "App": "windlass.app",
    "AsyncClient": "windlass._async.client",
    "AsyncJob": "windlass._async.jobs",
    "AsyncRun": "windlass._async.runs",
    "Call": "windlass.call",
    "Client": "windlass._sync.client",
    "Flow": "windlass.flow",
    "Job": "windlass._sync.jobs",
    "Run": "windlass._sync.runs",
    "Service": "windlass.app",
    "Worker": "windlass.worker",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module `windlass` has no attribute `{name}`")
    import importlib

    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value
