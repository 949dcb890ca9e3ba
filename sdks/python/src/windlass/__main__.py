"""The command `python -m windlass`."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from typing import TYPE_CHECKING, List, Optional

from windlass._version import __version__

if TYPE_CHECKING:
    from windlass.app import App

#: The exit code of a wrong command line or application.
USAGE = 2


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m windlass", description="Windlass for Python")
    top.add_argument("--version", action="version", version=f"windlass {__version__}")
    commands = top.add_subparsers(dest="command", required=True)
    worker = commands.add_parser(
        "worker",
        help="serve the services of an application",
        description="Serves the services of an application.",
    )
    worker.add_argument("app", help="the application: MODULE:NAME, for example jobs:app")
    worker.add_argument("--slots", type=positive, default=16, help="concurrent calls of a process (16)")
    worker.add_argument(
        "--reload", action="store_true", help="start again when a .py file below this directory changes"
    )
    worker.add_argument(
        "--drain", type=seconds, default=25.0, metavar="SECONDS", help="time of open calls at the end (25)"
    )
    worker.add_argument("--max-calls", type=positive, metavar="N", help="start a new process after N calls")
    worker.add_argument("--processes", type=positive, default=1, metavar="N", help="worker processes (1)")
    worker.add_argument(
        "--lease", type=seconds, default=30.0, metavar="SECONDS", help="length of a lease (30)"
    )
    worker.add_argument(
        "--id", metavar="ID", help="the id of the worker (the host, the process and a random part)"
    )
    worker.add_argument(
        "--server", metavar="URL", help="the server (WINDLASS_SERVER, or http://127.0.0.1:8070)"
    )
    worker.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    worker.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return top


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds")
    return number


def load(name: str) -> App:
    """The application that `MODULE:NAME` means, from this directory or the installed packages."""
    from windlass.app import App

    module_name, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise
        raise SystemExit(
            f"there is no module `{module_name}` here: write MODULE:NAME, for example jobs:app"
        ) from None
    found = getattr(module, attribute or "app", None)
    if not isinstance(found, App):
        applications = [key for key, value in vars(module).items() if isinstance(value, App)]
        hint = (
            f"did you mean {module_name}:{applications[0]}?"
            if applications
            else "create one with `app = App()`"
        )
        raise SystemExit(f"`{module_name}` has no application `{attribute or 'app'}`: {hint}")
    return found


def serve(options: argparse.Namespace) -> None:
    """Works in this process."""
    from windlass.worker import Worker

    app = load(options.app)
    if options.server:
        app.server = options.server
    try:
        worker = Worker(
            app,
            slots=options.slots,
            drain=options.drain,
            max_calls=options.max_calls,
            lease=options.lease,
            worker_id=options.id,
        )
    except ValueError as error:
        raise SystemExit(str(error)) from None
    worker.run(parent=os.getppid() if options.child else None)


def main(arguments: Optional[List[str]] = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser().parse_args(arguments)
    logging.basicConfig(
        level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"
    )
    needs_children = options.processes > 1 or options.reload or options.max_calls is not None
    if options.child or not needs_children:
        from windlass.worker import WorkerLost

        try:
            serve(options)
        except WorkerLost as error:
            print(error, file=sys.stderr)
            return 1
        return 0
    if options.id and options.processes > 1:
        parser().error("--id names one worker: several processes need ids of their own")
    from windlass.supervisor import Supervisor

    load(options.app)
    return Supervisor(arguments, options.processes, options.drain, options.reload).run()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SystemExit as end:
        # A text is a message for people, and the exit code that of a wrong command.
        if isinstance(end.code, str):
            print(f"error: {end.code}", file=sys.stderr)
            sys.exit(USAGE)
        raise
