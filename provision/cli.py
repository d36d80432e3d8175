"""The entry point: from a command line to an action, and from errors to exit codes."""

from __future__ import annotations

import dataclasses
import functools
import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from provision import __version__, endpoints, signals
from provision.codes import Code, ExitCode
from provision.command_line import OF_A_JOB, CommandLine, Option, Options, read, usage
from provision.console import Console
from provision.context import Context
from provision.documents import plain
from provision.documents.events import Milestone, Output
from provision.errors import Interrupted, Problem, ProvisionError, SettingsError
from provision.notify import Sender
from provision.report import Report
from provision.settings.choices import KIND, Action
from provision.time.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping, Sequence

    from provision.intake import Loaded
    from provision.settings.model import Settings

_WAY_OUT = ("HTTPS_PROXY", "NO_PROXY", "CA_BUNDLE", "IMPERSONATE")
_IDENTITY = (
    "PROJECT_ID", "NAME_PREFIX", "ZONE", "REGION", "TERRAFORM_GCS_PATH", "PROTECT", *_WAY_OUT
)  # fmt: skip
"""The settings that identify, reach and protect a deployment; if only these matter, problems of
others are notes."""

_NO_ACTION = Problem(
    code=Code.INVALID_COMMAND_LINE,
    setting="ACTION",
    what="no action is given",
    fix=f"write one of {', '.join(Action)} behind aiinfra, or behind the image's name; --help has a"
    " line for each",
)
_NO_ENV_FILE = Problem(
    code=Code.MISSING_SETTING,
    setting="--env-file",
    what="is not given, and there is no env.list in this folder",
    why="settings are NAME=value lines of such a file, or variables of the environment",
    fix=r"printf '%s\n' PROJECT_ID=my-project NAME_PREFIX=my-cluster ZONE=us-central1-a"
    " VM_TYPE=g2-standard-8 MAX_RUN_DURATION=4h >env.list writes one, of one VM with one L4 for 4"
    " hours, with your project's ID in place of my-project; or --env-file FILE. Offers needs none,"
    " and says which machines there are",
)
_TFVARS = Path("terraform.tfvars")  # what the predecessor read in place of an env.list

_IMAGE = "AIINFRA_IMAGE"  # the environment of the container image has its name by it

_ENV_FILE = Path("env.list")
"""What is read where no file is named, and the environment describes no cluster."""
_MANDATORY = frozenset({"PROJECT_ID", "NAME_PREFIX", "ZONE"})

_ALLOCATIONS = 200_000  # between two looks for garbage; Python's own number is 700

_OF_A_BUCKET = ("PROJECT_ID", "REGION", "TERRAFORM_GCS_PATH", "ACTION", *_WAY_OUT)
"""The settings that matter where Status lists all deployments."""

_OF_A_JOB = (
    *(*_IDENTITY, "ACTION", KIND, "CAPACITY_TIMEOUT", "JOB_COMMAND", "JOB_ENV", "JOB_OPTIONS"),
    *(f"JOB_{it[2:].upper()}" for it in OF_A_JOB),
)
_OF_WHAT_EXISTS = {
    **dict.fromkeys((Action.DESTROY, Action.STATUS), _IDENTITY),
    Action.TEST: (*_IDENTITY, "TEST_NODES", "TEST_POOL", "TEST_CORDON"),
    **dict.fromkeys((Action.JOBS, Action.CANCEL), _IDENTITY),
    Action.SSH: (*_IDENTITY, "SSH_RANK", "SSH_FORWARD"),
    Action.FETCH: (*_IDENTITY, "FETCH_RANK"),
    Action.LOGS: (*_IDENTITY, "LOG_RANK", "LOG_TAIL"),
    Action.RUN: _OF_A_JOB,
    Action.OFFERS: ("ACTION", "MAX_RUN_DURATION"),
}
"""Actions that work on an existing deployment -> the settings that matter, whatever the others."""

_TOLD = frozenset(
    {Action.BAKE, Action.CREATE, Action.DESTROY, Action.LOGS, Action.RUN, Action.TEST}
)
"""Actions whose failure is told to whom NOTIFY names."""

