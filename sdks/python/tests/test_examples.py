"""The examples of the package run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from windlass.flow import Flow
from windlass.testing import Server

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"


@pytest.fixture
def env(server: Server) -> Dict[str, str]:
    return {**os.environ, "WINDLASS_SERVER": server.url, "PYTHONPATH": str(ROOT / "src")}


@pytest.fixture
def begin(env: Dict[str, str]) -> Iterator[Any]:
    processes = []

    def start(*command: str) -> Any:
        processes.append(
            subprocess.Popen(
                [sys.executable, *command],
                cwd=EXAMPLES,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        )
        return processes[-1]

    yield start
    for process in processes:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def run(env: Dict[str, str], *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=EXAMPLES, env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_five_lines(begin: Any, env: Dict[str, str]) -> None:
    begin("-m", "windlass", "worker", "five_lines:app")
    assert run(env, "send.py") == "dog.png at 80\ncat.png at 40\n"


def test_a_flow_of_payments(begin: Any, env: Dict[str, str]) -> None:
    begin("-m", "windlass", "worker", "payments:app")
    output = run(env, "order_flow.py")
    assert "suspended" in output and re.search(r"version 1: .*is settled as", output)


def test_a_push_server(begin: Any, server: Server) -> None:
    process = begin("push_server.py")
    assert process.stdout.readline().startswith(b"registered as")
    flow = Flow("pushed")
    flow.result(loud=flow.call("shout", push=True, text="a"))
    flow.publish(server.client)
    assert server.client.start("pushed").result(20) == {"loud": "A"}


def test_the_program_of_celery(begin: Any, env: Dict[str, str]) -> None:
    begin("-m", "windlass", "worker", "from_celery:app")
    assert run(env, "from_celery.py") == "cat.png at 40\n{'told': 'ann has 2 pictures'}\n"


def lines_of(text: str) -> List[str]:
    return [line for line in text.splitlines() if line]


def test_the_guide_shows_the_program() -> None:
    guide = ROOT.parent.parent / "docs" / "from-celery.md"
    if not guide.exists():
        pytest.skip("the documents are not beside the package")
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    program = (EXAMPLES / "from_celery.py").read_text(encoding="utf-8")
    assert lines_of(program)[1:] == lines_of(blocks[1])


def test_tests_of_an_application(env: Dict[str, str]) -> None:
    # From another directory, so that the settings of this package play no part.
    assert "3 passed" in run(
        env, "-m", "pytest", "-c", os.devnull, "-p", "windlass.pytest_plugin", "test_payments.py"
    )


@pytest.mark.parametrize("name", ["python.md", "from-celery.md"])
def test_code_in_the_guides_is_python(name: str) -> None:
    guide = ROOT.parent.parent / "docs" / name
    if not guide.exists():
        pytest.skip("the documents are not beside the package")
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        compile(block, name, "exec")


def test_the_readme_shows_the_examples() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert len(blocks) >= 5
    for block in blocks:
        compile(block, "README.md", "exec", flags=0x2000)  # await at the level of the module
    first = (EXAMPLES / "five_lines.py").read_text(encoding="utf-8")
    assert lines_of(first)[1:] == lines_of(blocks[0])
