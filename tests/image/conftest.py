"""The real Dockerfile, built once and run by every test here.

Left out of a run of all tests: an engine may have to be installed. `make test-image` names this
folder, and then nothing is skipped: without an engine everything here fails and says why.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import debian
from tests.image import stand_ins
from tests.image.engine import Ended, Engine, NoEngineError, running
from tests.image.runs import CLOUD, MANDATORY
from tests.running import ran

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

TREE = Path(__file__).parents[2]
IMAGE = "aiinfra-test/cluster:built"
_HERE = Path(__file__).parent
_DECOYS = ("secret.json", "terraform/mig/terraform.tfstate", "terraform/mig/own.auto.tfvars.json")
"""What may lie around in a checkout and must not get into the image."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Only a run that names this folder, or something in it, gets it."""
    named = (Path(argument.partition("::")[0]).resolve() for argument in config.args)
    wanted = any(path == _HERE or _HERE in path.parents for path in named)
    return True if _HERE in collection_path.parents and not wanted else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A container takes its time."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def cache() -> Path:
    """What is kept from one run to the next, outside the tree."""
    found = debian.cache() / "image-tests"
    found.mkdir(exist_ok=True)
    return found


@pytest.fixture(scope="session")
def engine(cache: Path) -> Iterator[Engine]:
    """A container engine."""
    try:
        with running(cache) as found:
            os.environ.update(found.environ)
            yield found
    except NoEngineError as error:
        pytest.fail(f"The image can't be tested here: {error}", pytrace=False)


@dataclass
class Image:
    """The built image."""

    engine: Engine
    name: str

    def run(self, *arguments: str, options: tuple[str, ...] = (), stdin: str = "") -> Ended:
        """`docker run --rm OPTIONS IMAGE ARGUMENTS`, to its end."""
        return self.engine.run("run", "--rm", *options, self.name, *arguments, stdin=stdin)

    def container(
        self, *arguments: str, volume: str, environ: Mapping[str, str], **options: Any
    ) -> DockerContainer:
        """A container that runs beside the test, for a `with`; it is removed at its end."""
        # testcontainers reads the environment, which `engine` completes, when it is imported.
        from testcontainers.core.container import DockerContainer  # noqa: PLC0415

        made = DockerContainer(self.name, **options).with_command(list(arguments))
        return made.with_envs(**environ).with_volume_mapping(volume, CLOUD, "rw")

    def shell(self, command: str, *options: str) -> str:
        """What a shell in the image prints; it must succeed."""
        done = self.engine.run(
            "run", "--rm", "--entrypoint", "sh", *options, self.name, "-euc", command
        )
        assert done.code == 0, done.err
        return done.out


@pytest.fixture(scope="session")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the project, as a clone has them, and what should not be there."""
    folder = tmp_path_factory.mktemp("context")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],  # noqa: S607 - of PATH
        cwd=TREE,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (TREE / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TREE / name, folder / name)
    for name in _DECOYS:
        (folder / name).write_text("decoy")
    return folder


@pytest.fixture(scope="session")
def stand_in_arguments(
    engine: Engine, cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """Build arguments that lead to stand-ins, which are there as long as the tests run."""
    stand_ins.python_base(engine, cache)
    stand_ins.terraform_base(engine, tmp_path_factory.mktemp("terraform") / "base")
    commit = re.search(r"KUEUE_COMMIT=(\w+)", (TREE / "Dockerfile").read_text())
    assert commit
    archives = {
        "gcloud": stand_ins.gcloud(),
        "kustomize": stand_ins.kustomize(),
        "kueue": stand_ins.kueue(commit[1]),
        "jobset": stand_ins.jobset(),
    }
    with stand_ins.served(tmp_path_factory.mktemp("downloads"), [*archives.values()]) as base_url:
        yield stand_ins.arguments(base_url, archives)


def build(
    engine: Engine, context: Path, arguments: dict[str, str], *options: str, make: str = "image"
) -> Ended:
    """`make image` in a clone; the network is the host's, where the stand-ins are."""
    given = [f"--build-arg={name}={value}" for name, value in arguments.items()]
    done = ran(
        [
            *("make", "--no-print-directory", make, f"DOCKER={engine.client}", f"IMAGE={IMAGE}"),
            f"BUILD_OPTIONS={' '.join(['--network=host', *given, *options])}",
        ],
        cwd=context,
        env=engine.environ,
        timeout=800,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def image(engine: Engine, context: Path, stand_in_arguments: dict[str, str]) -> Image:
    """The image."""
    done = build(engine, context, stand_in_arguments)
    assert done.code == 0, done.err[-6000:]
    return Image(engine, IMAGE)


@pytest.fixture
def volume(engine: Engine) -> Iterator[str]:
    """A new volume, gone afterwards."""
    name = f"aiinfra-test-{uuid.uuid4().hex[:8]}"
    engine.must("volume", "create", name)
    yield name
    engine.must("volume", "rm", "--force", name)


@pytest.fixture
def env_list(tmp_path: Path) -> Path:
    """An env.list of the mandatory settings, which a container's user may read."""
    file = tmp_path / "env.list"
    file.write_text(MANDATORY)
    return file