_ASKING = (Action.CREATE, Action.PLAN, Action.VALIDATE, Action.BAKE)
"""Actions that ask Google what the settings ask for is available."""


def entrypoint() -> NoReturn:
    """Run the program and exit with its exit code."""
    # requests would put a password of ~/.netrc in the place of the access token.
    os.environ["NETRC"] = os.devnull
    # What is loaded stays until the end: to look through it for garbage takes a sixth of a start.
    gc.set_threshold(_ALLOCATIONS)
    code = main(sys.argv[1:], os.environ)
    gc.freeze()
    sys.exit(code)


def main(argv: Sequence[str], environ: MutableMapping[str, str]) -> int:
    """Run one action.

    `environ`: the environment, which is read only here; what the settings say of the way out is
    added to it.
    """
    line = read(argv)
    options = line.options
    console = Console(output=options.output, in_image=_IMAGE in environ)
    report = Report(action=options.action or "")
    code = ExitCode.DONE
    changes_found: bool | None = False
    try:
        with signals.interruptible():
            answer = usage.script(argv, environ.get(_IMAGE)) or _answer(line)
            if answer is not None:
                console.help(answer)
                return ExitCode.DONE
            if options.scenario is not None and not line.problems:
                _rehearse(options, argv, environ)
            changes_found = _act(line, environ, console, report)
    except (ProvisionError, Interrupted) as error:
        report.problems.extend(error.problems)
        code = error.exit_code
    except Exception as error:  # noqa: BLE001 - the boundary: anything else is a bug
        console.traceback()
        report.problems.append(_bug(error))
        code = ExitCode.UNEXPECTED
    console.hang_up()
    exit_code = _as_terraform(options, report, code, changes=changes_found)
    if report.problems:
        console.problems(report.problems, _heading(report, code, exit_code))
    if options.output is not Output.TEXT:
        console.document(plain(report.document(exit_code)))
    if console.unwritten:
        console.progress(f"The result could not be written: {console.unwritten}")
        return exit_code or int(ExitCode.UNEXPECTED)
    return exit_code


def _answer(line: CommandLine) -> str | None:
    """The help or the version, if the command line asks for it; None for an action."""
    options = line.options
    if Option.VERSION in options.given:
        return __version__
    wants_help = Option.HELP in options.given
    if not line.understood or (wants_help and line.problems):
        raise SettingsError.of(line.problems)
    if not wants_help:
        return None
    if options.topic:
        from provision.command_line import suggestions
        from provision.settings import documentation

        told = documentation.about(options.topic)
        if told is None:
            raise SettingsError.of([suggestions.of_topic(options.topic, documentation.TOPICS)])
        return told
    return usage.of_action(options.action) if options.action else usage.overview()


