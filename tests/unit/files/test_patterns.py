"""The patterns of a .gitignore mean what they mean to git."""

import subprocess
from pathlib import Path

import pytest

from provision.files import archive as files
from provision.files.left_out import LeftOut

FOLDERS = ["", "src", "data", "src/build", "data/keep", "build", "src/data/keep"]
NAMES = ["a.py", "x.bin", "b.txt", ".gitkeep", "b c.txt "]


@pytest.mark.parametrize(
    "lines",
    [
        "*.bin\n!src/x.bin\n# *.py\n\\#no\n",
        "build/\n!src/build/\n",
        "build\n!build/a.py\n",
        "/data\n",
        "data/keep\nsrc/*.txt\n",
        # Programs alone; a pattern must not speak for what is below what it matches.
        "*\n!*/\n!*.py\n",
        "/*\n!/src/\n",
        "*\n!src\n!src/**\n",
        "data/*\n!data/keep/\n",
        "data/**\n!data/**/\n!data/**/*.py\n",
        "data/**\n!data/.gitkeep\n",
        "**/keep/*.bin\nsrc/**/a.py\n",
        "[ab].*\n!b.tx?\n/[^a]*/x.bin\n",
        "*.py \r\nb\\ c.txt\\ \r\n",
        "/\n!\n\n***/keep\n\ufeff",
        "a\\.py\n\\*.bin\n.\n",
    ],
)
def test_git_leaves_out_the_same(tmp_path: Path, lines: str) -> None:
    folder, into = tmp_path / "copy", tmp_path / "run"
    into.mkdir()
    for below in FOLDERS:
        for name in NAMES:
            (folder / below).mkdir(parents=True, exist_ok=True)
            (folder / below / name).write_text("x")
    (folder / ".gitignore").write_text(lines, newline="")
    (folder / "src" / ".gitignore").write_text("!b.txt\n/build/a.py\nx.*\n")
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True)
    found = subprocess.run(
        [*git, "ls-files", "--others", "--exclude-standard", "-z"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip

    archive = files.pack(folder, into, LeftOut.of(folder))

    travels = {name for name in (archive.entries if archive else ()) if (folder / name).is_file()}
    assert travels == set(found.stdout.split("\0")) - {""}
