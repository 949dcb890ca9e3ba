"""An application: services with their handlers, and jobs for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, List, Optional, TypeVar, Union, cast, overload

from windlass.handler import Handler

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec, Unpack

    from windlass._async.client import AsyncClient
    from windlass._async.jobs import AsyncJob
    from windlass._sync.client import Client
    from windlass._sync.jobs import Job
    from windlass.call import Call
    from windlass.job_options import JobOptions

    P = ParamSpec("P")
else:
    P = TypeVar("P")

R = TypeVar("R")


class Service(Generic[P, R]):
    """A handler that stays the function it was, and can also be sent as a job."""

    def __init__(
        self, app: App, function: Callable[..., R], name: str, slots: Optional[int], queue: str
    ) -> None:
        self.app, self.name, self.slots, self.queue = app, name, slots, queue
        self.handler = Handler(function, name)
        self._options: Dict[str, Any] = {}
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self.__name__ = getattr(function, "__name__", name)
        self.__module__ = function.__module__

    def __repr__(self) -> str:
        return f"<Service {self.name}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return cast("R", self.handler.function(*args, **kwargs))

    def options(self, **options: Unpack[JobOptions]) -> Service[P, R]:
        """The same service, whose jobs have these options: `resize.options(delay=60).send("cat.png")`.

        Options are `queue`, `priority`, `run_at`, `delay`, `retries`, `retry_delay`, `backoff`, `timeout`,
        `dedup_key`, `unique_for`, `limit_key` and `account`.
        """
        other: Service[P, R] = Service(self.app, self.handler.function, self.name, self.slots, self.queue)
        other._options = {**self._options, **options}
        return other

    def send(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """Creates a job for this service; wrong arguments raise an error here."""
        return self.app.client.jobs.create(
            self.name, self.handler.payload(args, kwargs), **self._job_options()
        )

    async def send_async(self, *args: P.args, **kwargs: P.kwargs) -> AsyncJob:
        """The same as `send`, for async code."""
        payload = self.handler.payload(args, kwargs)
        return await self.app.async_client.jobs.create(self.name, payload, **self._job_options())

    def _job_options(self) -> Dict[str, Any]:
        return {"queue": self.queue, **self._options}


class App:
    """Services of one program.

    `server` defaults to WINDLASS_SERVER, then to http://127.0.0.1:8070, and `key` to WINDLASS_KEY.
    """

    def __init__(
        self, server: Optional[str] = None, key: Optional[str] = None, *, actor: Optional[str] = None
    ) -> None:
        self.server, self.key, self.actor = server, key, actor
        self.services: Dict[str, Service[Any, Any]] = {}
        #: Handlers of whole queues, whatever the names of their jobs.
        self.queues: Dict[str, Service[Any, Any]] = {}
        self._client: Optional[Client] = None
        self._async_client: Optional[AsyncClient] = None

    @property
    def client(self) -> Client:
        """A blocking client of the server."""
        if self._client is None:
            from windlass._sync.client import Client

            self._client = Client(self.server, self.key, actor=self.actor)
        return self._client

    @property
    def async_client(self) -> AsyncClient:
        """An async client of the server."""
        if self._async_client is None:
            from windlass._async.client import AsyncClient

            self._async_client = AsyncClient(self.server, self.key, actor=self.actor)
        return self._async_client

    @overload
    def service(self, name: Callable[Concatenate[Call, P], R]) -> Service[P, R]: ...
    @overload
    def service(self, name: Callable[P, R]) -> Service[P, R]: ...
    @overload
    def service(
        self, name: Optional[str] = None, *, slots: Optional[int] = None, queue: Optional[str] = None
    ) -> Callable[[Callable[P, R]], Service[P, R]]: ...

    def service(
        self,
        name: Union[str, Callable[..., Any], None] = None,
        *,
        slots: Optional[int] = None,
        queue: Optional[str] = None,
    ) -> Any:
        """Makes a function the handler of a service: `@app.service` or `@app.service("resize", slots=4)`.

        The name defaults to that of the function. `slots` are concurrent calls of this service in one worker process,
        instead of a share of the slots of the worker. `queue` is the queue of its jobs, by default the name.
        """
        if callable(name):
            return self._add(self.services, name, None, slots, queue)
        text = name

        def decorate(function: Callable[..., Any]) -> Service[Any, Any]:
            return self._add(self.services, function, text, slots, queue)

        return decorate

    def queue(self, name: str, *, slots: Optional[int] = None) -> Callable[[Callable[P, R]], Service[P, R]]:
        """Makes a function the handler of all jobs of a queue that no service of this application takes."""

        def decorate(function: Callable[P, R]) -> Service[P, R]:
            service: Service[P, R] = self._add(self.queues, function, name, slots, name)
            return service

        return decorate

    def _add(
        self,
        table: Dict[str, Service[Any, Any]],
        function: Callable[..., Any],
        name: Optional[str],
        slots: Optional[int],
        queue: Optional[str],
    ) -> Service[Any, Any]:
        name = name or getattr(function, "__name__", "")
        if not name or name == "<lambda>":
            raise ValueError("a handler without a name needs one: @app.service('name')")
        if name in table:
            raise ValueError(f"`{name}` has a handler already: {table[name].handler.function!r}")
        if slots is not None and slots < 1:
            raise ValueError(f"`{name}` needs at least one slot, not {slots}")
        service: Service[Any, Any] = Service(self, function, name, slots, queue or name)
        table[name] = service
        return service

    def handler_of(self, service: str, queue: Optional[str] = None) -> Optional[Handler]:
        """The handler of a job."""
        found = self.services.get(service) or self.queues.get(queue or "")
        return found.handler if found else None

    def run(self, **options: Any) -> None:
        """Works until SIGTERM or SIGINT; `options` are those of `Worker`."""
        from windlass.worker import Worker

        Worker(self, **options).run()

    @property
    def names(self) -> List[str]:
        """The names of the services."""
        return sorted(self.services)
