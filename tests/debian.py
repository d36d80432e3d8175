"""Debian for tests: programs that are missing, and whole root file systems of its releases.

What is made is kept outside the tree, in one folder for all tests.
"""

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.running import ran

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

_INSIDE = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
_ENTER = """
if [ -n "${4-}" ]; then
  mkdir -p "$4/disk" "$4/work" "$4/root"
  mount -t overlay overlay "$4/root" -o "lowerdir=$1,upperdir=$4/disk,workdir=$4/work"
  set -- "$4/root" "$2" "$3"
else
  mount --bind "$1" "$1"
fi
mount -t proc proc "$1/proc"
if [ -n "${3-}" ]; then mount --bind "$3" "$1/mnt"; fi
exec env --ignore-environment HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
  DEBIAN_FRONTEND=noninteractive chroot "$1" sh -euc "$2"
"""


class NoDebianError(Exception):
    """It can't be had here."""


def cache() -> Path:
    """Where tests keep what takes minutes to make."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    found = Path(home, "aiinfra-cluster")
    found.mkdir(parents=True, exist_ok=True)
    return found


@contextmanager
def made_once(name: str) -> Iterator[tuple[Path, bool]]:
    """A folder of the cache, and whether it has to be made; it's complete when the block ends.

    Other processes wait meanwhile. What a block that failed has left is removed.
    """
    folder = cache() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        complete = folder / "complete"
        if complete.exists():
            yield folder, False
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        yield folder, True
        complete.touch()


def install(*packages: str) -> None:
    """Install packages on this machine.

    Raises:
        NoDebianError: That takes root on Debian or its like, or apt-get has failed.
    """
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NoDebianError(f"{', '.join(packages)} can only be installed by root on Debian")
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--yes", "--quiet"]
    _tell([*quiet, "update"])
    _tell([*quiet, "install", "--no-install-recommends", *packages])


def bootstrap(root: Path, release: str, packages: Iterable[str]) -> None:
    """Make a root file system of a release, with these packages beside the smallest.

    Raises:
        NoDebianError: This takes root, and a debootstrap that is here or can be installed.
    """
    if os.geteuid() != 0:
        raise NoDebianError("a root file system of Debian can only be made by root")
    if not (shutil.which("debootstrap") and _KEYRING.exists()):
        install("debootstrap", "debian-archive-keyring")
    more = [f"--include={','.join(packages)}", f"--keyring={_KEYRING}"]
    # debootstrap leaves /proc mounted: in a namespace of its own, that ends with it.
    _tell(["unshare", "--mount", "debootstrap", "--variant=minbase", *more, release, str(root)])


def run_in(
    root: Path,
    script: str,
    folder: Path | None = None,
    layer: Path | None = None,
    above: Sequence[Path] = (),
) -> None:
    """Run a shell script in a root file system, as root of the machine and with its network.

    `layer`: gets in `disk` what the script writes, if given; else the root file system does.
    `above`: with a layer, those that are between it and the root, the lowest first.

    Raises:
        NoDebianError: The script has failed.
    """
    lower = ":".join(map(str, (*reversed(above), root)))
    given = [lower, script, str(folder or ""), str(layer or "")]
    _tell([*_INSIDE, "bash", "-euc", _ENTER, "enter", *given])


def _tell(command: Sequence[str]) -> None:
    done = ran(command)
    if done.returncode != 0:
        said = f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        raise NoDebianError(f"{' '.join(command)} failed:\n{said}")
