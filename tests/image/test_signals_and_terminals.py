"""Runs that are stopped, and terminals that are there, are none, or go away."""

import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.image.conftest import Image
from tests.image.runs import OFFLINE, SETTINGS, await_line, kept, said
from tests.image.terminal import CTRL_C, hung_up, typed

_COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|9[0-7])[;m]")
"""To switch one on. Bold is none: NO_COLOR leaves it."""

CREATE = ("Create", "--rehearse", "--yes", "--full")
"""Without a question, and with Terraform's own text."""
MAKING = "google_compute_instance_template.gpu: Creat"
"""Terraform says so while it makes the first of what VMs need."""
STOPPING = "Stopping: Terraform finishes"
"""What a run says as soon as it was asked to stop."""

SHORT = {"DISABLE_OPS_AGENT": "true", "SHOW_PROXY_URL": "no"}
"""What only takes time is left out."""
SLOWLY = SHORT | {"CLOUD_CLOCK_RATE": "0.2"}
"""Five seconds of Google Cloud in one of ours: nothing would be left to stop at the usual rate."""


def _options(volume: str, env_list: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    return kept(volume, env_list, *(f"--env={name}={value}" for name, value in environ.items()))


def _is_finished_by_the_next(image: Image, volume: str, env_list: Path) -> None:
    for action in ("Create", "Destroy"):
        done = image.run(action, "--rehearse", options=_options(volume, env_list, SHORT))
        assert done.code == 0, done.err


def test_a_stopped_create_is_finished_by_the_next(
    image: Image, volume: str, env_list: Path
) -> None:
    with image.container(
        *CREATE, volume=volume, environ=SETTINGS | SLOWLY, network_mode="none"
    ) as create:
        await_line(create, MAKING)
        stopped = create.get_wrapped_container()
        # Somebody is impatient: the second signal must not cut short what the first has begun.
        stopped.kill("SIGTERM")
        stopped.stop(timeout=60)
        code, words = stopped.wait()["StatusCode"], said(create)

    assert code == 143, words
    assert "run Create again" in words
    assert "it is not locked" in words
    _is_finished_by_the_next(image, volume, env_list)


def test_ctrl_c_on_a_terminal_ends_in_order(image: Image, volume: str, env_list: Path) -> None:
    options = ("--rm", "-it", *_options(volume, env_list, SLOWLY))

    code, words = typed(
        [image.engine.client, "run", *options, image.name, *CREATE],
        image.engine.environ,
        when=MAKING.encode(),
        keys=CTRL_C,
    )

    assert code == 130, words
    assert "it is not locked" in words
    _is_finished_by_the_next(image, volume, env_list)


def test_what_an_orchestrator_kills_keeps_its_lock_and_says_how_to_free_it(
    image: Image, volume: str, env_list: Path
) -> None:
    with image.container(
        *CREATE, volume=volume, environ=SETTINGS | SLOWLY, network_mode="none"
    ) as create:
        await_line(create, MAKING)
        create.get_wrapped_container().kill("SIGKILL")

    # Another container can't know whether that run lives.
    done = image.run("Create", "--rehearse", "--yes", options=kept(volume, env_list))

    assert done.code == 5, done.err
    (lock,) = re.findall(r"--break-lock (\S+)", done.err)
    broken = image.run(
        "Create",
        "--rehearse",
        "--yes",
        "--break-lock",
        lock,
        options=_options(volume, env_list, SHORT),
    )
    assert broken.code == 0, broken.err


@pytest.fixture
def name(image: Image) -> Iterator[str]:
    """A name for a container, which is removed afterwards."""
    made = f"aiinfra-test-{uuid.uuid4().hex[:8]}"
    yield made
    image.engine.must("rm", "--force", made)


def test_a_run_whose_terminal_is_closed_stops_in_order(
    image: Image, volume: str, env_list: Path, name: str
) -> None:
    options = ("-it", "--name", name, *_options(volume, env_list, SLOWLY))
    command = [image.engine.client, "run", *options, image.name, *CREATE]

    hung_up(command, image.engine.environ, when=MAKING.encode(), until=STOPPING.encode())
    code = image.engine.must("wait", name)

    assert code == "143", image.engine.must("logs", name)
    _is_finished_by_the_next(image, volume, env_list)


@pytest.mark.parametrize(
    ("options", "coloured"),
    [
        (("-t",), True),
        (("-t", "--env=NO_COLOR=1"), False),
        ((), False),
        (("--env=CI=true",), False),
        (("--env=COLUMNS=0",), False),
    ],
    ids=["terminal", "no-color", "log", "ci", "no-width"],
)
def test_colours_are_for_terminals_and_lines_stay_whole(
    image: Image, volume: str, env_list: Path, options: tuple[str, ...], *, coloured: bool
) -> None:
    command = ["run", "--rm", *options, *kept(volume, env_list), image.name, "Plan", "--rehearse"]

    code, words = typed([image.engine.client, *command], image.engine.environ)

    assert code == 0, words
    assert bool(_COLOUR.search(words)) is coloured
    # Longer than the 80 columns that many a library takes where it knows no width.
    assert any(
        line.startswith("This is a rehearsal") and line.rstrip().endswith(", and kept in")
        for line in words.replace("\r", "").splitlines()
    )


def test_a_terminal_is_found_out_and_a_login_by_hand_is_asked_for(
    image: Image, env_list: Path
) -> None:
    command = ["run", "--rm", "-it", "--env-file", str(env_list), *OFFLINE, image.name, "Plan"]

    code, words = typed(
        [image.engine.client, *command],
        image.engine.environ,
        when=b"code: ",
        keys=b"no credentials\n",
    )

    assert "Enter authorization code" in words
    assert "can't be used as credentials" in " ".join(words.split())
    assert code == 3
