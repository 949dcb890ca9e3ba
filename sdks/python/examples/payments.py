"""Typed inputs, failures of both kinds, a suspended call, and slots: python -m windlass worker payments:app"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import Any, Dict

from windlass import App, Call, Fatal, Temporary

app = App()


@dataclass
class Charge:
    order: str
    cents: int


@app.service("charge", slots=4)
async def charge(call: Call, what: Charge) -> Dict[str, Any]:
    """Charges a card. The key is the same for every attempt, so that the provider charges once."""
    if what.cents <= 0:
        raise Fatal(f"{what.cents} cents cannot be charged")  # no retry can help
    if call.attempt == 1 and random.random() < 0.3:
        raise Temporary("the provider is busy", retry_after=0.2)
    call.log("charged", cents=what.cents, attempt=call.attempt)
    await asyncio.sleep(0.05)
    return {"receipt": f"receipt of {what.order}", "key": call.key}


@app.service("settle")
def settle(call: Call, receipt: str) -> str:
    """Settles at a bank that takes its time: the call holds no worker meanwhile."""
    if call.memo is None:
        call.suspend({"bank_job": call.key}, recheck=0.3)
    return f"{receipt} is settled as {call.memo['bank_job']}"