def _act(
    line: CommandLine, environ: MutableMapping[str, str], console: Console, report: Report
) -> bool | None:
    """Load the settings and run the action; returns what `_perform` does."""
    from provision import intake, outgoing

    options = line.options
    env_file = _env_file(options, environ)
    if env_file != options.env_file:
        console.progress(f"Settings are from ./{env_file}")
    is_offline = not options.given.keys().isdisjoint({Option.OFFLINE, Option.ROLE})
    # As they came: what the settings say of the way out is added to the environment meanwhile.
    given = functools.partial(intake.load, dict(environ), env_file, flags=options.settings)
    fetch = functools.cache(functools.partial(_file, environ, console, given, offline=is_offline))
    load = functools.partial(given, fetch=fetch)
    loaded = load()
    if not line.problems:
        report.action = str(options.action or loaded.effective.get("ACTION") or "")
    creates = Option.CREATE in options.given
    lists = report.action == Action.STATUS and loaded.effective.get("NAME_PREFIX") is None
    loaded = _narrowed(report.action, loaded, load, options, lists=lists)
    report.settings = loaded.effective
    console.veil.learn(loaded.private_texts, loaded.private_maps)
    # What a list guesses is not told where Google answers; the action tells it if Google can't.
    asks = creates or report.action in _ASKING
    waits = loaded.guesses if asks and not is_offline else ()
    left_out = [it for it in loaded.notes if lists and it.code is Code.MISSING_SETTING]
    left_out += waits if not loaded.problems else ()
    if report.action == Action.OFFERS:  # which takes what an env.list has, and needs none
        left_out = [it for it in loaded.notes if it.setting not in _OF_WHAT_EXISTS[Action.OFFERS]]
    notes = [note for note in loaded.notes if note not in left_out]
    report.notes.extend(notes)
    console.notes(notes)
    problems = _problems(line, loaded, report.action, environ, env_file)
    if loaded.settings is None or problems:
        raise SettingsError.of(problems)
    report.rehearsal = endpoints.is_rehearsal(environ) and not is_offline
    endpoints.require_safe(environ)
    certificates = outgoing.use(loaded.settings, environ)
    console.clock = Clock.of(environ)
    _tells(loaded.settings, console, report, offline=is_offline)
    run = Context(
        settings=loaded.settings,
        environ=environ,
        clock=console.clock,
        console=console,
        report=report,
        offline=is_offline,
        guesses=waits,
        state_writers=loaded.state_writers,
        role=Option.ROLE in options.given,
        agreed=Option.YES in options.given,
        replace_vms=Option.REPLACE_VMS in options.given,
        full=Option.FULL in options.given,
        lists=lists,
        watch=Option.WATCH in options.given,
        break_lock=options.given.get(Option.BREAK_LOCK, ""),
        copy=options.copy,
        create=creates,
        destroy_after=Option.DESTROY_AFTER in options.given or report.action == Action.BAKE,
        detach=Option.DETACH in options.given,
        follow=Option.FOLLOW in options.given,
        again=options.given.get(Option.AGAIN, ""),
        ray=Option.RAY in options.given,
        job=options.job,
        others=options.others,
        every=Option.ALL in options.given,
        command=options.command,
        config=options.given.get(Option.CONFIG),
        env=options.env,
        secrets=options.secrets,
        mounts=options.mounts,
        page=options.report,
        certificates=certificates,
    )
    if not run.offline and report.action not in {Action.DEBUG, Action.OFFERS}:
        # Before what asks Google is loaded: whoever waits should see soon that something goes on.
        where = f"{loaded.settings.project_id}, {loaded.settings.places.text}"
        which = f"{loaded.settings.name_prefix} in {where}"
        if lists:
            which = f"of all deployments in {loaded.settings.project_id}"
        console.progress(f"{report.action} {which}{outgoing.how(loaded.settings)}")
    return _performed(run)


def _problems(
    line: CommandLine,
    loaded: Loaded,
    action: str,
    environ: Mapping[str, str],
    env_file: Path | None,
) -> list[Problem]:
    problems = [*line.problems, *loaded.problems]
    if action in set(Action) and not line.problems:
        # The action may come from the settings, so its options can only be checked now.
        problems = [*line.options.misfits(Action(action)), *problems]
    elif not action and loaded.effective and not line.problems:
        problems = [_NO_ACTION, *problems]
    nothing = env_file is None and not (_MANDATORY & {it for it in environ if environ[it].strip()})
    if nothing and any(it.code is Code.MISSING_SETTING for it in loaded.problems):
        from provision import intake

        # One problem: what each line of the file means is said where there is a file.
        other = intake.load({}, _TFVARS).problems if _TFVARS.is_file() else ()
        rest = [it for it in problems if it.code is not Code.MISSING_SETTING]
        problems = [*(other or (_NO_ENV_FILE,)), *rest]
    return problems


def _narrowed(
    action: str, loaded: Loaded, load: Callable[..., Loaded], options: Options, *, lists: bool
) -> Loaded:
    """The settings as far as an action reads them; of Bake, those of the cluster that it makes."""
    if lists:
        return load(only=_OF_A_BUCKET)
    if action in _OF_WHAT_EXISTS and Option.CREATE not in options.given:
        return load(only=_OF_WHAT_EXISTS[Action(action)])
    if action == Action.BAKE and loaded.settings is not None:
        from provision.actions import bake

        instead, without = bake.settings(loaded.settings)
        return load(flags={**options.settings, **instead}, without=without)
    is_of_what_comes = Option.CREATE in options.given or action in {*_ASKING, Action.DEBUG}
    return _within(loaded, load, options) if is_of_what_comes else loaded


