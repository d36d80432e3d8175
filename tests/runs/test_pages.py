"""The commands of the pages are run in a rehearsal, and what the pages show is what they say."""

import difflib
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from dotenv import dotenv_values

from provision.catalogue import prices
from provision.cost import estimate
from provision.intake import load
from provision.kinds import registry
from rehearsal.inventory import stays
from tests.image.terminal import typed
from tests.runs import cluster_side
from tests.runs.conftest import MANDATORY, PROGRAM, Rehearsal, Rehearse, rehearsed
from tests.waiting import until

DOCS: Final = Path(__file__).parents[2] / "docs"
_COMMANDS: Final = re.compile(
    r"(?:\./|\.venv/bin/)?(?:aiinfra|docker|gcloud|git|kubectl|make|export|printf|for|nvidia-smi|python3)\b"
)
_OURS: Final = re.compile(r"(?:\./|\.venv/bin/)?aiinfra (?!ACTION)(?P<arguments>[^#|]*)")
_SETTING: Final = re.compile(r"(?:#.*|[A-Z_]+=.*)")
_JOB: Final = re.compile(r"gcloud storage cat gs://\S+/jobs/(\S+) \| kubectl create --filename -")
_QUESTION: Final = re.compile(r"(.*(?:\[Y/n\]|to confirm:)) (\w+)")
_COLOURS: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# What differs from run to run.
_DIFFERS: Final = (
    (re.compile(r"\b\d+:\d\d\b"), "<time>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z"), "<date>"),
    (re.compile(r"\b\d{8}T[\d.]+Z"), "<date>"),
    (re.compile(r"\b(?:[\d.]+ (?:h|min|s)\b ?)+"), "<span> "),
    (re.compile(r"so far \$[\d.]+"), "so far <sum>"),
    (re.compile(r"-vm-[a-z0-9]{4}\b"), "-vm-<id>"),
    (re.compile(r"\b(?=[a-z]*\d)[a-z0-9]{5}\b(?=$|,|:| )"), "<id>"),
    (re.compile(r"aiinfra-cluster=\w+"), "aiinfra-cluster=<id>"),
    (re.compile(r"\s+"), " "),
)
OTHERS: Final = {
    "boot-image.md": "runs on a VM",
    "credentials.md": "shows no command of ours",
    "from-ai-infra-cluster-provisioning.md": "is read by tests/unit/test_from_the_predecessor.py",
    "from-other-tools.md": "is run by test_from_other_tools.py",
    "gke-jobs.md": "is kubectl's",
    "gke-trouble.md": "shows no command of ours",
    "gpu-network.md": "runs on a VM",
    "image.md": "is run by tests/image",
    "install.md": "is run by tests/image/test_installed.py",
    "launchers.md": "is run by tests/startup",
    "multi-node.md": "is run by tests/startup",
    "notebooks.md": "is gcloud's",
    "recipes.md": "is run below, all of it",
    "release.md": "is for who publishes",
    "run.md": "is run by test_jobs.py",
    "terraform.md": "is run by tests/terraform",
    "test-on-google.md": "is run by test_smoke.py",
}
"""How-tos whose first block is neither settings nor commands for a rehearsal, and why."""


def _blocks(page: Path) -> Iterator[list[str]]:
    """The blocks of code of a page, each its lines; long lines are put together."""
    for block in re.findall(r"(?:^    .*\n)+", page.read_text("utf-8"), re.MULTILINE):
        yield [line[4:] for line in block.replace("\\\n", "").splitlines()]


def _normal(line: str) -> str:
    for pattern, stand_in in _DIFFERS:
        line = pattern.sub(stand_in, line)
    return line.strip()


