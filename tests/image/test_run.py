"""The image as its users run it, each run a rehearsal without a network."""

import contextlib
import re
from pathlib import Path

from tests.image.conftest import TREE, Image
from tests.image.runs import CLOUD, OFFLINE, SETTINGS, await_line, document, kept, said


def test_destroy_removes_as_much_as_create_made_with_the_network_off(
    image: Image, volume: str
) -> None:
    options = kept(volume, TREE / "examples" / "env.list")

    made = document(image.run("Create", "--rehearse", "--output=json", options=options))
    removed = document(image.run("Destroy", "--rehearse", "--output=json", options=options))

    assert made["changes"]["add"] > 3
    assert removed["changes"]["destroy"] == made["changes"]["add"]


def test_it_runs_as_anybody_in_a_container_that_nobody_can_write_to(
    image: Image, volume: str, env_list: Path
) -> None:
    confined = ("--user", "12345:12345", "--read-only", "--tmpfs", "/tmp")  # noqa: S108 - the container's
    rights = ("--cap-drop", "ALL", "--security-opt", "no-new-privileges")
    options = kept(volume, env_list, *confined, *rights)

    made = image.run("Create", "--rehearse", options=options)

    assert made.code == 0, made.err


def test_the_image_rehearses_with_the_provider_that_lies_in_it(
    image: Image, volume: str, env_list: Path
) -> None:
    # Here that one is a stand-in, too, which looks for its Python where a rehearsal leaves it.
    python = ("--env=REHEARSAL_PYTHON=/opt/venv/bin/python", "--env=PYTHONPATH=/opt/aiinfra")
    options = kept(volume, env_list, *python)

    made = image.run("Create", "--rehearse=real-provider", options=options)

    assert made.code == 0, made.err
    assert "Terraform runs the google provider /usr/local/share/terraform/providers/" in made.err


def test_512_megabytes_are_enough(image: Image, volume: str, env_list: Path) -> None:
    # Without swap, so that a megabyte more would be a kill.
    options = kept(volume, env_list, "--memory", "512m", "--memory-swap", "512m")

    made = image.run("Create", "--rehearse", options=options)

    assert made.code == 0, made.err


def test_two_containers_at_once_on_one_prefix_leave_a_whole_cluster(
    image: Image, volume: str
) -> None:
    """One cloud for both, in a container whose network they share."""
    serve = ("-m", "rehearsal", "serve")
    with contextlib.ExitStack() as stack:
        cloud = stack.enter_context(
            image.container(
                *serve,
                volume=volume,
                environ={},
                network_mode="none",
                entrypoint="python",
                working_dir="/opt/aiinfra",
            )
        )
        environ = SETTINGS | _exported(await_line(cloud, "export TF_CLI_CONFIG_FILE"))
        network = f"container:{cloud.get_wrapped_container().id}"
        both = [
            stack.enter_context(
                image.container(
                    "Create", "--yes", volume=volume, environ=environ, network_mode=network
                )
            )
            for _ in range(2)
        ]
        codes = sorted(one.get_wrapped_container().wait()["StatusCode"] for one in both)
        words = "".join(map(said, both))
        shared = ("--network", network, "-v", f"{volume}:{CLOUD}")
        given = (f"--env={name}={value}" for name, value in environ.items())
        again = image.run("Plan", "--output=json", options=(*shared, *given))

    assert codes in ([0, 0], [0, 5]), words
    changes = document(again)["changes"]
    assert (changes["add"], changes["change"], changes["destroy"]) == (0, 0, 0)


def _exported(lines: str) -> dict[str, str]:
    found = re.findall(r"^export (\w+)=(.*)$", lines, re.MULTILINE)
    return {name: value.strip("'") for name, value in found}


def test_version_and_help_are_there_without_settings(image: Image) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", image.run("--version", options=OFFLINE).out)
    assert "docker run" in image.run(options=OFFLINE).out
