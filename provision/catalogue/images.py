"""Google's lines of images for machines with GPUs: what is in a family, and which one is preferred.

Which families there are is asked of Google at each Create. This module knows how their names read,
which is the best of several, and what one is worth where Google can't be asked. Sources: Deep
Learning VM, "Choose an image" (2026-04-10); AI Hypercomputer, "OS images" (2026-04-06).

What the operating system of an image has that start-up needs is told as far as its project tells.
Sources: the projects of public images and their licenses (Compute Engine, "Operating system
details", 2026); which systems Google's installer of drivers knows (compute-gpu-installation,
linux/README.md of v1.9.1, 2026-08-05).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

INSTALLABLE: Final = "Debian 12 and 13, Ubuntu 22.04, 24.04 and 26.04, on x86"
"""The systems on which start-up installs a driver, in words."""
_INSTALLABLE: Final = re.compile(
    r"debian-1[23]|ubuntu-(?:minimal-)?(?:2204|2404|2604)-lts(?:-amd64)?"
)
_PROJECT: Final = re.compile(r"projects/([^/]+)/global/licenses/")
UBUNTUS: Final = ("2404", "2204")
"""Releases of Ubuntu that the start-up is known to work on, the preferred one first.

Ubuntu 22.04 and its Python 3.10 end before the images do (2027-04 and 2026-10; images: 2028-08). A
newer release comes last: the repositories that the start-up uses follow it by months.
"""
_DEEP_LEARNING: Final = re.compile(
    r"(?:pytorch-(?P<pytorch>\d+(?:-\d+)*)|common)-cu(?P<cuda>\d+)-ubuntu-(?P<ubuntu>\d{4})"
    r"-nvidia-(?P<driver>\d+)"
)
_ACCELERATOR: Final = re.compile(
    r"ubuntu-accelerator-(?P<ubuntu>\d{4})-(?:amd64|arm64)-with-nvidia-(?P<driver>\d+)"
)
_WITH_DRIVER: Final = re.compile(r"-nvidia-(?P<driver>\d+)")
_DATE: Final = re.compile(r"-v\d{8}")
_FIRST_OPEN: Final = 570
"""The first branch of the driver with which these images have the open kernel module alone."""
_NO_SOFTWARE: Final = "no CUDA toolkit, no PyTorch and no JupyterLab"
SUPPORTED_UNTIL: Final[Mapping[str, str]] = dict.fromkeys(
    (
        f"{framework}-cu129-ubuntu-{ubuntu}-nvidia-580"
        for framework in ("pytorch-2-9", "common")
        for ubuntu in UBUNTUS
    ),
    "2028-08-04",
)
"""Family -> the last day of its support, by Google's page; Google's API seldom tells it."""
SUPPORT_PAGE_OF: Final = "2026-04-10"
"""The date of that page."""
BAKED: Final = "aiinfra-bake"
"""The label of an image that Bake has made; its value is a digest of what is installed."""
FROM: Final = "aiinfra-from"
"""The label with the family of the image that it was made from."""
PROGRAMS: Final = "aiinfra-has"
"""The label with those of the programs of `_BRINGS` that it has, with "_" between them."""


@dataclass(frozen=True, kw_only=True)
class System:
    """An operating system."""

    name: str  # what people call it
    runs: bool = True  # whether start-up can run at all: it needs bash, Python 3 and systemd
    apt: bool = False  # whether its packages are installed by apt-get, as start-up does
    plain: bool = True  # whether the project's images have no driver of NVIDIA's


PUBLIC_SYSTEMS: Final[Mapping[str, System]] = {
    "almalinux-cloud": System(name="AlmaLinux"),
    "centos-cloud": System(name="CentOS"),
    "cos-cloud": System(name="Container-Optimized OS", runs=False),
    "debian-cloud": System(name="Debian", apt=True),
    "fedora-coreos-cloud": System(name="Fedora CoreOS", runs=False),
    "opensuse-cloud": System(name="openSUSE"),
    "oracle-linux-cloud": System(name="Oracle Linux"),
    "rhel-cloud": System(name="Red Hat Enterprise Linux"),
    "rocky-linux-accelerator-cloud": System(name="Rocky Linux", plain=False),
    "rocky-linux-cloud": System(name="Rocky Linux"),
    "suse-cloud": System(name="SUSE Linux Enterprise"),
    "ubuntu-os-cloud": System(name="Ubuntu", apt=True),
    "windows-cloud": System(name="Windows", runs=False),
}
"""The project of a public image, or of the license of an image made from one -> its system."""


def system_of(project: str, licenses: Iterable[str]) -> System | None:
    """The system of an image of a project with these licenses; None where neither tells."""
    named = [match[1] for it in licenses if (match := _PROJECT.search(it))]
    return next((PUBLIC_SYSTEMS[it] for it in (project, *named) if it in PUBLIC_SYSTEMS), None)


def takes_driver(family: str) -> bool:
    """Whether start-up can install NVIDIA's driver on a public image of that family."""
    return _INSTALLABLE.fullmatch(family) is not None