def _within(loaded: Loaded, load: Callable[..., Loaded], options: Options) -> Loaded:
    """The settings with the end of VMs that MAX_COST asks for, where they say none."""
    if loaded.settings is None or loaded.settings.max_cost is None:
        return loaded
    import datetime as dt

    from provision.kinds import registry
    from provision.lifecycle import pricing

    spec = registry.of(loaded.settings).spec(loaded.settings)
    found = pricing.ending(loaded.settings, spec, dt.datetime.now(tz=dt.UTC).date())
    if found is None:
        return loaded
    again = load(flags={**options.settings, "MAX_RUN_DURATION": found[0]})
    return dataclasses.replace(again, notes=(*again.notes, found[1]))


def _file(
    environ: MutableMapping[str, str],
    console: Console,
    load: Callable[..., Loaded],
    where: str,
    *,
    offline: bool,
) -> str:
    if not where.startswith("gs:"):
        return Path(where).read_text("utf-8")
    if offline:
        raise SettingsError("--offline reads no bucket", fix="leave --offline out")
    from provision import outgoing
    from provision.google import auth
    from provision.state import folder

    # The proxy may be in the way to the file that all else waits for.
    known = load(only=_WAY_OUT, without=("TEAM_DEFAULTS",)).settings
    if known is not None:
        outgoing.use(known, environ)
    return folder.read_object(where, auth.credentials(environ, console.progress), environ)


def _env_file(options: Options, environ: Mapping[str, str]) -> Path | None:
    """The file that is named; else ./env.list, where the environment does not say which cluster."""
    said = all(environ.get(name, "").strip() for name in _MANDATORY)
    return options.env_file or (None if said or not _ENV_FILE.is_file() else _ENV_FILE)


def _performed(run: Context) -> bool | None:
    """Run the action; whoever NOTIFY names hears how it failed, and the report has its stages."""
    try:
        return _perform(run)
    except BaseException as error:
        _tell(run, error)
        raise
    finally:
        run.report.timeline = run.stages.timeline or None
        run.stages.close()


def _perform(context: Context) -> bool | None:  # noqa: C901, PLR0912 - a row for each action
    """Run the action; returns whether a Plan found changes, or a Status something broken.

    None of a Status that could not look at everything, and found nothing broken.
    """
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
            from provision.actions.create import plan

            return plan(context)
        case Action.DEBUG:
            from provision.actions.debug import debug

            debug(context)
        case Action.STATUS:
            from provision.actions.status import show_status

            return show_status(context)
        case Action.TEST:
            from provision.actions.status import test

            test(context)
        case Action.RUN:
            from provision.actions.run import run

            run(context)
        case Action.JOBS | Action.LOGS | Action.CANCEL as action:
            from provision.actions import jobs

            jobs.act(context, action)
        case Action.FETCH:
            from provision.actions.fetch import fetch

            fetch(context)
        case Action.SSH:
            from provision.actions.ssh import ssh

            ssh(context)
        case Action.BAKE:
            from provision.actions.bake import bake

            bake(context)
        case Action.OFFERS:
            from provision.actions import offers

            offers.show(context)
    return False


