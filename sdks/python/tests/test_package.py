"""The package itself: generated files, import time, old Pythons, no dependencies."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from windlass.testing import Server, binary

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))


def test_generated_files_are_up_to_date() -> None:
    if not (ROOT.parent.parent / "docs" / "errors.md").exists():
        pytest.skip("the sources of the generated files are not beside the package")
    env = {**os.environ, "WINDLASS": binary()}
    check = subprocess.run(
        [ROOT / "scripts" / "generate", "--check"], capture_output=True, text=True, env=env
    )
    assert check.returncode == 0, check.stderr


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_sources_are_of_python_3_9(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    ast.parse(text, feature_version=(3, 9))
    assert "from __future__ import annotations" in text or len(text.splitlines()) < 5


def test_imports_are_of_the_standard_library() -> None:
    if sys.version_info < (3, 10):
        pytest.skip("the names of the standard library came with 3.10")
    known = {*sys.stdlib_module_names, "windlass"}
    # Type checkers bring the one, tests the other.
    known |= {"typing_extensions", "pytest"}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [node.module or ""]
            assert all(name.split(".")[0] in known for name in names), f"{path}: {names}"


def test_programs_that_only_send_load_no_event_loop() -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    light = "import sys, windlass; sys.exit('asyncio' in sys.modules or 'http.client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", light], env=env).returncode == 0
    sender = "import sys; from windlass import App, Client; App().service('x')(lambda: 1)"
    sender += "\nsys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", sender], env=env).returncode == 0


def test_the_fixture_of_pytest_starts_a_server(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "def test_it(windlass_server):\n    assert windlass_server.client.health()['status'] == 'ok'"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    pytester._monkeypatch.setenv("PYTHONPATH", env["PYTHONPATH"])
    pytester.runpytest_subprocess("-p", "windlass.pytest_plugin").assert_outcomes(passed=1)


def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(Exception, match="did not start"):
        Server("--no-such-flag").start()
