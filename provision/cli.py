"""The command line: arguments to an action, and the one place where errors become exit codes."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from provision import __version__, intake, signals
from provision.console import Console
from provision.context import Context
from provision.errors import ExitCode, Interrupted, Problem, ProvisionError, SettingsError
from provision.files import archive
from provision.report import Report
from provision.settings.choices import Action
from provision.time.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_IDENTITY = ("PROJECT_ID", "NAME_PREFIX", "ZONE", "REGION", "TERRAFORM_GCS_PATH")
"""What is needed to find a deployment; problems of other settings are only worth a note then."""

_NO_ACTION = Problem(
    setting="ACTION",
    what="no action is given",
    fix=f"write one of {', '.join(Action)} behind the image's name",
)

_OF_WHAT_EXISTS = (Action.DESTROY, Action.STATUS, Action.TEST)
"""Actions that are about what is there, whatever the other settings say."""


def entrypoint() -> NoReturn:
    """Run the program and leave with its exit code."""
    sys.exit(main(sys.argv[1:], os.environ))


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run one action.

    Args:
        argv: The command line without the program's name.
        environ: The environment; read here and nowhere deeper.

    Returns:
        The exit code; `errors.ExitCode` has their meanings.
    """
    console = Console(as_json=_wants_json(argv))
    report = Report()
    code = ExitCode.DONE
    changes_found = False
    with _interruptible():
        try:
            options = _parser().parse_args(_spelled_out(argv))
            if options.help:
                console.help(_help())
                return ExitCode.DONE
            if options.rehearse is not None:
                _rehearse(options.rehearse, argv, environ)
            changes_found = _act(options, environ, console, report)
        except ProvisionError as error:
            report.problems.extend(error.problems)
            code = error.exit_code
        except Exception as error:  # noqa: BLE001 - the boundary: whatever is left is a bug
            console.traceback()
            report.problems.append(_bug(error))
            code = ExitCode.UNEXPECTED
    if report.problems:
        console.problems(report.problems, _heading(report, code))
    exit_code = _as_terraform(argv, report, code, changes=changes_found)
    console.document(report.document(exit_code))
    if console.unwritten:
        console.progress(f"The result could not be written: {console.unwritten}")
        return exit_code or int(ExitCode.UNEXPECTED)
    return exit_code


def _act(
    options: argparse.Namespace, environ: Mapping[str, str], console: Console, report: Report
) -> bool:
    """Load the settings and run the action; whether a Plan found changes."""
    flags = {"ACTION": options.action} if options.action else {}
    env_file = Path(options.env_file) if options.env_file else None
    loaded = intake.load(environ, env_file, flags=flags)
    report.action = str(loaded.effective.get("ACTION") or "")
    if report.action in _OF_WHAT_EXISTS:
        loaded = intake.load(environ, env_file, flags=flags, only=_IDENTITY)
    report.settings = loaded.effective
    report.notes.extend(loaded.notes)
    console.notes(loaded.notes)
    if loaded.settings is None or not report.action:
        raise SettingsError.of([*([] if report.action else [_NO_ACTION]), *loaded.problems])
    run = Context(
        settings=loaded.settings,
        environ=environ,
        clock=Clock.of(environ),
        console=console,
        report=report,
        offline=options.offline,
        agreed=options.yes,
        copy=Path(options.copy) if options.copy else None,
    )
    return _perform(run)


def _perform(context: Context) -> bool:
    """Run the action; whether a Plan found changes."""
    match Action(context.report.action):
        case Action.CREATE:
            from provision.actions.create import create

            create(context)
        case Action.DESTROY:
            from provision.actions.destroy import destroy

            destroy(context)
        case Action.VALIDATE:
            from provision.actions.validate import validate

            validate(context)
        case Action.PLAN:
            from provision.actions.plan import plan

            return plan(context)
        case Action.DEBUG:
            from provision.actions.debug import debug

            debug(context)
        case Action.STATUS:
            from provision.actions.status import show_status

            show_status(context)
        case Action.TEST:
            from provision.actions.test import test

            test(context)
    return False


