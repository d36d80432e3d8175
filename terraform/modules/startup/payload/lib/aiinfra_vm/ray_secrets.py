"""Values of Secret Manager for a job that runs through Ray, without a word to Ray.

Ray keeps the environment that it is to make, and shows it to whoever may use Ray. So each process
of a job reads the values itself, as its VM's account.
"""

from __future__ import annotations

import json
import os
import sys

from aiinfra_vm import secrets

OWN = "AIINFRA_JOB_SECRETS"
"""Where a process finds which secrets are its job's own: variable -> path, as JSON."""


def take() -> None:
    """Put the values into this process' environment; Ray calls this before any task of the job."""
    values = secrets.of_all(json.loads(os.environ.get(OWN, "{}")))
    os.environb.update({name.encode(): value for name, value in values.items()})


def main() -> None:
    """Become the job's program, with them."""
    take()
    # bash itself says what can't be found.
    os.execv("/bin/bash", ["bash", "-c", 'exec "$@"', "bash", *sys.argv[1:]])  # noqa: S606 - the job's


if __name__ == "__main__":
    main()
