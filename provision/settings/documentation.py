"""Texts that are generated from the code: tables of the reference, and the help about settings.

    python -m provision.settings.documentation FILE...

replaces what is between the markers `<!-- settings:begin -->` and `<!-- settings:end -->`, and
between those of `exit-codes`, in place.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import PydanticUndefined

from provision.codes import ExitCode
from provision.settings import derived, spelling
from provision.settings.choices import Orchestrator
from provision.settings.model import BY_VARIABLES, Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic.fields import FieldInfo

_FIRST: Final = (
    *("project_id", "name_prefix", "zone", "vm_type", "instance_count", "orchestrator_type"),
    *("enable_spot", "enable_flex_start", "reservation_name", "max_run_duration"),
    *("max_hourly_cost", "gcs_mount_list", "startup_command"),
)
"""The settings that a beginner needs; the others follow by theme."""

_WITHOUT_EFFECT: Final = ("minimize_terraform_logging",)
"""Settings that are accepted, and change nothing any more."""

_SECTIONS: Final = {
    "action": "The run",
    "orchestrator_type": "Machines",
    "image_name": "Image and disk",
    "capacity": "Capacity",
    "network_config": "Network and identity",
    "metadata": "On the VMs",
    "gke_version": "GKE",
    "job_options": "Jobs",
}
"""The first field of a section -> the section's heading."""

_WIDTH: Final = 80


def settings_table() -> str:
    """All settings as Markdown: a table for each section, then the other spellings."""
    lines: list[str] = []
    for heading, settings in _sections().items():
        lines += ["", f"### {heading}", "", "| name | default | what it does | example |"]
        lines += ["| --- | --- | --- | --- |"]
        for name, about in settings.items():
            cells = (f"`{name.upper()}`", _default(about), _meaning(about), f"`{_example(about)}`")
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines += ["", "### Other spellings", ""]
    lines += [f"* {_other(name)}" for name in spelling.SPELLINGS]
    lines += [f"* `{name.upper()}` is accepted, and changes nothing" for name in _WITHOUT_EFFECT]
    return "\n".join(lines).strip()


def env_list_help() -> str:
    """All settings as plain text, for `--help settings`."""
    paragraphs = ["NAME=value lines without quotes; comments on lines of their own."]
    for section, settings in _sections().items():
        paragraphs.append(f"\n{section}")
        for name, about in settings.items():
            default = _default(about)
            kind = default if about.is_required() else f"default: {default}"
            heading = _filled(f"  {name.upper()}  ({kind})")
            text = _filled(f"      {_meaning(about)}")
            example = f"      {name.upper()}={_example(about)}"
            paragraphs.append(f"{heading}\n{text}\n{example}".replace("`", ""))
    paragraphs.append("\nOther spellings")
    paragraphs += [f"  {_other(name)}".replace("`", "") for name in spelling.SPELLINGS]
    return "\n".join(paragraphs) + "\n"


def exit_code_table() -> str:
    """The exit codes as a Markdown table."""
    rows = [f"| {int(code)} | {code.description} |" for code in ExitCode]
    return "\n".join(["| code | meaning |", "| --- | --- |", *rows])


def renew(text: str) -> str:
    """Replace what is between the markers of a document.

    Raises:
        ValueError: It has no pair of markers.
    """
    found = False
    for name, made in (("settings", settings_table), ("exit-codes", exit_code_table)):
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if pattern.search(text):
            found = True
            before, after = pattern.split(text, maxsplit=1)
            text = f"{before}{begin}\n{made()}\n{end}{after}"
    if not found:
        raise ValueError("the document has no <!-- settings:begin --> ... <!-- settings:end -->")
    return text


def _sections() -> dict[str, dict[str, FieldInfo]]:
    """Heading -> its settings: those to begin with, then the others by theme."""
    fields = Settings.model_fields
    found = {"To begin with": {name: fields[name] for name in _FIRST}}
    heading = ""
    for name in BY_VARIABLES:
        heading = _SECTIONS.get(name, heading)
        if name not in (*_FIRST, *_WITHOUT_EFFECT):
            found.setdefault(heading, {})[name] = fields[name]
    return found


def _default(about: FieldInfo) -> str:
    if about.is_required():
        return "mandatory"
    words = _extra(about, "default_words")
    if words:
        return str(words)
    default = about.default_factory if about.default is PydanticUndefined else about.default
    return derived.words_of(default)


def _meaning(about: FieldInfo) -> str:
    only = _extra(about, "only_with")
    is_vms = Orchestrator.NONE in only and Orchestrator.GKE not in only
    kind = "VMs" if is_vms else ", ".join(only)
    return f"({kind}) {about.description}" if kind else str(about.description)


def _extra(about: FieldInfo, key: str) -> Any:
    extra = about.json_schema_extra
    return extra[key] if isinstance(extra, dict) else ""


def _example(about: FieldInfo) -> str:
    return str((about.examples or [""])[0])


def _other(name: str) -> str:
    other = spelling.SPELLINGS[name]
    words = f" ({other.words})" if other.words else ""
    return f"`{name}` for `{other.setting}`{words}"


def _filled(text: str) -> str:
    """Wrap a text for a terminal; all lines after the first are indented."""
    return textwrap.fill(
        text,
        width=_WIDTH,
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def main(arguments: Sequence[str]) -> None:
    """Update the named documents in place."""
    for argument in arguments:
        path = Path(argument)
        text = path.read_text(encoding="utf-8")
        path.write_text(renew(text), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
