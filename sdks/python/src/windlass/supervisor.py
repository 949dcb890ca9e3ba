"""The parent of worker processes: it starts them, starts them again, and ends them together."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

logger = logging.getLogger("windlass.supervisor")

#: Seconds between two looks at the files and the processes.
LOOK = 0.5
#: Seconds that a process must live; one that ends sooner by itself is started again after a pause.
SHORT_LIFE = 5.0
#: The longest pause before a process that keeps ending is started again.
PAUSE_MAX = 10.0
#: Seconds after the drain until a process is killed.
KILL_AFTER = 5.0
#: Directories that have no sources of the application.
SKIPPED = frozenset(["__pycache__", "node_modules", "site-packages", "venv"])


class Child:
    """One worker process, and its restarts."""

    def __init__(self, command: List[str]) -> None:
        self._command = command
        self._n_short_lives = 0
        self._began = 0.0
        self._due: Optional[float] = 0.0
        self.process: Optional[subprocess.Popen[bytes]] = None

    def look(self) -> None:
        """Starts the process if it is due; notices its end."""
        if self.process is not None and self.process.poll() is not None:
            code = self.process.returncode
            lived = time.monotonic() - self._began
            self.process = None
            self._n_short_lives = self._n_short_lives + 1 if lived < SHORT_LIFE and code != 0 else 0
            pause = 0.0 if self._n_short_lives == 0 else min(0.5 * 2**self._n_short_lives, PAUSE_MAX)
            logger.info("a worker process ended with code %s after %.1f s", code, lived)
            self._due = time.monotonic() + pause
        if self.process is None and self._due is not None and time.monotonic() >= self._due:
            self._began = time.monotonic()
            # In a session of its own: Ctrl-C of a terminal would be a second signal, which ends a worker at once.
            self.process = subprocess.Popen(self._command, start_new_session=True)

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def end(self) -> int:
        """Kills the process if it lives on; returns its exit code."""
        self._due = None
        if self.process is None:
            return 0
        if self.is_alive:
            logger.warning("worker process %d does not end: it is killed", self.process.pid)
            self.process.kill()
        code = self.process.wait()
        self.process = None
        return code

    def again(self) -> None:
        """Lets the process start at the next look."""
        self._n_short_lives, self._due = 0, 0.0


class Supervisor:
    """Keeps a number of worker processes alive until a signal."""

    def __init__(self, arguments: List[str], processes: int, drain: float, reload: bool) -> None:
        command = [sys.executable, "-m", "windlass", *arguments, "--child"]
        self._children = [Child(command) for _ in range(processes)]
        self._drain, self._reload = drain, reload
        #: Signals that came. Their handler only counts: the code that it interrupts may hold any lock.
        self._n_signals = 0

    def run(self) -> int:
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        files = snapshot(Path.cwd()) if self._reload else {}
        while not self._n_signals:
            for child in self._children:
                child.look()
            self._sleep(LOOK)
            if self._reload and not self._n_signals:
                now = snapshot(Path.cwd())
                if now != files:
                    logger.info("%s changed: the worker starts again", changed(files, now))
                    files = now
                    self._end_all()
                    for child in self._children:
                        child.again()
        codes = self._end_all()
        # A process that had not begun to work when the signal came ends by it.
        return 0 if all(code in (0, -signal.SIGTERM) for code in codes) else 1

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._n_signals and time.monotonic() < until:
            time.sleep(0.05)

    def _end_all(self) -> List[int]:
        for child in self._children:
            child.signal(signal.SIGTERM)
        until = time.monotonic() + self._drain + KILL_AFTER
        while any(child.is_alive for child in self._children) and time.monotonic() < until:
            if self._n_signals > 1:
                # The first signal let them drain; another one ends them at once.
                for child in self._children:
                    child.signal(signal.SIGTERM)
                until = min(until, time.monotonic() + KILL_AFTER)
                self._n_signals = 1
            time.sleep(0.02)
        return [child.end() for child in self._children]

    def _on_signal(self, _number: int, _frame: Any) -> None:
        self._n_signals += 1


def snapshot(root: Path) -> Dict[str, float]:
    """The times of the sources below a directory."""
    times: Dict[str, float] = {}
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if name not in SKIPPED and not name.startswith(".")]
        for name in files:
            if name.endswith(".py"):
                path = os.path.join(directory, name)
                try:
                    times[path] = os.stat(path).st_mtime
                except OSError:
                    # It was removed meanwhile.
                    continue
    return times


def changed(before: Dict[str, float], now: Dict[str, float]) -> str:
    names = sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
    return os.path.relpath(names[0]) if names else "nothing"
