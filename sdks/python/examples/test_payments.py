"""Tests of an application: handlers without a server, and both with a real one."""

from __future__ import annotations

import pytest
from payments import Charge, app, charge, settle

from windlass import Fatal
from windlass.testing import Server, Suspended, call


def test_nothing_to_charge() -> None:
    with pytest.raises(Fatal, match="0 cents"):
        call(charge, Charge("A", 0))


def test_settle_waits_for_the_bank() -> None:
    with pytest.raises(Suspended) as suspended:
        call(settle, "receipt", key="k")
    assert call(settle, "receipt", memo=suspended.value.memo) == "receipt is settled as k"


def test_a_charge_by_a_worker(windlass_server: Server) -> None:
    with windlass_server.worker(app):
        job = charge.options(retry_delay=0.1).send(Charge("A", 500))
        assert job.wait(30)["receipt"] == "receipt of A"
