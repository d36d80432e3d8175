"""Every `docker run` line that the documentation shows, run as it stands but for `--rehearse`."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.image.conftest import TREE, Image
from tests.image.terminal import typed

_LINE = re.compile(r"^(?: {4})?(docker run [^`#\n]*\bIMAGE\b[^`#\n]*)", re.MULTILINE)
_ACTION = re.compile(r"\bIMAGE (?!wrapper)(\w+)(?! --rehearse)(?!.*--rehearse)")


def _commands() -> Iterator[str]:
    texts = [TREE / "README.md", *TREE.glob("docs/**/*.md"), *TREE.glob("examples/**/*.md")]
    for text in texts:
        for line in _LINE.findall(text.read_text(encoding="utf-8")):
            yield line.strip()


COMMANDS = sorted(set(_commands()))


def test_the_documentation_shows_commands() -> None:
    assert {"docker run -it --env-file env.list IMAGE Create"} < set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_documented_command_works(
    image: Image, volume: str, tmp_path: Path, command: str
) -> None:
    (tmp_path / "env.list").write_text(
        "PROJECT_ID=my-project\nNAME_PREFIX=np\nZONE=us-central1-a\n"
    )
    (tmp_path / ".config" / "gcloud").mkdir(parents=True)
    (tmp_path / "train").mkdir()
    for folder in (tmp_path, tmp_path / "train"):
        (folder / "train.py").write_text("print()\n")
    # What cmd.exe would make of it.
    script = command.replace("%APPDATA%\\gcloud", "~/.config/gcloud")
    script = script.replace("-v rehearsal:", f"-v {volume}:")
    script = _ACTION.sub(r"IMAGE \1 --rehearse", script)
    script = re.sub(r'\bIMAGE\b|"\$IMAGE"', image.name, script).replace(
        "docker run", f"{image.engine.client} run --rm", 1
    )
    environ = {**image.engine.environ, "HOME": str(tmp_path), "PWD": str(tmp_path)}

    # A first Create asks a person, who agrees by the return key.
    code, said = typed(
        ["/bin/bash", "-c", script], environ, when=b"Go on?", keys=b"\n", folder=tmp_path
    )

    # These need a cluster, and say that there is none.
    assert code == (5 if re.search("IMAGE (Test|Run)", command) else 0), said
