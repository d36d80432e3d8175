"""The ways out of machines that don't reach the internet as others do: proxy, trust, mirrors."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.settings.model import Settings

T = TypeVar("T")

ALWAYS_AROUND: Final = ("metadata.google.internal", "169.254.169.254", "localhost", "127.0.0.1")
"""What no proxy can reach for somebody else: the metadata server is another one for each VM."""

_DOCKER_HUB: Final = "docker.io"
_OF_GKE: Final = "gke.gcr.io"  # where nodes get all that GKE itself runs on them, and so can reach


@dataclass(frozen=True, kw_only=True)
class Outbound:
    """How machines go out."""

    # the URL of the proxy; None for none, or for one that only this machine reaches
    proxy: str | None = None
    around: tuple[str, ...] = ()  # what is reached without it, beside `ALWAYS_AROUND`
    # the URL below which packages of all hosts but Google's are; None for none
    apt_mirror: str | None = None
    pip_index: str | None = None  # the URL of the index of Python packages; None for PyPI
    # where container images are instead: PLACE, or REGISTRY=PLACE
    image_mirrors: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """What the settings ask for."""
        of_here = urlsplit(settings.https_proxy or "").hostname in {"localhost", "127.0.0.1", "::1"}
        return cls(
            proxy=None if of_here else settings.https_proxy,
            around=settings.no_proxy or (),
            apt_mirror=settings.apt_mirror,
            pip_index=settings.pip_index,
            image_mirrors=settings.image_mirror or (),
        )

    @property
    def no_proxy(self) -> str:
        """The value of the variable."""
        return ",".join(dict.fromkeys((*self.around, *ALWAYS_AROUND)))

    def on_vms(self, certificates: str | None) -> dict[str, Any] | None:
        """What VMs set up; None where they go out as any other machine does."""
        found = {
            "proxy": self.proxy,
            "no_proxy": self.no_proxy if self.proxy else None,
            "certificates": certificates,
            "apt_mirror": self.apt_mirror,
            "pip_index": self.pip_index,
        }
        return found if any(found.values()) else None


def image(name: str, mirrors: Sequence[str]) -> str:
    """The name by which a container image is fetched: its digest and tag stay.

    `mirrors`: as `Outbound.image_mirrors`; that of a registry goes before that for all.
    """
    registry, _, path = name.partition("/")
    # As docker reads names: without a dot or a port, the first part is no registry.
    if not path or not ("." in registry or ":" in registry or registry == "localhost"):
        registry, path = _DOCKER_HUB, name if path else f"library/{name}"
    places = {source: place for source, _, place in (it.rpartition("=") for it in mirrors)}
    place = places.get(registry, None if registry == _OF_GKE else places.get(""))
    return posixpath.join(place, path) if place else name


def images(thing: T, mirrors: Sequence[str], *, but: str | None = None) -> T:
    """A Kubernetes object, or a list of them, with its container images from the mirrors.

    `but`: the user's own image, which is named as it is to be fetched.
    """
    if not mirrors:
        return thing
    return _replaced(thing, mirrors, but)  # type: ignore[return-value]  # of the same form


def _replaced(thing: object, mirrors: Sequence[str], but: str | None) -> object:
    if isinstance(thing, list | tuple):
        return [_replaced(it, mirrors, but) for it in thing]
    if not isinstance(thing, dict):
        return thing
    return {
        key: image(value, mirrors)
        if key == "image" and isinstance(value, str) and value != but
        else _replaced(value, mirrors, but)
        for key, value in thing.items()
    }
