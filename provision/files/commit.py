"""The commit of git that a folder was taken from.

Nothing that the folder itself configures is run: it may be somebody else's, and what it says is
only noted.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SECONDS: Final = 10
_NEITHER: Final = {
    # Programs that git would start for a look, and repositories that nobody has made with git.
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "safe.bareRepository": "explicit",
    "status.submoduleSummary": "false",
    # What is missing in a partial clone is not fetched, by whatever means it names.
    "protocol.allow": "never",
}
_ANSWERS: Final = frozenset({0, 1})
"""With what `git config` ends: 1 where there is nothing of what it looks for."""
_LOCAL: Final = re.compile(r"^(local|worktree)\b", re.MULTILINE)
_FILTERS: Final = r"^filter\..*\.(clean|process)$"


def of(folder: Path) -> str:
    """The commit, with "-dirty" if the folder has more or else; "" where git does not say."""
    git = shutil.which("git")
    found = _asked(git, folder, "rev-parse", "--verify", "HEAD") if git else None
    commit = found.stdout.strip() if found else ""
    if git is None or not _COMMIT.fullmatch(commit):
        return ""
    return commit + ("" if _is_clean(git, folder) else "-dirty")


def _is_clean(git: str, folder: Path) -> bool:
    """Whether nothing has changed; to see that, git would run filters of the repository's own."""
    own = _asked(git, folder, "config", "--show-scope", "--name-only", "--get-regexp", _FILTERS)
    if own is None or own.returncode not in _ANSWERS or _LOCAL.search(own.stdout):
        return False
    looks = ("status", "--porcelain", "--ignore-submodules=all", "--untracked-files=normal")
    changed = _asked(git, folder, *looks, "--", ".")
    return changed is not None and not changed.returncode and not changed.stdout


def _asked(git: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str] | None:
    """What git says of a folder; None if it says nothing in time."""
    options = [word for name, value in _NEITHER.items() for word in ("-c", f"{name}={value}")]
    outside = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.run(  # noqa: S603 - our own words
            [git, "--no-optional-locks", *options, *words],
            cwd=folder,
            env=outside | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"},
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
