"""Workers and the services that they offer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncIterator, Dict, List, Optional

from windlass._async.api import AsyncApi
from windlass._wire import Request, dump, present, request

if TYPE_CHECKING:
    from windlass.schema import ServiceInfo, WorkerInfo


class AsyncWorkersApi(AsyncApi):
    """Registers, lists and drains workers."""

    async def register(
        self,
        worker: str,
        *,
        services: List[str],
        queues: Optional[List[str]] = None,
        url: Optional[str] = None,
        capacity: Optional[int] = None,
        secret: Optional[str] = None,
    ) -> None:
        """Registers a worker, or again; with a `url` the server calls it, without one it claims.

        The server signs its calls under the `secret`, `whsec_` and base64.
        """
        body = {
            "id": worker,
            "type": "http" if url else "async",
            "services": services,
            **present(queues=queues or None, url=url, capacity=capacity, secret=secret),
        }
        await self._client.request(Request("POST", "/api/workers/register", dump(body), is_idempotent=True))

    async def heartbeat(self, worker: str, *, url: Optional[str] = None, load: int = 0) -> bool:
        """Tells that a worker lives; true means that the server drains it, `NotFound` that it must register."""
        body = {"id": worker, "load": load, **present(url=url)}
        answer: Dict[str, Any] = await self._client.request(
            Request("POST", "/api/workers/heartbeat", dump(body))
        )
        return bool(answer.get("draining"))

    async def list(self, *, status: Optional[str] = None) -> AsyncIterator[WorkerInfo]:
        """Workers by id, all pages."""
        async for worker in self._each(["workers"], "workers", status=status):
            yield worker

    async def drain(self, worker: str) -> WorkerInfo:
        """Gives a worker no more work; it stops when its calls have ended."""
        info: WorkerInfo = await self._post(["workers", worker, "drain"], {}, idempotent=True)
        return info

    async def undrain(self, worker: str) -> WorkerInfo:
        """Ends the drain of a worker."""
        info: WorkerInfo = await self._post(["workers", worker, "undrain"], {}, idempotent=True)
        return info


class AsyncServicesApi(AsyncApi):
    """Reads and sets the settings of services."""

    async def list(self) -> AsyncIterator[ServiceInfo]:
        """Services by name, all pages, with demand and supply."""
        async for service in self._each(["services"]):
            yield service

    async def get(self, service: str) -> ServiceInfo:
        """One service."""
        info: ServiceInfo = await self._get("services", service)
        return info

    async def set(self, service: str, **settings: Any) -> ServiceInfo:
        """Replaces the settings of a service, such as `recheck_ms` and `timeout_ms`."""
        info: ServiceInfo = await self._client.request(request("PUT", ["services", service], body=settings))
        return info