_RELEASE: Final = re.compile(r"(debian|ubuntu)(?:-[a-z]+)?-(\d{2}|\d{4})(?!\d)")
_FIRST_WITH_SLURM: Final = {"debian": 13, "ubuntu": 2404}
_OLD_SLURM: Final[Mapping[str, str]] = {"debian-12": "22.05", "ubuntu-2204": "21.08"}


def old_slurm(name: str) -> str:
    """Why an image or a family of that name can't be of a Slurm cluster; "" where it may.

    Versions: the packages of the systems on 2026-11-28.
    """
    found = _RELEASE.search(name)
    if found is None or int(found[2]) >= _FIRST_WITH_SLURM[found[1]]:
        return ""
    version = _OLD_SLURM.get("-".join(found.groups()), "older still")
    return (
        f"Slurm there is {version}; 23.11 is needed, as Ubuntu 24.04 has it, and Debian 13 a newer"
        " one: before it, a job whose head moves to another VM never ends"
    )


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What the name of a family says about its images."""

    ubuntu: str  # the release of Ubuntu, such as "2404"
    driver: int  # the branch of NVIDIA's driver, such as 580
    cuda: int | None = None  # the version of CUDA without its point, such as 129; None for no CUDA
    pytorch: tuple[int, ...] | None = None  # the version of PyTorch; None for no PyTorch

    @property
    def words(self) -> str:
        """It in words, such as "PyTorch 2.9, CUDA 12.9, NVIDIA's driver 580, Ubuntu 24.04"."""
        parts = [f"NVIDIA's driver {self.driver}", f"Ubuntu {self.ubuntu[:2]}.{self.ubuntu[2:]}"]
        if self.cuda is not None:
            parts.insert(0, f"CUDA {self.cuda // 10}.{self.cuda % 10}")
        if self.pytorch is not None:
            parts.insert(0, f"PyTorch {'.'.join(map(str, self.pytorch))}")
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of images."""

    project: str
    query: str  # what finds its families in Google's list: a `filter` of list
    arm: bool  # whether they are for Arm processors
    family: str  # the family that was the preferred one on 2026-11-22, where Google is not asked
    lacks: str = ""  # what the start-up and users miss on them, in words; "" for nothing
    # the branch of the driver that Google's documentation names for the machines; None for the
    # newest
    driver: int | None = None

    @property
    def architecture(self) -> str:
        """Their processors, by the API's name."""
        return "ARM64" if self.arm else "X86_64"


DEEP_LEARNING: Final = Line(
    project="deeplearning-platform-release",
    query='family eq "(pytorch|common)-.*-nvidia-[0-9]+"',
    arm=False,
    family="pytorch-2-9-cu129-ubuntu-2404-nvidia-580",
)
"""The Deep Learning VM images: CUDA, and PyTorch in the system's Python. There are none for Arm."""

ACCELERATOR: Final = Line(
    project="ubuntu-os-accelerator-images",
    query='family eq "ubuntu-accelerator-.*-amd64-with-nvidia-[0-9]+"',
    arm=False,
    family="ubuntu-accelerator-2404-amd64-with-nvidia-580",
    lacks=_NO_SOFTWARE,
    driver=580,
)
"""The accelerator images for x86: the drivers of GPU and network, and nothing else."""

