"""Serve the simulated cloud: `python -m rehearsal.cloud --database FILE`.

Prints one line of JSON, {"base_url": ..., "presumed": ...}, when it is ready, and serves until
SIGTERM or SIGINT, or until the other end of the pipe is closed that --exit-with-fd names: a parent
that is killed leaves no server behind.
"""

import argparse
import json
import os
import signal
import sys
import threading
from pathlib import Path

from rehearsal.cloud import scenarios
from rehearsal.cloud.server import Cloud
from rehearsal.presumption import named, things


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m rehearsal.cloud")
    parser.add_argument("--database", type=Path, required=True, help="the cloud's memory")
    parser.add_argument("--port", type=int, default=0, help="default: any that is free")
    parser.add_argument("--scenario", default="", help=f"some of {','.join(scenarios.SCENARIOS)}")
    parser.add_argument(
        "--presume", type=json.loads, default={}, help="settings whose things are to be there: JSON"
    )
    parser.add_argument("--log", type=Path, help="record every exchange there, as JSON lines")
    parser.add_argument("--exit-with-fd", type=int, help="a pipe whose end is the server's end")
    return parser.parse_args()


def _end_with(descriptor: int, ended: threading.Event) -> None:
    while os.read(descriptor, 1024):
        """What is written to the pipe means nothing."""
    ended.set()


def main() -> None:
    """Serve until told to end."""
    arguments = _arguments()
    ended = threading.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: ended.set())
    if arguments.exit_with_fd is not None:
        watch = threading.Thread(
            target=_end_with, args=(arguments.exit_with_fd, ended), daemon=True
        )
        watch.start()
    try:
        cloud = Cloud(
            database=arguments.database,
            scenario=arguments.scenario,
            port=arguments.port,
            log=arguments.log,
        )
    except ValueError as error:
        sys.exit(str(error))
    missing = scenarios.MISSING in scenarios.parse(arguments.scenario)
    presumed = things.make(cloud.arrange, named.of(arguments.presume), missing=missing)
    with cloud:
        ready = {"base_url": cloud.base_url, "presumed": presumed.sentence}
        sys.stdout.write(json.dumps(ready) + "\n")
        sys.stdout.flush()
        ended.wait()


if __name__ == "__main__":
    main()
