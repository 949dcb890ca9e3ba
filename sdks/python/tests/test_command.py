"""The command `python -m windlass worker` as a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

from windlass import Client
from windlass.__main__ import main
from windlass.testing import Server

JOBS = """
import os, time
from windlass import App
app = App()

@app.service("{service}")
def work(seconds: float) -> dict:
    time.sleep(seconds)
    return {{"pid": os.getpid(), "says": "{word}"}}
"""


class Command:
    """A started command with its output."""

    def __init__(self, directory: Path, server: Server, arguments: List[str]) -> None:
        self.log = directory / "worker.log"
        env = {**os.environ, "WINDLASS_SERVER": server.url, "PYTHONPATH": os.pathsep.join(sys.path)}
        with open(self.log, "ab") as output:
            command = [sys.executable, "-m", "windlass", "worker", "jobs:app", *arguments]
            self.process = subprocess.Popen(command, cwd=directory, env=env, stdout=output, stderr=output)

    def end(self, number: int = signal.SIGTERM, seconds: float = 20.0) -> int:
        self.process.send_signal(number)
        return self.process.wait(seconds)


@pytest.fixture
def start(tmp_path: Path, server: Server, name: Callable[[str], str]) -> Iterator[Any]:
    commands: List[Command] = []
    service = name("work")

    def begin(*arguments: str, word: str = "first") -> Any:
        (tmp_path / "jobs.py").write_text(JOBS.format(service=service, word=word))
        commands.append(Command(tmp_path, server, list(arguments)))
        return commands[-1], service

    yield begin
    for command in commands:
        if command.process.poll() is None:
            command.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                command.process.wait(10)
            command.process.kill()
        print(command.log.read_text())


def send(client: Client, service: str, seconds: float = 0.0) -> Any:
    return client.jobs.create(service, seconds, queue=service)


def test_sigterm_lets_the_slow_call_end(start: Any, client: Client) -> None:
    command, service = start("--slots", "2")
    fast, slow = send(client, service), send(client, service, 1.5)
    assert fast.wait(20)["says"] == "first"
    until = time.monotonic() + 10
    while slow.get()["status"] != "running":
        assert time.monotonic() < until
        time.sleep(0.02)
    assert command.end() == 0
    assert slow.get()["status"] == "completed"


def test_a_killed_worker_loses_nothing(start: Any, client: Client) -> None:
    command, service = start("--lease", "1")
    slow = send(client, service, 2.0)
    until = time.monotonic() + 20
    while slow.get()["status"] != "running":
        assert time.monotonic() < until
        time.sleep(0.02)
    command.end(signal.SIGKILL)
    start("--lease", "1")
    # On a machine with too much to do, a lease of a second may end once more.
    assert slow.wait(20)["says"] == "first" and slow.get()["attempt"] >= 2


def test_processes_start_again_after_their_calls(start: Any, client: Client) -> None:
    command, service = start("--processes", "2", "--max-calls", "3", "--slots", "1", "--drain", "5")
    answers = [send(client, service, 0.02) for _ in range(12)]
    pids = [job.wait(30)["pid"] for job in answers]
    assert len(set(pids)) >= 4 and all(pids.count(pid) <= 3 for pid in pids)
    assert command.end() == 0


def test_workers_end_with_their_parent(start: Any, client: Client) -> None:
    command, service = start("--processes", "2", "--drain", "2")
    pid = send(client, service).wait(20)["pid"]
    command.end(signal.SIGKILL)
    until = time.monotonic() + 20
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < until:
            os.kill(pid, 0)
            time.sleep(0.1)


def test_a_changed_file_is_loaded(start: Any, client: Client, tmp_path: Path) -> None:
    command, service = start("--reload", "--drain", "2")
    assert send(client, service).wait(20)["says"] == "first"
    (tmp_path / "jobs.py").write_text(JOBS.format(service=service, word="second"))
    until = time.monotonic() + 20
    while send(client, service).wait(20)["says"] != "second":
        assert time.monotonic() < until
        time.sleep(0.1)
    assert command.end() == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuchmodule:app"], "there is no module `nosuchmodule` here"),
        (["empty_jobs:other"], "did you mean empty_jobs:app?"),
        (["empty_jobs:app"], "has no services"),
    ],
)
def test_mistakes_are_named(arguments: List[str], message: str, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "empty_jobs.py").write_text("from windlass import App\napp = App()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SystemExit) as caught:
        main(["worker", *arguments])
    assert message in str(caught.value)


def test_wrong_options_are_refused(capsys: Any) -> None:
    for arguments in (["--slots", "0"], ["--drain", "-1"], ["--processes", "2", "--id", "x"]):
        with pytest.raises(SystemExit):
            main(["worker", "jobs:app", *arguments])
    assert "ids of their own" in capsys.readouterr().err