def _rehearse(options: Options, argv: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Start again in an environment with the simulated cloud's endpoints.

    The rehearsal gets the settings as they are written, to have what they name in its cloud, and so
    what a job's own secrets and buckets are.
    """
    try:
        from rehearsal import errors, session
    except ImportError as error:
        raise SettingsError(
            "The rehearsal's packages are not installed",
            code=Code.REHEARSAL_UNAVAILABLE,
            why=str(error),
            fix="install it whole: pip install ., or make setup, in a clone",
        ) from error
    from provision.settings import reading

    rest = [argument for argument in argv if argument.partition("=")[0] != "--rehearse"]
    given = reading.read(environ, _env_file(options, environ), {}).given
    texts = {name.upper(): value.text for name, value in given.items()}
    for name, of in options.secrets.items():
        path = of if "/" in of else f"projects/{texts.get('PROJECT_ID')}/secrets/{of or name}"
        known = texts.get("SECRETS")
        texts["SECRETS"] = (f"{known}," if known else "") + f"{name}={path}"
    own = [it.removesuffix(":ro") for it in options.mounts]
    buckets = ",".join(filter(None, [texts.get("GCS_MOUNT_LIST"), *own]))
    texts |= {"GCS_MOUNT_LIST": buckets} if buckets else {}
    try:
        session.run(rest, environ, options.scenario or "", texts)
    except (errors.UnknownScenario, errors.ProviderNotUsable) as error:
        raise SettingsError(
            error.what, code=Code.REHEARSAL_UNAVAILABLE, why=error.why, fix=error.fix
        ) from error
    except errors.RehearsalError as error:
        raise ProvisionError(
            error.what, code=Code.REHEARSAL_UNAVAILABLE, why=error.why, fix=error.fix
        ) from error


# ------------------------------------------------------------------ the end


def _heading(report: Report, code: ExitCode, exit_code: int) -> str:
    """The line above the problems; what happened they say themselves."""
    count, did = len(report.problems), f"{report.action or 'The run'} failed"
    match code:
        case ExitCode.USAGE if report.problems[0].code is Code.DECLINED:
            did = f"{report.action} did nothing"
        case ExitCode.USAGE if count > 1:
            return f"{count} problems in the {code.description}:"
        case _ if any(problem.code is Code.JOB_FAILED for problem in report.problems):
            did = "The job has not succeeded"
        case ExitCode.CLUSTER if report.action == Action.DESTROY:
            did = "Destroy is not done: something of the cluster is left"
        case ExitCode.WAITING:
            did = f"{report.action} has stopped waiting; everything is kept"
        case ExitCode.INTERRUPTED | ExitCode.TERMINATED:
            did = f"{report.action or 'The run'} was stopped"
        case _:
            pass
    return f"{did} (exit code {exit_code}):"


def _tells(settings: Settings, console: Console, report: Report, *, offline: bool) -> None:
    def note(told: Problem) -> None:
        report.notes.append(told)
        console.notes([told])

    if settings.notify and not offline:
        sender = Sender(settings.notify, note)
        console.listener, console.hang_up = sender.tell, sender.close


def _tell(run: Context, error: BaseException) -> None:
    """Tell who does not look at the terminal that a run has failed, or waits no longer."""
    known = error.problems if isinstance(error, (ProvisionError, Interrupted)) else ()
    first = known[0] if known else _bug(error)
    # Who declined sits at the terminal; of a job it was told when it happened.
    if run.report.action not in _TOLD or first.code in {Code.DECLINED, Code.JOB_FAILED}:
        return
    is_kept = first.code is Code.WAITING
    did = "has stopped waiting; everything is kept" if is_kept else "failed"
    milestone = Milestone.WAITING if is_kept else Milestone.FAILED
    what = " ".join(filter(None, [first.setting, first.what]))
    run.reached(milestone, f"{run.report.action} {did}: {what}", first.fix)


def _bug(error: BaseException) -> Problem:
    return Problem(
        code=Code.UNEXPECTED,
        what=f"Unexpected: {type(error).__name__}: {error}",
        why="this is a bug of this program; the traceback above shows where",
        fix="please report it with the traceback; you can run Create or Destroy again",
    )


def _as_terraform(options: Options, report: Report, code: ExitCode, *, changes: bool | None) -> int:
    """The exit code, translated for `--detailed-exitcode`."""
    # Without an action, one of the two is meant that have this option.
    its = ("", Action.PLAN, Action.STATUS)
    if Option.DETAILED_EXITCODE not in options.given or report.action not in its:
        return int(code)
    if code != ExitCode.DONE or changes is None:
        return 1
    return 2 if changes else 0