# ------------------------------------------------------------------ arguments


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are ours."""

    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"The command line: {message}", fix="--help says what there is")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="docker run -it --env-file env.list IMAGE",
        description="Turn an env.list into a GPU cluster on Google Cloud, and take it down again.",
        add_help=False,
        allow_abbrev=False,
    )
    names = ", ".join(Action)
    parser.add_argument("action", nargs="?", help=f"one of {names}; any case")
    parser.add_argument("--env-file", metavar="FILE", help="read settings from this file too")
    parser.add_argument(
        "--output",
        choices=("text", "json"),
        default="text",
        help="json: one document on stdout, also on failure",
    )
    parser.add_argument(
        "--rehearse",
        metavar="SCENARIO",
        help="do it all against a simulated Google Cloud; --rehearse alone, or --rehearse=NAME",
    )
    parser.add_argument("--offline", action="store_true", help="Validate without asking Google")
    parser.add_argument(
        "--copy",
        metavar="FOLDER",
        help=f"copy this folder to every VM; without, {archive.COPY_FOLDER} if it is there",
    )
    parser.add_argument(
        "--yes", action="store_true", help="agree beforehand to replacing, removing, shrinking"
    )
    parser.add_argument(
        "--detailed-exitcode",
        action="store_true",
        help="Plan, as Terraform has it: 0 no changes, 2 changes, 1 any error",
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("-h", "--help", action="store_true", help="show this")
    return parser


def _spelled_out(argv: Sequence[str]) -> list[str]:
    """`--rehearse` alone gets its empty value, so that it can't swallow the action behind it."""
    return ["--rehearse=" if argument == "--rehearse" else argument for argument in argv]


def _wants_json(argv: Sequence[str]) -> bool:
    """Whether the output is JSON; asked before parsing, as parsing can fail."""
    return any(
        argument == "--output=json" or (argument == "--output" and value == "json")
        for argument, value in itertools.pairwise([*argv, ""])
    )


def _help() -> str:
    from provision.settings import documentation

    return f"{_parser().format_help()}\n{documentation.env_list_help()}"


def _rehearse(scenario: str, argv: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Start over in an environment that leads to the simulated cloud."""
    try:
        from rehearsal import errors, session
    except ImportError as error:
        raise SettingsError(
            "The rehearsal's packages are not installed",
            why=str(error),
            fix="pip install -r requirements/rehearsal.txt",
        ) from error
    rest = [argument for argument in argv if argument.partition("=")[0] != "--rehearse"]
    try:
        session.run(rest, environ, scenario)
    except errors.UnknownScenario as error:
        raise SettingsError(error.what, why=error.why, fix=error.fix) from error
    except errors.RehearsalError as error:
        raise ProvisionError(error.what, why=error.why, fix=error.fix) from error


# ------------------------------------------------------------------ the end


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """The first signal that asks to stop raises `Interrupted`, wherever the program is.

    No other does: a second one would cut short what the first has begun to put in order, and after
    the action all that is left is to say how it ended. As PID 1 of a container a process without a
    handler would not even notice SIGTERM.
    """

    def interrupt(signum: int, _frame: object) -> NoReturn:
        _handle_signals(signal.SIG_IGN)
        raise Interrupted(
            signum,
            "Interrupted; nothing that was made is lost",
            fix="run Create again to go on, or Destroy to remove what was made",
        )

    _handle_signals(interrupt)
    try:
        yield
    finally:
        _handle_signals(signal.SIG_IGN)


def _handle_signals(handler: Callable[[int, object], NoReturn] | signal.Handlers) -> None:
    for number in signals.heeded():
        signal.signal(number, handler)


def _heading(report: Report, code: ExitCode) -> str:
    count = len(report.problems)
    if code is ExitCode.USAGE and count > 1:
        return f"{count} problems in the settings:"
    return f"{report.action or 'The run'} failed: {code.description} (exit code {int(code)})."


def _bug(error: Exception) -> Problem:
    return Problem(
        what=f"Unexpected: {type(error).__name__}: {error}",
        why="this is a bug of this program; the traceback above says where",
        fix="please report it with the traceback; Create or Destroy may be run again",
    )


def _as_terraform(argv: Sequence[str], report: Report, code: ExitCode, *, changes: bool) -> int:
    """The exit code, translated for `Plan --detailed-exitcode`."""
    if "--detailed-exitcode" not in argv or report.action != Action.PLAN:
        return int(code)
    if code != ExitCode.DONE:
        return 1
    return 2 if changes else 0
