"""Flows: publish, read, compare, validate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncIterator, Dict, Mapping, Optional, Union

from windlass._async.api import AsyncApi
from windlass._wire import present

if TYPE_CHECKING:
    from windlass.flow import Flow
    from windlass.schema import (
        ExpandResponse,
        FlowDetail,
        FlowDiff,
        FlowInfo,
        PublishResponse,
        Validation,
        Version,
        VersionSummary,
    )

    #: A builder, an object, or a text in YAML or JSON.
    Definition = Union[Flow, Mapping[str, Any], str]


def body_of(definition: Definition) -> Dict[str, Any]:
    """The field that carries a definition."""
    if isinstance(definition, str):
        return {"yaml": definition}
    return {"definition": definition.definition() if hasattr(definition, "definition") else definition}


class AsyncFlowsApi(AsyncApi):
    """Publishes, reads and compares flows."""

    async def create(
        self,
        name: str,
        definition: Definition,
        *,
        description: Optional[str] = None,
        labels: Optional[Mapping[str, str]] = None,
        is_template: Optional[bool] = None,
    ) -> PublishResponse:
        """Publishes version 1 of a new flow."""
        more = present(description=description, labels=labels, is_template=is_template)
        published: PublishResponse = await self._post(
            ["flows"], {"name": name, **body_of(definition), **more}
        )
        return published

    async def publish(
        self, flow: str, definition: Definition, *, note: Optional[str] = None
    ) -> PublishResponse:
        """Publishes the next version of a flow."""
        body = {**body_of(definition), **present(note=note)}
        published: PublishResponse = await self._post(["flows", flow, "versions"], body)
        return published

    async def get(self, flow: str) -> FlowDetail:
        """A flow with its newest published version."""
        detail: FlowDetail = await self._get("flows", flow)
        return detail

    async def list(
        self, *, q: Optional[str] = None, label: Optional[str] = None, is_template: Optional[bool] = None
    ) -> AsyncIterator[FlowInfo]:
        """Flows, newest first, all pages."""
        async for flow in self._each(["flows"], q=q, label=label, is_template=is_template):
            yield flow

    async def versions(self, flow: str) -> AsyncIterator[VersionSummary]:
        """The versions of a flow, newest first."""
        async for version in self._each(["flows", flow, "versions"], limit=None):
            yield version

    async def version(self, flow: str, version: int) -> Version:
        """One version with its definition."""
        detail: Version = await self._get("flows", flow, "versions", str(version))
        return detail

    async def diff(
        self, flow: str, from_version: Optional[int] = None, to_version: Optional[int] = None
    ) -> FlowDiff:
        """The changes between two versions; default: the last two."""
        changes: FlowDiff = await self._get("flows", flow, "diff", **{"from": from_version, "to": to_version})
        return changes

    async def validate(self, definition: Definition) -> Validation:
        """Every problem of a definition."""
        validation: Validation = await self._post(["flows", "validate"], body_of(definition), idempotent=True)
        return validation

    async def expand(self, definition: Definition) -> ExpandResponse:
        """The expansion of a definition in the steps form."""
        expanded: ExpandResponse = await self._post(["flows", "expand"], body_of(definition), idempotent=True)
        return expanded

    async def instantiate(
        self,
        template: str,
        name: str,
        variables: Optional[Mapping[str, Any]] = None,
        *,
        description: Optional[str] = None,
        version: Optional[int] = None,
        labels: Optional[Mapping[str, str]] = None,
    ) -> PublishResponse:
        """Publishes a flow from a template, with these defaults of its variables."""
        more = present(variables=variables, description=description, version=version, labels=labels)
        published: PublishResponse = await self._post(
            ["flows", template, "instantiate"], {"name": name, **more}
        )
        return published
