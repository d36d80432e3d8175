"""Root file systems of real Debian releases, with packages that VMs can install without network.

Made by debootstrap and kept between runs, outside the tree. Nothing writes to them: each VM has a
layer of its own above.
"""

from __future__ import annotations

import enum
import hashlib
import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests import debian

if TYPE_CHECKING:
    from pathlib import Path


class Release(enum.StrEnum):
    """A release of Debian, by its codename."""

    DEBIAN_12 = "bookworm"
    DEBIAN_13 = "trixie"


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
apt-get --quiet update
apt-get --quiet --yes --no-install-recommends install {packages}
apt-get clean
rm -rf /var/lib/apt/lists/*
"""

# Makes /mnt a package source: a list of its packages, signed by the key in /mnt/../key.
_INDEX = """
cd /mnt/{name}
for package in *.deb; do
  dpkg-deb --field "$package"
  printf 'Filename: ./%s\\nSize: %s\\nSHA256: %s\\n\\n' "$package" \\
    "$(stat --format %s "$package")" "$(sha256sum <"$package" | cut -d ' ' -f 1)"
done >Packages
printf 'Suite: {name}\\nDate: %s\\nSHA256:\\n %s %s Packages\\n' "$(LC_ALL=C date -u -R)" \\
  "$(sha256sum <Packages | cut -d ' ' -f 1)" "$(stat --format %s Packages)" >Release
mkdir -p -m 700 /tmp/gpg
export GNUPGHOME=/tmp/gpg
[ -e /mnt/key.secret ] || {{
  gpg --quiet --batch --passphrase '' --quick-generate-key 'Packages of tests' ed25519 sign never
  gpg --quiet --batch --armor --export >/mnt/key.asc
  gpg --quiet --batch --armor --export-secret-keys >/mnt/key.secret
}}
gpg --quiet --batch --import /mnt/key.secret
gpg --quiet --batch --yes --clearsign --output InRelease Release
rm -rf /tmp/gpg
"""


@dataclass(frozen=True)
class Root:
    """A root file system that VMs share.

    Attributes:
        release: Of which release it is.
        layers: Its folders, the lowest first.
        sources: A folder of package sources, and the key that they are signed with, `key.asc`.
    """

    release: Release
    layers: tuple[Path, ...]
    sources: Path


def root(release: Release) -> Root:
    """The root of a release; made when it is not there yet, which takes minutes.

    Raises:
        NoDebianError: This takes root, and Debian's packages.
    """
    name = f"roots/{release}-{_digest(_INSTALLED, _INSTALLABLE, _DOWNLOAD, _INDEX)}"
    with debian.made_once(name) as (folder, missing):
        system, sources = folder / "system", folder / "sources"
        if missing:
            debian.bootstrap(system, release, _INSTALLED)
            shutil.copytree(system / "etc/apt", folder / "apt")
            (sources / "debian").mkdir(parents=True)
            script = _DOWNLOAD.format(packages=" ".join(_INSTALLABLE))
            debian.run_in(system, script, sources / "debian")
            debian.run_in(system, _INDEX.format(name="debian"), sources)
    return Root(release, (system,), sources)


def _digest(*what: object) -> str:
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:12]
