"""Fixtures: one server for tests that do not harm it, and the applications of the tests."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from windlass import App, Client
from windlass.testing import Server

ROOT = Path(__file__).resolve().parent.parent
pytest_plugins = ["pytester"]
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server that all tests share; each uses services and flows of its own names."""
    with Server() as started:
        yield started


@pytest.fixture
def client(server: Server) -> Client:
    return server.client


@pytest.fixture
def name() -> Callable[[str], str]:
    """A name that no other test uses."""
    return lambda stem: f"{stem}-{next(_numbers)}"


@pytest.fixture
def app(server: Server) -> Any:
    return App(server.url)
