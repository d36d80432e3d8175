"""The Python packages that a job brings: an environment by content, made once on each machine.

The command is wrapped on its way, so that VMs, containers and pods do the same by their own Python.
What is installed stands in the job's log, and what fails there is the job's failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

NONE: Final = "none"
"""The value of --setup that leaves out what the folder asks for."""
MARK: Final = "aiinfra-setup"
"""What a command that was wrapped is known by: its name, $0."""
_PIP: Final = "python -m pip install --no-input --disable-pip-version-check"
_LOCKED: Final = '"$VIRTUAL_ENV/locked.txt"'
_EXPORT: Final = f"uv export --frozen --no-dev --no-emit-project --quiet --output-file {_LOCKED}"
_BY_FILES: Final = (
    # uv's lock becomes what pip reads, with hashes; uv itself comes from the index.
    (
        ("uv.lock", "pyproject.toml"),
        f"{_PIP} uv && {_EXPORT} && {_PIP} --requirement {_LOCKED}",
    ),
    (("requirements.txt",), f"{_PIP} --requirement requirements.txt"),
)
# Packages of the machine or image stay in view, such as its PyTorch. Programs that it has of them,
# such as torchrun, run by its own Python: so that finds the new ones by PYTHONPATH.
_WRAP: Final = """\
set -e
setup=$1 image=$2
shift 2
python=$(command -v python3 || command -v python) || {
  echo "--setup needs Python, and there is none here" >&2
  exit 127
}
asked=$(cat requirements.txt pyproject.toml uv.lock 2>/dev/null || :)
key=$(printf %s "$asked$setup $image $("$python" -VV)" | sha256sum | cut -c1-16)
env=${AIINFRA_PACKAGES:-${HOME:-/tmp}/.aiinfra-packages}/$key
# Tasks of one job may share a machine: the first makes it, and the others wait.
mkdir -p "${env%/*}" 2>/dev/null || :
if (: >"$env.lock") 2>/dev/null; then
  exec 9>"$env.lock"
  "$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'
fi
if [ ! -e "$env/made" ]; then
  echo "=== aiinfra: packages are installed, once for what this folder asks for ==="
  rm -rf "$env"
  "$python" -m venv --system-site-packages --without-pip "$env"
  "$env/bin/python" -m pip --version >/dev/null 2>&1 ||
    "$env/bin/python" -m ensurepip >/dev/null 2>&1 || {
    echo "this Python has no pip: STARTUP_COMMAND=apt-get install -y python3-pip, or --image" >&2
    exit 1
  }
  # A machine's own pip would install for the machine, which Debian's and Ubuntu's refuse.
  printf '#!/bin/sh\nexec "%s" -m pip "$@"\n' "$env/bin/python" >"$env/bin/pip"
  chmod +x "$env/bin/pip"
  (. "$env/bin/activate" && sh -ec "$setup") || {
    code=$?
    echo "=== aiinfra: the packages could not be installed: exit code $code ===" >&2
    exit "$code"
  }
  echo "=== aiinfra: packages are installed ==="
fi
# Also for a VM without room, which removes what nobody uses.
touch "$env/made" 2>/dev/null || :
exec 9>&-
. "$env/bin/activate"
site=$("$env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
export PYTHONPATH="$site${PYTHONPATH:+:$PYTHONPATH}"
exec "$@"
"""


def wanted(setup: str | None, files: Collection[str]) -> str:
    """The line of shell that installs what a job needs; "" for nothing.

    `setup`: what --setup says; None to go by what the folder has at its top.
    """
    if setup is not None:
        return "" if setup == NONE else setup
    return next((line for names, line in _BY_FILES if set(names) <= set(files)), "")


def source(files: Collection[str]) -> str:
    """The file of the folder that asks for packages; "" for none."""
    return next((names[0] for names, _ in _BY_FILES if set(names) <= set(files)), "")


def wrapped(command: Sequence[str], setup: str, image: str = "") -> tuple[str, ...]:
    """The command after its packages; itself where it needs none.

    `image`: its container's image, whose own packages are others; "" for the machine's.
    """
    return ("sh", "-c", _WRAP, MARK, setup, image, *command) if setup else tuple(command)


def line_of(command: Sequence[str]) -> str:
    """The line that installs the packages of a command; "" for none."""
    return command[4] if MARK in command[3:4] else ""


def bare(command: Sequence[str]) -> tuple[str, ...]:
    """The command as somebody wrote it."""
    return tuple(command[6:] if MARK in command[3:4] else command)
