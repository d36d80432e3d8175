"""The simulated cloud for anybody's use: `aiinfra-rehearsal serve|show|forget|story`."""

import argparse
import os
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from rehearsal import clock, inventory, page, session, story
from rehearsal.cloud import faults, real_programs, scenarios
from rehearsal.errors import RehearsalError, UnknownFault

_USAGE = 2  # the exit code of a command line that is no use, as argparse has it
_LOOK = 1.0  # seconds between two looks at the clock


def _faults_help() -> str:
    """The grammar of a fault, in a line, and what there is."""
    effects = "; ".join(f"{effect}: {words}" for effect, words in faults.EFFECTS.items())
    return (
        "what goes wrong between client and cloud: 'METHODS PATH: EFFECT [NUMBER] [after=N]"
        " [times=N] [for=SECONDS] [chance=P]', as 'DELETE **: delay 3' or 'POST|PUT"
        f" /upload/storage/**/default.tfstate: forget times=1'. {effects}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="aiinfra-rehearsal", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, help="what keeps the cloud; default: the rehearsal's"
    )
    actions = parser.add_subparsers(dest="action", required=True)
    serve = actions.add_parser(
        "serve", help="serve until Ctrl-C; prints what a shell needs to use the cloud"
    )
    serve.add_argument("--port", type=int, default=0, help="default: any that is free")
    serve.add_argument("--scenario", default="", help="what to practise, as flaky,slow")
    serve.add_argument(
        "--faults", nargs="+", action="extend", default=[], metavar="FAULT", help=_faults_help()
    )
    serve.add_argument("--seed", type=int, default=0, help="for the chance of faults; default: 0")
    actions.add_parser("show", help="print what exists, one line a resource")
    actions.add_parser("forget", help="delete the cloud and all that is in it")
    told = actions.add_parser("story", help="make a cluster, use it and remove it, and see")
    told.add_argument(
        "--report", type=Path, default=Path("rehearsal.html"), help="default: %(default)s"
    )
    told.add_argument("--picture", type=Path, help="an SVG of the terminal, too")
    return parser.parse_args()


def _serve(folder: Path, arguments: argparse.Namespace) -> None:
    from rehearsal.cloud.server import PAGE, Cloud  # noqa: PLC0415 - not needed to show

    scenario = arguments.scenario
    session.check_scenario(scenario)
    wrong = _faults(arguments)
    provider = session.wanted_provider(folder, os.environ, scenario)
    ended = threading.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: ended.set())
    own = {session.FOLDER_VARIABLE: str(folder)}
    with Cloud(
        database=folder / session.DATABASE,
        environ=session.with_clock(os.environ),
        scenario=scenario,
        port=arguments.port,
    ) as cloud:
        cloud.faults = wrong
        cloud.page = page.written()
        wanted = session.environment(cloud.base_url, folder, {**os.environ, **own}, provider)
        warning = session.not_as_google(scenario)
        known = f"# What it knows and refuses: {cloud.base_url}{PAGE}\n"
        about = [known, f"# {warning}" if warning else ""]
        sys.stdout.writelines([*about, *_shell_lines(wanted)])
        sys.stdout.flush()
        while not ended.wait(_LOOK):
            # Several may use this cloud: no question to one of them makes time stand still.
            clock.go(folder / clock.FILE)


def _faults(arguments: argparse.Namespace) -> faults.Faults:
    """The faults that the command line names; UnknownFault if one of them is none."""
    try:
        return faults.Faults(arguments.faults, seed=arguments.seed)
    except ValueError as error:
        raise UnknownFault(
            "These faults can't be rehearsed", why=str(error), fix="see serve --help"
        ) from error


def _shell_lines(wanted: dict[str, str]) -> Iterator[str]:
    for name in sorted(os.environ.keys() - wanted.keys()):
        yield f"unset {name}\n"
    for name, value in sorted(wanted.items()):
        if os.environ.get(name) != value:
            yield f"export {name}={shlex.quote(value)}\n"


def _show(folder: Path) -> None:
    from rehearsal.cloud.store import Database  # noqa: PLC0415 - not needed to forget

    found: list[str] = []
    warning = ""
    if (folder / session.DATABASE).exists():
        with Database(folder / session.DATABASE).transaction() as store:
            found = list(inventory.resources(store, clock.now(folder / clock.FILE)))
            rehearsed = ",".join(name for name, _ in store.list(scenarios.REHEARSED))
            warning = session.not_as_google(rehearsed)
    if not found:
        found = ["The simulated cloud is empty."]
    elif all(map(inventory.stays, found)):
        found = [_kept(found)]
    sys.stdout.writelines([warning, *(f"{line}\n" for line in found)])


def _kept(lines: list[str]) -> str:
    """What is there where nothing is but what a Destroy leaves, in one line."""
    named = [line.split()[1] for line in lines if line.startswith("storage/buckets ")]
    logs = sum("/logs/" in line for line in lines)
    counted = f" with {logs} logs and reports" if logs else ""
    said = "The simulated cloud is empty, but for the bucket that keeps states"
    return f"{said}: {', '.join(named)}{counted}."


def _forget(folder: Path) -> None:
    for path in (*folder.glob(f"{session.DATABASE}*"), folder / session.LOG, folder / clock.FILE):
        path.unlink(missing_ok=True)
    shutil.rmtree(folder / real_programs.PLACE, ignore_errors=True)


def main() -> None:
    """Do what the command line asks for."""
    arguments = _arguments()
    if arguments.action == "story":
        sys.exit(story.main(arguments.report, arguments.picture))
    folder = session.folder(
        {**os.environ, session.FOLDER_VARIABLE: str(arguments.folder.absolute())}
        if arguments.folder
        else os.environ
    )
    try:
        match arguments.action:
            case "serve":
                _serve(folder, arguments)
            case "show":
                _show(folder)
            case "forget":
                _forget(folder)
            case unknown:
                raise AssertionError(unknown)
    except RehearsalError as error:
        sys.stderr.write(f"{error.what}: {error.why}{error.fix and '; '}{error.fix}\n")
        sys.exit(_USAGE)


if __name__ == "__main__":
    main()