ACCELERATOR_ARM: Final = Line(
    project="ubuntu-os-accelerator-images",
    query='family eq "ubuntu-accelerator-.*-arm64-with-nvidia-[0-9]+"',
    arm=True,
    family="ubuntu-accelerator-2404-arm64-with-nvidia-580",
    lacks=_NO_SOFTWARE,
    driver=580,
)
"""The accelerator images for Arm."""

LINES: Final = (DEEP_LEARNING, ACCELERATOR, ACCELERATOR_ARM)


def lacking(project: str) -> str:
    """What is missed on the images of a project, in words; "" for nothing."""
    return next((line.lacks for line in LINES if line.project == project), "")


def contents(family: str) -> Contents | None:
    """What the name of a family says; None for one that is of none of the lines."""
    match = _DEEP_LEARNING.fullmatch(family) or _ACCELERATOR.fullmatch(family)
    if match is None:
        return None
    said = match.groupdict()
    pytorch, cuda = said.get("pytorch"), said.get("cuda")
    return Contents(
        ubuntu=said["ubuntu"],
        driver=int(said["driver"]),
        cuda=int(cuda) if cuda else None,
        pytorch=tuple(map(int, pytorch.split("-"))) if pytorch else None,
    )


_NOTHING: Final = Contents(ubuntu="2404", driver=0)
_BRINGS: Final[Mapping[str, Callable[[Contents], bool]]] = {
    "docker": lambda said: said.pytorch is not None,
    "jupyter": lambda said: said.cuda is not None,
    "mpirun": lambda _: False,
    "nvcc": lambda said: said.cuda is not None,
    "torchrun": lambda said: said.pytorch is not None,
}
"""Program -> whether an image of these contents has it, by reports of 2026 on its images."""


def has(
    program: str, family: str, *, plain: bool = False, labels: Mapping[str, str] | None = None
) -> bool | None:
    """Whether an image has a program; None where nobody knows.

    `program`: what would be called, such as "torchrun". `plain`: whether it is of a system's own
    images, which have nothing for GPUs. `labels`: the image's labels, which tell it of one that
    Bake has made.
    """
    told = (labels or {}).get(PROGRAMS)
    if told is not None and program in _BRINGS:
        return program in told.split("_")
    said = _NOTHING if plain else contents(family)
    rule = _BRINGS.get(program)
    return None if said is None or rule is None else rule(said)


def project_of(family: str) -> str | None:
    """The project that has a family, by its name; None for one that is of none of the lines."""
    if contents(family) is None:
        return None
    is_accelerator = _ACCELERATOR.fullmatch(family) is not None
    return (ACCELERATOR if is_accelerator else DEEP_LEARNING).project


def is_of_a_login_shell(name: str) -> bool:
    """Whether a value of IMAGE_NAME is the one that a Deep Learning VM's login shells export.

    /etc/profile.d/env.sh does so: the image's family with "-stage", which is no image (2026-08).
    """
    family = name.removesuffix("-stage")
    return family != name and contents(family) is not None


def preferred(line: Line, families: Iterable[str]) -> str | None:
    """The best of several families; None if none of them is of one of the lines.

    In this order: an Ubuntu of `UBUNTUS`; PyTorch, the newest; the newest CUDA; the branch of the
    driver that is documented for the machines, else the newest; the preferred Ubuntu. Versions are
    compared as numbers: 2.10 is newer than 2.9.
    """

    def rank(said: Contents) -> tuple[bool, tuple[int, ...], int, bool, int, int]:
        known = said.ubuntu in UBUNTUS
        return (
            known,
            said.pytorch or (),
            said.cuda or 0,
            said.driver == line.driver,
            said.driver,
            -UBUNTUS.index(said.ubuntu) if known else 0,
        )

    read = {family: said for family in families if (said := contents(family)) is not None}
    return max(read, key=lambda family: (rank(read[family]), family), default=None)


def family_of(image: str) -> str:
    """The family that the name of one of Google's images says: its name without its date."""
    return _DATE.sub("", image)


def has_open_module(name: str) -> bool:
    """Whether an image or a family of that name has NVIDIA's open kernel module, as far as known.

    The Deep Learning VM images of the branches 570 and 580 have it, by reports of those who tried
    them with a P100 (2026-05-28); of other images with these drivers that is believed.
    """
    match = _WITH_DRIVER.search(name)
    return match is not None and int(match["driver"]) >= _FIRST_OPEN
