"""The images that Bake has made: the one, with the settings that use it, or all of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.screens import layout
from provision.screens.layout import Look, Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provision.documents.image import OwnImage
    from provision.screens.layout import Line

_PRICE: Final = "billed by the GB and month; the price list has no image storage"


def made(found: Sequence[OwnImage], width: int) -> Iterator[Line]:
    """The images that were just made, and how to use them."""
    for one in found:
        title = f"The image {one.name} is made; Destroy does not take it."
        yield from layout.wrapped(title, width, rest="    ", look=Look.GOOD)
        yield from Row("use it", f"IMAGE_PROJECT={one.project}").lines(width)
        yield from Row("", f"IMAGE_NAME={one.name}").lines(width)
        yield from Row("it has", _contents(one)).lines(width)
        yield from Row("it costs", f"{_stored(one)}, {_PRICE}").lines(width)
        delete = f"gcloud compute images delete {one.name} --project {one.project}"
        yield from Row("delete it", delete).lines(width)


def listed(found: Sequence[OwnImage], width: int) -> Iterator[Line]:
    """All of a project, a row each; nothing without any."""
    if not found:
        return
    title = f"{layout.counted(len(found), 'image')} that Bake made, {_PRICE}"
    yield from layout.wrapped(title, width, look=Look.TITLE)
    for row in layout.columns([_cells(it) for it in found]):
        yield from layout.wrapped(row, width, first="  ", rest="      ")


def _cells(one: OwnImage) -> tuple[str, ...]:
    state = "" if one.state == "READY" else one.state.lower()
    return one.name, f"since {one.made[:10]}", _stored(one), one.made_from, state


def _contents(one: OwnImage) -> str:
    driver = f"with NVIDIA's driver {one.driver}, " if one.driver else ""
    return f"what start-up installs on {one.made_from}, {driver}for disks from {one.disk_gb:,} GB"


def _stored(one: OwnImage) -> str:
    return f"{one.stored_gb:,} GB" if one.stored_gb is not None else ""
