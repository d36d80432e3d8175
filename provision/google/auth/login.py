"""A login by hand: gcloud's own, with a link to open elsewhere and a code to bring back."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from provision.errors import CredentialsError

if TYPE_CHECKING:
    from collections.abc import Mapping

_COMMAND: Final = ("auth", "application-default", "login", "--no-launch-browser")


def is_possible(environ: Mapping[str, str]) -> bool:
    """Whether there is a person at a terminal, and a gcloud."""
    return _has_terminal() and _gcloud(environ) is not None


def ask(environ: Mapping[str, str]) -> None:
    """Let gcloud ask for a login; it keeps what it gets where google-auth and Terraform look.

    Raises:
        CredentialsError: It was not completed.
    """
    # stdout is for results, so that the conversation goes to where progress goes.
    done = subprocess.run(  # noqa: S603 - gcloud of PATH with fixed arguments
        [_gcloud(environ) or "gcloud", *_COMMAND], env=dict(environ), stdout=sys.stderr, check=False
    )
    if done.returncode != 0:
        raise CredentialsError(
            "The login was not completed",
            why=f"gcloud ended with exit code {done.returncode}",
            fix="run again, open the link, and paste the code that it shows",
        )


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _gcloud(environ: Mapping[str, str]) -> str | None:
    return shutil.which("gcloud", path=environ.get("PATH", ""))
