"""The base of the nouns of a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncIterator, Dict, Optional, Sequence

from windlass._wire import request

if TYPE_CHECKING:
    from windlass._async.client import AsyncClient

#: Items of a page when all pages are read.
PAGE = 1000


class AsyncApi:
    """One noun of the server."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def _get(self, *segments: str, **query: Any) -> Any:
        return await self._client.request(request("GET", segments, query=query))

    async def _post(
        self,
        segments: Sequence[str],
        body: Any,
        *,
        query: Optional[Dict[str, Any]] = None,
        wait: float = 0.0,
        idempotent: bool = False,
    ) -> Any:
        sent = request("POST", segments, body=body, query=query, wait=wait, idempotent=idempotent)
        return await self._client.request(sent)

    async def _each(self, segments: Sequence[str], items: str = "items", **query: Any) -> AsyncIterator[Any]:
        """All items of a list, page by page; a page may be empty and still have a next one."""
        query.setdefault("limit", PAGE)
        while True:
            page = await self._client.request(request("GET", segments, query=query))
            for item in page[items]:
                yield item
            query["cursor"] = page.get("next")
            if not query["cursor"]:
                return
