"""The public images that VMs boot from, and what is in them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rehearsal.cloud import facts

_FACTS: Final = facts.read("images")

WITHOUT_GSP: Final = frozenset(_FACTS["without_gsp"])
"""GPUs without the processor that NVIDIA's open kernel module needs: Pascal and Volta."""


PROGRAMS: Final[Mapping[str, list[str]]] = _FACTS["programs"]
"""Program -> the beginnings of the families of public images that have it."""

_TAKES: Final = frozenset(_FACTS["takes_driver"])


@dataclass(frozen=True, kw_only=True)
class Driver:
    """NVIDIA's driver, as an image has it."""

    version: str  # as nvidia-smi shows it
    open: bool  # whether its kernel module is the open one


@dataclass(frozen=True, kw_only=True)
class PublicImage:
    """A public image."""

    project: str
    family: str
    name: str  # its own name, mostly with the date of its making
    created: str  # that date, as "2026-09-09"
    disk_gb: int  # the smallest disk that can be made of it
    driver: Driver | None  # the driver that it has, or installs at its first boot; None for none
    jupyter: bool  # whether it has JupyterLab
    apt: bool  # whether its packages come by apt-get
    rdma: bool  # whether it has the driver of RDMA interfaces (mlx5, DOCA-OFED)
    deprecated: str | None = None  # since when it is deprecated; None if it is not
    deleted: str | None = None  # when it is to be deleted; None if Google has not said
    # the name of the image that Google suggests instead; None for none
    replacement: str | None = None

    @property
    def takes_driver(self) -> bool:
        """Whether Google's installer of drivers knows its system, which has none."""
        return self.driver is None and self.family in _TAKES

    @property
    def arm(self) -> bool:
        """Whether it is for Arm processors."""
        return "arm64" in self.family


def _all() -> Iterator[PublicImage]:
    drivers = {
        branch: Driver(version=it["version"], open=it["open"])
        for branch, it in _FACTS["drivers"].items()
    }
    for project, held in _FACTS["projects"].items():
        for entry in held["images"]:
            form = entry.get("name", f"{entry['family']}-v{{}}")
            for date in entry["versions"]:
                yield PublicImage(
                    project=project,
                    family=entry["family"],
                    name=form.format(date),
                    created=f"{date[:4]}-{date[4:6]}-{date[6:]}",
                    disk_gb=held["disk_gb"],
                    driver=drivers[entry["driver"]] if "driver" in entry else None,
                    jupyter=held.get("jupyter", False),
                    apt=held["apt"],
                    rdma=held["rdma"],
                    deprecated=entry.get("deprecated"),
                    deleted=entry.get("deleted"),
                    replacement=entry.get("replacement"),
                )


INSTALLED: Final = Driver(**{key: _FACTS["installed"][key] for key in ("version", "open")})
"""The driver that the installer puts on such a system, in its branch of long-term support."""

PROJECTS: Final = frozenset(_FACTS["projects"])  # the projects that hold public images

IMAGES: Final[Mapping[tuple[str, str], PublicImage]] = {
    (it.project, it.name): it for it in sorted(_all(), key=lambda it: it.name)
}
"""Project and name -> image, in the order of the names."""
