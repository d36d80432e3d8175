"""Every command line that the documentation, the examples and the Makefile show is understood."""

import re
import shlex
from pathlib import Path

import pytest

from provision.command_line import read

ROOT = Path(__file__).parents[2]
PLACES = [
    *(ROOT / name for name in ("README.md", "Makefile", "CONTRIBUTING.md", "entrypoint.py")),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("examples/**/*.md"),
    *ROOT.glob("examples/**/*.sh"),
]
STARTED = re.compile(
    r"(?:docker run (?![^`#\n]*--entrypoint)[^`#\n]*\bIMAGE"
    r"|\bpython entrypoint\.py|\.venv/bin/aiinfra(?: \\\n)?|`aiinfra(?= )|BIN\)/aiinfra"
    r"|\"\$submit\" \"\$\{job\[@\]\}\""
    r"|^(?: {4})?(?:\./)?aiinfra(?= (?!(?:\[--env-file FILE\] )?ACTION)))"
    r"(?P<arguments>[^`#>\n\\;|]*)",
    re.MULTILINE,
)
OPTIONAL = str.maketrans("", "", "[]")
# No action: the answer is a script. Each shell's is in tests/unit/command_line.
SCRIPTS = ("wrapper", "completion ")
SHOWN = sorted(
    {
        # The Makefile's loop runs each of its actions.
        found["arguments"].replace('"$$action"', "Create").translate(OPTIONAL).strip()
        for place in PLACES
        for found in STARTED.finditer(place.read_text(encoding="utf-8"))
        if not found["arguments"].strip().startswith(SCRIPTS)
    }
)


def test_command_lines_are_found() -> None:
    assert {"Create", "Create --yes", "Create --rehearse", "--help"} < set(SHOWN)
    assert "--env-file examples/env.list --rehearse Create" in SHOWN


@pytest.mark.parametrize("arguments", SHOWN)
def test_a_shown_command_line_has_no_problem(arguments: str) -> None:
    assert read(shlex.split(arguments)).problems == ()


def test_cloud_shells_tutorial_has_the_machine_the_limits_and_the_apis_of_first_steps() -> None:
    pages = [
        (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
        for page in ("docs/tutorial/first-steps.md", "examples/cloud-shell/tutorial.md")
    ]
    apis, settings = (
        [set(found.split()) for page in pages for found in re.findall(pattern, page)]
        for pattern in (r"gcloud services enable .*", r"printf .*(?=>env\.list)")
    )
    ours, theirs = ({it for it in found if it.endswith(".googleapis.com")} for found in apis)

    assert ours == theirs
    assert len({frozenset(it for it in found if "PROJECT_ID" not in it) for found in settings}) == 1
    assert {"MAX_RUN_DURATION=4h", "MAX_HOURLY_COST=2"} < settings[1]
