"""What a project has: the deployments of a state bucket, and the images that Bake has made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision import words
from provision.screens import amounts, layout
from provision.screens.layout import Look, Row
from provision.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provision.documents.deployed import Deployed
    from provision.documents.topology import OwnImage
    from provision.screens.layout import Line

_HOUR: Final = 3600
_PRICE: Final = "billed by the GB and month; the price list has no image storage"


def deployments(found: Sequence[Deployed], bucket: str, width: int) -> Iterator[Line]:
    """The list as lines."""
    number = counted(len(found), "deployment") if found else "No deployments"
    yield from layout.wrapped(f"{number} in {bucket}", width, look=Look.TITLE)
    for one, row in zip(found, layout.columns([_deployed(it) for it in found]), strict=True):
        look = Look.PLAIN if one.in_order else Look.BAD
        yield from layout.wrapped(row, width, first="  ", rest="      ", look=look)
        for trouble in one.trouble:
            yield from layout.wrapped(trouble, width, first="      ", rest="      ")


def _deployed(one: Deployed) -> tuple[str, ...]:
    machines = [f"{it.there:,} x {it.machine_type}" for it in one.machines if it.there]
    verdict = "not in order" if not one.in_order else "under way" if one.pending else "in order"
    return (
        one.name,
        f"{one.words} in {one.zone}" if one.words else "",
        ", ".join(machines) or "no machines",
        f"for {words.duration(float(one.hours) * _HOUR)}" if one.hours else "",
        amounts.per_hour(one.cost) if one.cost else "",
        verdict,
    )


def made(found: Sequence[OwnImage], width: int) -> Iterator[Line]:
    """The images that were just made, and how to use them."""
    for one in found:
        title = f"The image {one.name} is made; Destroy does not take it."
        yield from layout.wrapped(title, width, rest="    ", look=Look.GOOD)
        yield from Row("use it", f"IMAGE_PROJECT={one.project}").lines(width)
        yield from Row("", f"IMAGE_NAME={one.name}").lines(width)
        driver = f"with NVIDIA's driver {one.driver}, " if one.driver else ""
        made_from = f"what start-up installs on {one.made_from}"
        has = f"{made_from}, {driver}for disks from {one.disk_gb:,} GB"
        yield from Row("it has", has).lines(width)
        yield from Row("it costs", f"{_stored(one)}, {_PRICE}").lines(width)
        delete = f"gcloud compute images delete {one.name} --project {one.project}"
        yield from Row("delete it", delete).lines(width)


def listed(found: Sequence[OwnImage], width: int) -> Iterator[Line]:
    """All of a project, a row each; nothing without any."""
    if not found:
        return
    title = f"{counted(len(found), 'image')} that Bake made, {_PRICE}"
    yield from layout.wrapped(title, width, look=Look.TITLE)
    for row in layout.columns([_cells(it) for it in found]):
        yield from layout.wrapped(row, width, first="  ", rest="      ")


def _cells(one: OwnImage) -> tuple[str, ...]:
    state = "" if one.state == "READY" else one.state.lower()
    return one.name, f"since {one.made[:10]}", _stored(one), one.made_from, state


def _stored(one: OwnImage) -> str:
    return f"{one.stored_gb:,} GB" if one.stored_gb is not None else ""
