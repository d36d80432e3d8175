"""What the operating system of an image has that start-up needs, as far as its project tells.

Sources: the projects of public images and their licenses (Compute Engine, "Operating system
details", 2026); which systems Google's installer of drivers knows (compute-gpu-installation,
linux/README.md of v1.9.1, 2026-08-05).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, kw_only=True)
class System:
    """An operating system."""

    name: str  # what people call it
    runs: bool = True  # whether start-up can run at all: it needs bash, Python 3 and systemd
    apt: bool = False  # whether its packages are installed by apt-get, as start-up does
    plain: bool = True  # whether the project's images have no driver of NVIDIA's


_ROCKY: Final = System(name="Rocky Linux")

PUBLIC: Final[Mapping[str, System]] = MappingProxyType(
    {
        "almalinux-cloud": System(name="AlmaLinux"),
        "centos-cloud": System(name="CentOS"),
        "cos-cloud": System(name="Container-Optimized OS", runs=False),
        "debian-cloud": System(name="Debian", apt=True),
        "fedora-coreos-cloud": System(name="Fedora CoreOS", runs=False),
        "opensuse-cloud": System(name="openSUSE"),
        "oracle-linux-cloud": System(name="Oracle Linux"),
        "rhel-cloud": System(name="Red Hat Enterprise Linux"),
        "rocky-linux-accelerator-cloud": System(name="Rocky Linux", plain=False),
        "rocky-linux-cloud": _ROCKY,
        "suse-cloud": System(name="SUSE Linux Enterprise"),
        "ubuntu-os-cloud": System(name="Ubuntu", apt=True),
        "windows-cloud": System(name="Windows", runs=False),
    }
)
"""The project of a public image, or of the license of an image made from one -> its system."""

INSTALLABLE: Final = "Debian 12 and 13, Ubuntu 22.04, 24.04 and 26.04, on x86"
"""The systems on which start-up installs a driver, in words."""

_INSTALLABLE: Final = re.compile(
    r"debian-1[23]|ubuntu-(?:minimal-)?(?:2204|2404|2604)-lts(?:-amd64)?"
)
_PROJECT: Final = re.compile(r"projects/([^/]+)/global/licenses/")


def of(project: str, licenses: Iterable[str]) -> System | None:
    """The system of an image of a project with these licenses; None where neither tells."""
    named = [match[1] for it in licenses if (match := _PROJECT.search(it))]
    return next((PUBLIC[it] for it in (project, *named) if it in PUBLIC), None)


def takes_driver(family: str) -> bool:
    """Whether start-up can install NVIDIA's driver on a public image of that family."""
    return _INSTALLABLE.fullmatch(family) is not None
