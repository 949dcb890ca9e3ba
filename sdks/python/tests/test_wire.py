"""Requests, errors and event streams without a server."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path

import pytest

from windlass import _wire, codes, errors
from windlass._sync.jobs import new_job

REPOSITORY = Path(__file__).resolve().parents[3]


def test_only_addresses_of_servers_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_SERVER", "http://example.org:9/base/")
    assert _wire.address(None).base == "http://example.org:9/base"
    assert _wire.address("https://[::1]").base == "https://[::1]:443"
    for bad in ["127.0.0.1:8070", "mailto:ann@example.org", "http://", "http://h:x", "http://h/?q=1"]:
        with pytest.raises(ValueError, match="is no address of a server"):
            _wire.address(bad)


def test_the_key_is_sent_as_bearer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_KEY", "secret")
    assert _wire.headers(None, "ann")["Authorization"] == "Bearer secret"
    assert _wire.headers("other", None)["Authorization"] == "Bearer other"
    assert "Authorization" not in _wire.headers("", None)
    with pytest.raises(ValueError, match="visible ASCII"):
        _wire.headers("a\nb", None)


def test_names_with_slashes_are_one_segment() -> None:
    sent = _wire.request(
        "GET", ["flows", "graph/a b"], query={"from": "1&2", "to": None, "x": True, "s": ["a", "b"]}
    )
    assert sent.path == "/api/v1/flows/graph%2Fa%20b?from=1%262&x=true&s=a%2Cb"
    assert sent.is_idempotent


def test_an_error_has_code_place_and_remedy() -> None:
    body = (
        b'{"code":"invalid_definition","detail":"two problems",'
        b'"errors":[{"path":"$.a","reason":"unknown","hint":"did you mean `b`?"}]}'
    )
    error = _wire.error_of(422, body)
    assert isinstance(error, codes.InvalidDefinition) and isinstance(error, errors.Invalid)
    assert str(error) == "two problems; $.a: unknown (did you mean `b`?) [invalid_definition]"
    assert error.remedy == "did you mean `b`?" and not error.is_temporary


def test_answers_of_other_programs_are_shown() -> None:
    error = _wire.error_of(502, b"<h1>bad gateway</h1>")
    assert str(error) == "the server answered 502: <h1>bad gateway</h1> [server_error]" and error.is_temporary
    plain = _wire.error_of(404, b'{"error":"no worker"}')
    assert isinstance(plain, errors.NotFound) and plain.detail == "no worker"
    assert _wire.error_of(429, b"{}", "3").retry_after == 3.0
    with pytest.raises(errors.UnreadableAnswer, match="is no JSON"):
        _wire.answer("/x", 200, b"<html>", None)


def test_every_documented_code_has_its_class() -> None:
    page = REPOSITORY / "docs" / "errors.md"
    if not page.exists():
        pytest.skip("the documents are not beside the package")
    documented = re.findall(r"^## (\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(documented) == sorted(codes.BY_CODE) and len(documented) > 70
    for code, kind in codes.BY_CODE.items():
        raised = kind("text", code=code, status=400)
        assert isinstance(raised, errors.ApiError) and raised.code == code and kind.__doc__


@pytest.mark.parametrize(
    ("error", "is_idempotent", "is_repeated"),
    [
        (errors.Unreachable("x"), False, True),
        (errors.Interrupted("x"), True, True),
        (errors.Interrupted("x"), False, False),
        (errors.TimedOut("x"), True, False),
        (_wire.error_of(429, b"{}"), False, True),
        (_wire.error_of(503, b'{"code":"draining"}'), False, True),
        (_wire.error_of(503, b'{"code":"store_unavailable"}'), False, False),
        (_wire.error_of(503, b'{"code":"store_unavailable"}'), True, True),
        (_wire.error_of(404, b"{}"), True, False),
    ],
)
def test_only_harmless_requests_are_repeated(
    error: errors.ApiError, is_idempotent: bool, is_repeated: bool
) -> None:
    request = _wire.Request("POST", "/", is_idempotent=is_idempotent)
    assert (_wire.pause_before_retry(request, error, 1) is not None) == is_repeated
    assert _wire.pause_before_retry(request, error, _wire.TRIES_MAX) is None


def test_pauses_grow_and_respect_the_server() -> None:
    backoff = _wire.Backoff()
    pauses = [backoff.pause() for _ in range(8)]
    assert pauses[0] == 0.1 and pauses == sorted(pauses) and pauses[-1] == 5.0
    backoff.reset()
    assert backoff.pause(_wire.error_of(429, b"{}", "3")) == 3.0
    assert backoff.pause(_wire.error_of(429, b"{}", "900")) == 5.0


def test_events_are_read_line_by_line() -> None:
    parser = _wire.EventParser()
    lines = [": comment", "", "event: entry", "id: 7", "data: {", "data:  1}", "", ""]
    events = [event for event in map(parser.line, lines) if event is not None]
    assert events == [_wire.ServerEvent("entry", "{\n 1}", "7")]


def test_jobs_take_durations_and_times() -> None:
    job = new_job(
        "n", 1, queue="q", run_at=datetime(2026, 1, 2, tzinfo=timezone.utc), retries=3, retry_delay=1.5
    )
    assert job == {
        "name": "n",
        "queue": "q",
        "payload": 1,
        "run_at": "2026-01-02T00:00:00+00:00",
        "retry": {"max": 3, "delay_ms": 1500},
    }
    with pytest.raises(ValueError, match="not both"):
        new_job("n", queue="q", run_at="x", delay=1)
