"""Root file systems of real Debian releases, with packages that VMs can install without network.

Made by debootstrap and kept between runs, outside the tree. Nothing writes to them: each VM has a
layer of its own above.
"""

import dataclasses
import enum
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests import debian
from tests.startup import packages


class Release(enum.StrEnum):
    """A release of Debian, by its codename."""

    DEBIAN_12 = "bookworm"
    DEBIAN_13 = "trixie"

    @property
    def number(self) -> int:
        """Its number."""
        return {Release.DEBIAN_12: 12, Release.DEBIAN_13: 13}[self]


_PYTHONS = {Release.DEBIAN_12: "3.11", Release.DEBIAN_13: "3.13"}
# What Google's images of Debian have, as far as start-up meets it.
_INSTALLED = (
    "ca-certificates", "curl", "dbus", "gnupg", "iproute2", "kmod", "openssh-server", "openssl",
    "procps", "python3", "sudo", "systemd-sysv", "udev", "unattended-upgrades",
)  # fmt: skip
# What steps install.
_INSTALLABLE = ("mdadm", "nfs-common", "python3-venv", "xfsprogs")

# /mnt gets the packages with all that they need. Those that are there already are left out, as is
# what was downloaded to make the root.
_DOWNLOAD = """
apt-get clean
apt-get --quiet update
for package in {packages}; do
  apt-get --quiet --yes --no-install-recommends --download-only install "$package"
done
mv /var/cache/apt/archives/*.deb /mnt/
rm -rf /var/lib/apt/lists/* /etc/apt/sources.list /etc/apt/sources.list.d/*
"""
_INSTALL = """
cp -R /mnt/. /etc/apt/
apt-get --quiet update
apt-get --quiet --yes --no-install-recommends install {packages}
apt-get clean
rm -rf /var/lib/apt/lists/* /etc/apt/sources.list /etc/apt/sources.list.d/*
"""


@dataclasses.dataclass(frozen=True)
class Root:
    """A root file system that VMs share."""

    release: Release
    layers: tuple[Path, ...]  # its folders, the lowest first
    sources: Path  # package sources, as `packages` has them


def root(release: Release) -> Root:
    """The root of a release; made when it is not there yet, which takes minutes.

    Raises:
        NoDebianError: This takes root, and Debian's packages.
    """
    digest = _digest(_INSTALLED, _INSTALLABLE, _DOWNLOAD)
    with debian.made_once(f"roots/{release}-{digest}") as (folder, missing):
        system = folder / "system"
        if missing:
            debian.bootstrap(system, release, _INSTALLED)
            shutil.copytree(system / "etc/apt", folder / "apt")
            (folder / "debian").mkdir()
            download = _DOWNLOAD.format(packages=" ".join(_INSTALLABLE))
            debian.run_in(system, download, folder / "debian")
    digest = _digest(digest, packages.RECIPE)
    with debian.made_once(f"roots/{release}-sources-{digest}") as (sources, missing):
        if missing:
            (sources / "debian").mkdir()
            for file in (folder / "debian").iterdir():
                # apt would take %3a for a colon, which it stands for.
                shutil.copy(file, sources / "debian" / file.name.replace("%3a", "-"))
            packages.index(system, sources, "debian")
            packages.make(system, sources, release)
    return Root(release, (system,), sources)


def with_packages(root: Root, *names: str, then: str = "") -> Root:
    """A root with more of Debian's packages installed, in a layer of its own that is kept too.

    `then`: a script for what is to be changed of them.

    Raises:
        NoDebianError: This takes Debian's packages.
    """
    lowest = root.layers[0].parent
    digest = _digest(lowest.name, names, _INSTALL + then)
    with debian.made_once(f"roots/{root.release}-{names[0]}-{digest}") as (folder, missing):
        if missing:
            install = _INSTALL.format(packages=" ".join(names)) + then
            debian.run_in(root.layers[0], install, lowest / "apt", folder)
    return dataclasses.replace(root, layers=(*root.layers, folder / "disk"))


def wheels(release: Release, requirement: str, pins: Path) -> Path:
    """A folder with a Python package and all that it needs, for the Python of a release."""
    digest = _digest(requirement, pins.read_text())
    with debian.made_once(f"wheels/{release}-{digest}") as (folder, missing):
        if missing:
            version = f"--python-version={_PYTHONS[release]}"
            platforms = [f"--platform=manylinux{tag}_x86_64" for tag in ("2014", "_2_28")]
            subprocess.run(
                [
                    *(sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder)),
                    *("--only-binary=:all:", "--implementation=cp", version, *platforms),
                    *("--constraint", str(pins), requirement),
                ],
                check=True,
            )
    return folder


def _digest(*what: object) -> str:
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:12]
