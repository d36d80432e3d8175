"""The report's page of a run: beside the state as logs are, and where `--report` says."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision import __version__
from provision.codes import Code
from provision.documents.connection import ClusterConnection, Connection, VmsConnection
from provision.documents.plan import Change
from provision.errors import Declined, Problem, ProvisionError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from provision.context import Context
    from provision.state.folder import StateFolder

_SHELLS: Final = 3
"""The number of VMs that the page says how to reach; connection.json has all of them."""


@dataclass
class Pages:
    """Where the page of a run goes, besides the file of `--report`."""

    folder: StateFolder | None = None  # the state folder; None as long as nothing was made


@contextlib.contextmanager
def written(context: Context) -> Iterator[Pages]:
    """Write the page at the end of what is within, even if that fails.

    A run that fails before it is known what the cluster consists of has none.
    """
    if context.page is not None:
        _require_writable(context.page)
    pages = Pages()
    try:
        yield pages
    except ProvisionError as error:
        if isinstance(error, Declined):
            pages.folder = None
        _write(context, pages, error.problems)
        raise
    _write(context, pages, ())


def _require_writable(file: Path) -> None:
    folder = file.absolute().parent
    if file.is_dir():
        what, why = f"--report {file} is a folder", "the report is one file"
    elif not folder.is_dir():
        what, why = f"--report {file} can't be written", f"there is no folder {folder}"
    elif not os.access(file if file.exists() else folder, os.W_OK):
        what, why = f"--report {file} can't be written", "you may not write there"
    else:
        return
    raise SettingsError(
        what, why=why, fix="--report report.html; in a container, below a folder that is mounted"
    )


def _write(context: Context, pages: Pages, problems: Sequence[Problem]) -> None:
    text = _page(context, problems)
    if text is None:
        return
    here = _on_disk(context, text)
    kept = _beside_the_state(context, pages, text, problems)
    # Who has it here finds the other one, should it be needed, with the log.
    places = [f"in {here}", "beside the log" if kept else ""] if here else [f"in {kept}"]
    # Who has asked for no file does not wait for one.
    if here or (kept and (context.full or problems)):
        context.console.progress(f"The report is {' and '.join(filter(None, places))}")


def _on_disk(context: Context, text: str) -> str:
    """Write it where `--report` says; returns where that is, "" for nowhere."""
    if context.page is None:
        return ""
    try:
        context.page.write_text(text, encoding="utf-8")
    except OSError as error:
        _note(context, f"the report could not be written to {context.page}", str(error))
        return ""
    return str(context.page)


def _beside_the_state(
    context: Context, pages: Pages, text: str, problems: Sequence[Problem]
) -> str:
    """Keep it with the logs; returns where that is, "" for nowhere."""
    # The page of the Create that made what is there stays the last one.
    idle = context.report.plan is not None and context.report.plan.change is Change.NOTHING
    if pages.folder is None or (idle and not problems):
        return ""
    action = context.report.action.lower()
    name = f"logs/{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%S.%fZ}-{action}.html"
    try:
        pages.folder.write(name, text, "text/html; charset=utf-8")
    except ProvisionError as error:
        _note(context, "the report could not be kept", error.problems[0].what)
        return ""
    return f"{pages.folder.location.url}/{name}"


def _note(context: Context, what: str, why: str) -> None:
    """Without its report a cluster is as good as with it."""
    context.note([Problem(what=what, why=why, code=Code.NOT_KEPT)])


def _page(context: Context, problems: Sequence[Problem]) -> str | None:
    """The page of the run; None as long as it is not known what the cluster consists of."""
    # Only a run that gets so far needs it.
    from provision.screens.page import Contents, page  # noqa: PLC0415 - as just said

    report = context.report
    if report.topology is None:
        return None
    contents = Contents(
        action=report.action,
        version=__version__,
        made=dt.datetime.now(dt.UTC),
        topology=report.topology,
        rehearsal=report.rehearsal,
        cost=report.cost,
        plan=report.plan,
        timeline=context.stages.timeline,
        seconds=context.seconds,
        problems=problems,
        notes=report.notes,
        connection=_connection(report.connection),
        settings=report.settings or {},
    )
    return page(contents, context.console.veil)


def _connection(found: Connection | None) -> dict[str, str]:
    if found is None:
        return {}
    lines: list[tuple[str, str | None]] = []
    match found:
        case ClusterConnection():
            lines += [("kubectl", found.get_credentials)]
        case VmsConnection(vms=vms):
            lines += [(f"shell on {vm.name}", vm.ssh) for vm in vms[:_SHELLS]]
            if len(vms) > _SHELLS:
                lines += [(f"all {len(vms)} machines", f"{found.state}/connection.json")]
            lines += [
                (f"notebook of {vm.name}", vm.notebook or vm.notebook_tunnel) for vm in vms[:1]
            ]
        case _:
            # A kind of another type fails in its first test, and shows nothing that is half true.
            raise NotImplementedError(type(found))
    lines += [
        ("dashboard", found.dashboard),
        ("state", found.state),
        ("label of the bill", found.billing_label),
    ]
    return {what: how for what, how in lines if how}
