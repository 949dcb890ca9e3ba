"""The fixtures of pytest: `windlass_server` is a server on an empty store, for one test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator

import pytest

if TYPE_CHECKING:
    from windlass.testing import Server


@pytest.fixture
def windlass_server() -> Iterator[Server]:
    """A server on an empty store; the environment variable WINDLASS names its binary."""
    from windlass.testing import Server

    with Server() as server:
        yield server
