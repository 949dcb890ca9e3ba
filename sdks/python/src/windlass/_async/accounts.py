"""Accounts, their ledgers, and prices of services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncIterator, Optional, Union

from windlass._async.api import AsyncApi
from windlass._wire import present, request

if TYPE_CHECKING:
    from windlass.schema import AccountInfo, DepositResponse, LedgerEntry, PriceInfo


class AsyncAccountsApi(AsyncApi):
    """Opens and reads accounts; amounts are whole minor units."""

    async def open(self, account: str, name: Optional[str] = None) -> AccountInfo:
        """Opens an account, or finds the one that is there."""
        info: AccountInfo = await self._post(
            ["accounts"], {"id": account, **present(name=name)}, idempotent=True
        )
        return info

    async def list(self) -> AsyncIterator[AccountInfo]:
        """Accounts by id, all pages."""
        async for account in self._each(["accounts"]):
            yield account

    async def get(self, account: str) -> AccountInfo:
        """One account with its balance."""
        info: AccountInfo = await self._get("accounts", account)
        return info

    async def deposit(self, account: str, amount: int, key: str) -> DepositResponse:
        """Deposits an amount, once per key."""
        body = {"amount": amount, "key": key}
        made: DepositResponse = await self._post(["accounts", account, "deposit"], body, idempotent=True)
        return made

    async def ledger(
        self, account: str, *, run: Optional[str] = None, order: Optional[str] = None
    ) -> AsyncIterator[LedgerEntry]:
        """The rows of the ledger of an account."""
        async for entry in self._each(["accounts", account, "ledger"], run=run, order=order):
            yield entry


class AsyncPricesApi(AsyncApi):
    """Sets and reads prices of services."""

    async def set(
        self,
        service: str,
        unit_price: int,
        *,
        min_unit: Optional[int] = None,
        units: Union[str, int, None] = None,
        actual_units: Optional[str] = None,
    ) -> PriceInfo:
        """Sets the price of a service; it applies to later starts."""
        body: Any = {
            "unit_price": unit_price,
            **present(min_unit=min_unit, units=units, actual_units=actual_units),
        }
        price: PriceInfo = await self._client.request(request("PUT", ["prices", service], body=body))
        return price

    async def list(self) -> AsyncIterator[PriceInfo]:
        """Prices by service, all pages."""
        async for price in self._each(["prices"]):
            yield price

    async def get(self, service: str) -> PriceInfo:
        """The price of a service."""
        price: PriceInfo = await self._get("prices", service)
        return price

    async def delete(self, service: str) -> None:
        """Makes a service free for later starts."""
        await self._client.request(request("DELETE", ["prices", service]))
