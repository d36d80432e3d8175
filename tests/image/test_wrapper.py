"""The wrapper that the image hands out, by the real engine."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.image.conftest import Image
from tests.image.runs import MANDATORY
from tests.image.terminal import typed
from tests.running import ran


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_wrapper_makes_a_cluster_from_the_folders_env_list_and_removes_it(
    image: Image, tmp_path: Path, shell: str
) -> None:
    folder = tmp_path / "my work"
    folder.mkdir()
    (folder / "env.list").write_text(MANDATORY)
    (tmp_path / ".config" / "gcloud").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "docker").symlink_to(image.engine.client)
    handed = image.run("wrapper")
    assert handed.code == 0, handed.err
    (tmp_path / "aiinfra").write_text(handed.out)
    environ = {
        **image.engine.environ,
        "AIINFRA_IMAGE": image.name,
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
    }
    command = [shutil.which(shell) or shell, str(tmp_path / "aiinfra")]

    try:
        # On a terminal a first Create asks, and Enter agrees.
        code, said = typed(
            [*command, "Create", "--rehearse"], environ, when=b"Go on?", keys=b"\n", folder=folder
        )
        assert code == 0, said
        assert "Settings are from ./env.list" in said
        ended = ran(
            [*command, "Destroy", "--rehearse", "--output", "json"],
            env=environ,
            cwd=folder,
            stdin=subprocess.DEVNULL,
        )
        assert ended.returncode == 0, ended.stderr
        assert '"rehearsal": true' in ended.stdout
    finally:
        image.engine.run("volume", "rm", "--force", "aiinfra-rehearsal")
