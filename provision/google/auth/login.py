"""An interactive login with gcloud: open a link in a browser, and paste the code that it shows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.errors import CredentialsError

if TYPE_CHECKING:
    from collections.abc import Mapping

_COMMAND: Final = ("auth", "application-default", "login", "--no-launch-browser")


def is_possible(environ: Mapping[str, str]) -> bool:
    """Whether there is a terminal, and gcloud is installed."""
    return _has_terminal() and _gcloud(environ) is not None


def ask(environ: Mapping[str, str]) -> None:
    """Run gcloud's login, which keeps the credentials where google-auth and Terraform find them."""
    # stdout is for results, so gcloud's dialog goes to stderr, like progress messages.
    done = subprocess.run(  # noqa: S603 - gcloud of PATH with fixed arguments
        [_gcloud(environ) or "gcloud", *_COMMAND], env=dict(environ), stdout=sys.stderr, check=False
    )
    if done.returncode != 0:
        raise CredentialsError(
            "The login was not completed",
            code=Code.NO_CREDENTIALS,
            why=f"gcloud ended with exit code {done.returncode}",
            fix="run again, open the link, and paste the code that it shows",
        )


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _gcloud(environ: Mapping[str, str]) -> str | None:
    return shutil.which("gcloud", path=environ.get("PATH", ""))