class Reader:
    """Somebody who does what a page says, in a folder of their own."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        self.folder = rehearsal.folder / "work"
        programs = rehearsal.folder / "programs"
        for folder in (self.folder, programs):
            folder.mkdir()
        (programs / "aiinfra").write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
        (programs / "aiinfra").chmod(0o755)
        path = f"{programs}{os.pathsep}{rehearsal.environ['PATH']}"
        self._environ = {**rehearsal.environ, "PATH": path}
        self.said: list[str] = []

    def type(self, line: str, code: int = 0, shown: Sequence[str] = ()) -> None:
        """Type a line into a shell; what is not for the rehearsal is left out.

        `shown`: what the page shows of it; if there is a question, on a terminal, with its answer.
        """
        if job := _JOB.match(line):
            self._submit(job[1])
        ours = _OURS.match(line)
        if ours:
            line = f"aiinfra {ours['arguments']}".replace(" --rehearse ", " ")
        elif not line.startswith("printf"):
            return
        asked = next(filter(None, map(_QUESTION.fullmatch, shown)), None)
        if ours and asked:
            question, answer = asked[1].strip().encode(), f"{asked[2]}\n".encode()
            where = {**self._environ, "TERM": "dumb"}
            command = ["bash", "-c", line]
            ended, said = typed(command, where, when=question, keys=answer, folder=self.folder)
            assert ended == code, f"{line}\n{said}"
            self.said += _COLOURS.sub("", said).replace("\r", "").splitlines()
            return
        environ = self._environ if ours else {**self._environ, "PROJECT_ID": "my-project"}
        done = subprocess.run(
            ["bash", "-c", line],  # noqa: S607 - of PATH
            cwd=self.folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"{line}\n{done.stdout}"
        self.said += done.stdout.splitlines()

    def _submit(self, name: str) -> None:
        """Submit a job that Create has rendered, and wait for its end."""
        settings = (self.folder / "env.list").read_text().split()
        self._rehearsal.settings = dict(line.split("=", 1) for line in settings)
        connection = self._rehearsal.object("connection.json")
        cluster = cluster_side.kubectl(self._rehearsal, connection)
        made = cluster.create(cluster_side.job(self._rehearsal, connection, name))
        named = ("batch/v1", "Job", made["metadata"]["name"], "default")

        def status() -> dict[str, Any]:
            return (cluster.find(*named) or {}).get("status") or {}

        until(lambda: status().get("succeeded"), status, pace=0.2)

    def compare(self, shown: list[str]) -> None:
        """Each line that a page shows must be one that was said, in this order."""
        said = [_normal(line) for line in self.said]
        rest = iter(said)
        for line in shown:
            wanted = _normal(line)
            if wanted == "...":
                continue
            near = "\n    ".join(difflib.get_close_matches(wanted, said, 3, 0.5))
            assert wanted in rest, f"the page shows\n    {line.strip()}\nand said was\n    {near}"


def _follow(page: Path, rehearsal: Rehearsal) -> None:
    reader = Reader(rehearsal)
    compared = 0
    blocks = list(_blocks(page))
    for block, then in zip(blocks, [*blocks[1:], []], strict=True):
        if _COMMANDS.match(block[0]):
            if any(_OURS.match(line) for line in block):
                reader.said = []
            for line in block:
                reader.type(line, shown=then)
        elif block[0].startswith("Validate failed ("):
            with rehearsed(_made(rehearsal.folder / "quota"), scenario="quota") as poor:
                other = Reader(poor)
                (other.folder / "env.list").write_text((reader.folder / "env.list").read_text())
                other.type("aiinfra Validate", code=4)
                other.compare(block)
        else:
            reader.compare(block)
            compared += 1
    assert compared >= 4
    assert "contains only logs now" in reader.said[-1]


SLOW_RECIPE: Final = pytest.mark.slow(
    sibling="::test_the_command_of_a_recipe_makes_its_cluster_runs_it_and_leaves_nothing"
)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.slow(
    sibling="tests/runs/test_the_life_of_a_cluster.py::test_an_env_list_becomes_a_cluster_and_goes_away_again"
)
def test_first_steps_go_as_the_page_says(rehearsal: Rehearsal) -> None:
    _follow(DOCS / "tutorial" / "first-steps.md", rehearsal)


@SLOW_RECIPE
def test_the_tutorial_of_cloud_shell_goes_as_it_stands(rehearsal: Rehearsal) -> None:
    page = (DOCS.parent / "examples" / "cloud-shell" / "tutorial.md").read_text("utf-8")
    page = page.replace("<walkthrough-project-id/>", "my-project")
    reader = Reader(rehearsal)
    parts = re.split(r"```sh\n(.*?)```", page, flags=re.DOTALL)
    for before, line in zip(parts[::2], parts[1::2], strict=False):
        # What is asked, and what the page has one type.
        asked = {"Go on?": "Go on? [Y/n] y", "Type `yes`": 'Type "yes" to confirm: yes'}
        shown = [it for words, it in asked.items() if words in before]
        reader.type(line.strip(), shown=shown)

    said = "\n".join(reader.said)
    for told in ("passed", "Plan: 8 to add", "Ready after", "would run here", "1 of 1 VM ready"):
        assert told in said, told
    assert "contains only logs now" in reader.said[-1]
    assert not [it for it in rehearsal.resources() if not stays(it)]


@SLOW_RECIPE
def test_a_job_on_gke_goes_as_the_page_says(rehearsal: Rehearsal) -> None:
    _follow(DOCS / "tutorial" / "gke.md", rehearsal)


_RECIPES: Final = {
    Path(line.split()[2]).parent.name: line for (line,) in _blocks(DOCS / "how-to" / "recipes.md")
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(path.name, marks=[] if path.name == "ray-train" else [SLOW_RECIPE])
        for path in sorted((DOCS.parent / "examples" / "recipes").iterdir())
    ],
)
def test_the_command_of_a_recipe_makes_its_cluster_runs_it_and_leaves_nothing(
    rehearsal: Rehearsal, name: str
) -> None:
    reader = Reader(rehearsal)
    (reader.folder / "examples").symlink_to(DOCS.parent / "examples")
    values = dotenv_values(reader.folder / "examples" / "recipes" / name / "env.list")
    rehearsal.settings = {setting: value for setting, value in values.items() if value}
    rehearsal.presume()
    before = rehearsal.resources()
    machines = rehearsal.settings["INSTANCE_COUNT"]

    reader.type(_RECIPES[name])

    said = "\n".join(reader.said)
    assert re.search(rf"{machines} (?:VMs|machines)", said), said
    assert "would run here: a rehearsal runs no program" in said, said
    left = [line for line in rehearsal.resources() if not stays(line)]
    assert left == [line for line in before if not stays(line)]


def test_the_prices_of_the_readme_are_those_of_the_list() -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    image = {"IMAGE_FAMILY_NAME": "pytorch-2-9-cu129-ubuntu-2404-nvidia-580"}

    for machine in ("g2-standard-8", "a3-highgpu-8g"):
        assert machine in readme
        settings = load(MANDATORY | image | {"VM_TYPE": machine}).settings
        assert settings is not None
        cost = estimate.of(registry.of(settings).spec(settings), prices.listed())
        assert f"${cost.now.per_hour:.2f}" in readme


def _first(page: Path) -> list[str]:
    return next(_blocks(page), [])


def _is_settings(block: list[str]) -> bool:
    return bool(block) and all(map(_SETTING.fullmatch, block))


HOW_TOS: Final = sorted(page for page in (DOCS / "how-to").glob("*.md") if page.name not in OTHERS)


@pytest.mark.parametrize("page", [it for it in HOW_TOS if _is_settings(_first(it))], ids=str)
def test_the_first_settings_of_a_how_to_are_accepted(page: Path) -> None:
    settings = dict(line.split("=", 1) for line in _first(page) if not line.startswith("#"))
    if settings.get("ORCHESTRATOR_TYPE") == "gke":
        settings["ZONE"] = "us-east5-a"

    assert load(MANDATORY | settings, fetch=lambda _: "").problems == ()


@SLOW_RECIPE
def test_the_first_commands_of_the_how_tos_work_one_after_the_other(rehearse: Rehearse) -> None:
    # A provider that is served from here would look for the folder's archive in another place.
    reader = Reader(rehearse(real=True))
    lines = "".join(f"{name}={value}\n" for name, value in MANDATORY.items())
    for place in (reader.folder, _made(reader.folder / "examples")):
        (place / "env.list").write_text(lines)
    (_made(reader.folder / "train") / "train.py").write_text("print()\n")
    pages = [page for page in HOW_TOS if not _is_settings(_first(page))]
    # First what makes the cluster; last what leaves its VM older than the settings, and Destroy.
    turns = {"report": -1, "files-and-startup": 1, "after-a-kill": 2}
    for page in sorted(pages, key=lambda it: turns.get(it.stem, 0)):
        ours = [line for line in _first(page) if _OURS.match(line)]
        assert ours, f"{page.name} begins with no command: name it in OTHERS"
        for line in ours:
            if page.stem == "rehearse" and "Destroy" in line:
                continue
            reader.type(line)
    assert "contains only logs now" in reader.said[-1]
