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
from typing import TYPE_CHECKING, Final

from provision.codes import Code, ExitCode
from provision.settings import spelling
from provision.settings.model import (
    BY_VARIABLES,
    Settings,
    audience_of,
    default_words_of,
    example_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_FIRST: Final = (
    *("project_id", "name_prefix", "zone", "vm_type", "instance_count", "orchestrator_type"),
    *("enable_spot", "enable_flex_start", "reservation_name", "max_run_duration"),
    *("max_hourly_cost", "max_cost", "gcs_mount_list", "startup_command"),
)
"""The settings that a beginner needs; the others follow by theme."""

_EVERY: Final = "settings"  # the topic that is all settings
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


def settings_table() -> str:
    """All settings as Markdown: a table for each section, then the other spellings."""
    lines: list[str] = []
    for heading, rows in _sections().items():
        lines += ["", f"### {heading}", "", "| name | default | what it does | example |"]
        lines += ["| --- | --- | --- | --- |"]
        for name, default, meaning, example in rows:
            cells = (f"`{name}`", default, meaning, f"`{example}`")
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    others = [
        *_others(),
        *(f"`{it}` is accepted, and changes nothing" for it in spelling.WITHOUT_EFFECT),
    ]
    lines += ["", "### Other spellings", "", *(f"* {it}" for it in others)]
    return "\n".join(lines).strip()


def env_list_help() -> str:
    """All settings as plain text, for `--help settings`."""
    lines = ["NAME=value lines without quotes; comments on lines of their own."]
    for heading, rows in _sections().items():
        lines.append(f"\n{heading}")
        for name, default, meaning, example in rows:
            kind = "mandatory" if default == "mandatory" else f"default: {default}"
            lines += [_filled(f"  {name}  ({kind})"), _filled(f"      {meaning}")]
            lines.append(f"      {name}={example}")
    lines += ["\nOther spellings", *(f"  {it}" for it in _others())]
    return "\n".join(lines).replace("`", "") + "\n"


TOPICS: Final = (*spelling.SETTINGS, *map(str, Code), _EVERY)
"""What `about` knows by name, beside exit codes."""


def about(topic: str) -> str | None:
    """What there is to say of a setting, or the code of a problem or an exit; None for nothing.

    A name that another tool has for a setting, or that was one, leads to what to write.
    """
    if topic.lower() == _EVERY:
        return env_list_help()
    if topic.lower() in set(Code):
        return _of_code(Code(topic.lower()))
    exit_code = next((it for it in ExitCode if str(int(it)) == topic), None)
    return _of_name(topic) if exit_code is None else _of_exit_code(exit_code)


def _of_name(topic: str) -> str | None:
    name = topic.upper().replace("-", "_")
    if spelling.is_known(name):
        return _of_setting(spelling.setting_of(name))
    if meant := spelling.meant_by(name):
        return f"{name} is {meant} here.\n\n{_of_setting(meant)}"
    gone = spelling.misnomer(name, "", "", ())
    if gone is not None and gone.code is Code.RETIRED_SETTING:
        return f"{_filled(f'{name} is no setting any more: {gone.why}; {gone.fix}')}\n"
    return None


def _of_setting(name: str) -> str:
    _, default, meaning, example = _row(spelling.SETTINGS[name])
    kind = "mandatory" if default == "mandatory" else f"default: {default}"
    lines = [_filled(f"{name}  ({kind})"), _filled(f"      {meaning}"), f"      {name}={example}"]
    others = [other for other, it in spelling.SPELLINGS.items() if it.setting == name]
    lines += [_filled(f"      Also: {', '.join(others)}")] if others else []
    return "\n".join([*lines, "", "All settings: --help settings"]).replace("`", "") + "\n"


def _of_code(code: Code) -> str:
    exits = ", ".join(str(int(it)) for it in sorted(code.exits))
    again = "may be tried again as it is" if code.is_retryable else "not without a change"
    how = f"exit code {exits}; {again}" if exits else "a note, which makes no run fail"
    lines = [f"{code}  ({how})", f"      {code.meaning}", f"      What to do: {code.remedy}"]
    return "\n".join(map(_filled, [*lines, "", "All codes: docs/reference/problems.md"])) + "\n"


def _of_exit_code(code: ExitCode) -> str:
    of_it = ", ".join(it for it in Code if code in it.exits)
    lines = [f"{int(code)}  {code.description}"]
    lines += [f"      Its problems: {of_it}"] if of_it else []
    return "\n".join(map(_filled, lines)) + "\n"


def exit_code_table() -> str:
    """The exit codes as a Markdown table."""
    rows = [f"| {int(code)} | {code.description} |" for code in ExitCode]
    return "\n".join(["| code | meaning |", "| --- | --- |", *rows])


def renew(text: str) -> str:
    """Replace what is between the markers of a document."""
    found = 0
    for name, made in (("settings", settings_table), ("exit-codes", exit_code_table)):
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        # A replacement's backslashes are escapes.
        whole = f"{begin}\n{made()}\n{end}".replace("\\", r"\\")
        text, count = re.subn(f"(?s){begin}.*?{end}", whole, text, count=1)
        found += count
    if not found:
        raise ValueError("the document has no <!-- settings:begin --> ... <!-- settings:end -->")
    return text


def _sections() -> dict[str, list[tuple[str, str, str, str]]]:
    """Heading -> its settings: those to begin with, then the others by theme."""
    found = {"To begin with": list(map(_row, _FIRST))}
    heading = ""
    for name in BY_VARIABLES:
        heading = _SECTIONS.get(name, heading)
        if name not in _FIRST:
            found.setdefault(heading, []).append(_row(name))
    return found


def _row(name: str) -> tuple[str, str, str, str]:
    about, audience = Settings.model_fields[name], audience_of(name)
    words = "mandatory" if about.is_required() else default_words_of(name)
    kind = f"({audience}) " if audience else ""
    return name.upper(), words, f"{kind}{about.description}", example_of(name)


def _others() -> list[str]:
    return [
        f"`{name}` for `{other.setting}`" + (f" ({other.words})" if other.words else "")
        for name, other in spelling.SPELLINGS.items()
    ]


def _filled(text: str) -> str:
    """Wrap a text for a terminal; all lines after the first are indented."""
    return textwrap.fill(
        text, 80, subsequent_indent="      ", break_long_words=False, break_on_hyphens=False
    )


def main(arguments: Sequence[str]) -> None:
    """Update the named documents in place."""
    for path in map(Path, arguments):
        path.write_text(renew(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
