"""Renew the dated lists from Google: `python -m provision.preflight.facts PROJECT_ID [FILE]`.

It reads what the project sees: the regions and zones, which zones have which machine types with
GPUs, and which have which GPUs to attach; and Google's price list, which is the same for all. The
catalogue's `offers.json` is rewritten, with the day of the answers; in `prices.json`, beside it,
a price that the price list does not have stays, with the day that it has; and in `sizes.json` a
machine type that the project does not see.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from provision import endpoints
from provision.catalogue import machines, prices, zones
from provision.catalogue.zones import Listing, Offers
from provision.codes import Code
from provision.cost import skus
from provision.errors import ProvisionError, SettingsError
from provision.google import auth
from provision.google.api import GoogleApi
from provision.time.clock import Clock
from provision.time.stages import Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_PAGE: Final = {"maxResults": "500"}
_FEWEST: Final = 2  # the program's name, and the project


def with_gpus(api: GoogleApi, project: str) -> list[dict[str, Any]]:
    """The machine types with GPUs of all zones that a project may use."""
    return [it for it in _every(api, project, "machineTypes") if it.get("accelerators")]


def sizes(types: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Machine type -> how large it is, as the catalogue has it, the smallest of a family first.

    Not of all types with local SSDs does Google say how many (karpenter-provider-gcp reads the
    description for lack of that), so what is known of one stays.
    """
    found: dict[str, dict[str, Any]] = {name: dict(it) for name, it in machines.SIZES.items()}
    for one in types:
        gpu = one["accelerators"][0]
        if not gpu["guestAcceleratorType"].startswith("nvidia-"):
            continue
        known, gib = found.get(one["name"], {}), one["memoryMb"] / 1024
        ssds = one.get("bundledLocalSsds", {}).get("partitionCount", known.get("local_ssds"))
        found[one["name"]] = {
            "vcpus": one["guestCpus"],
            "gib": int(gib) if gib.is_integer() else gib,
            "gpus": gpu["guestAcceleratorCount"],
            **({"local_ssds": ssds} if ssds else {}),
        }
    families = list(dict.fromkeys(map(_family, found)))
    in_order = sorted(
        found, key=lambda name: (families.index(_family(name)), found[name]["vcpus"], name)
    )
    return {name: found[name] for name in in_order}


def _family(machine_type: str) -> str:
    return "-".join(machine_type.split("-")[:2])


def write_sizes(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The sizes as a file has them, one machine type a line."""
    rows = (f"  {json.dumps(name)}: {json.dumps(size)}" for name, size in found.items())
    return "{\n" + ",\n".join(rows) + "\n}\n"


def read(api: GoogleApi, project: str, date: str, types: Iterable[dict[str, Any]]) -> Offers:
    """Read the lists.

    `project`: the ID of the project that asks; it only sees the zones that it may use. `types`: the
    machine types with GPUs that it sees.
    """
    regions: defaultdict[str, list[str]] = defaultdict(list)
    for zone in api.pages("GET", f"projects/{project}/zones", "items", _PAGE):
        region, _, suffix = zone["name"].rpartition("-")
        regions[region].append(suffix)
    known = [name for name, it in machines.MACHINE_TYPES.items() if it.gpus is not None]
    gpus = _every(api, project, "acceleratorTypes")
    attached = (it for it in gpus if it["name"] in machines.ATTACHMENTS)
    found = Offers(
        zones=_listing("zones.list", date, {name: sorted(it) for name, it in regions.items()}),
        machine_types=_listing("machineTypes.aggregatedList", date, _places(types, known)),
        accelerators=_listing(
            "acceleratorTypes.aggregatedList", date, _places(attached, machines.ATTACHMENTS)
        ),
    )
    if not any(found.machine_types.places.values()):
        raise SettingsError(
            f"{project} sees no machine type with GPUs",
            why="a list without any would make a note of every zone",
            fix="ask with a project that may use GPUs",
        )
    return found


def _every(api: GoogleApi, project: str, collection: str) -> Iterator[dict[str, Any]]:
    path = f"projects/{project}/aggregated/{collection}"
    for scope in api.pages("GET", path, "items", _PAGE):
        yield from scope.get(collection, [])


def _places(found: Iterable[dict[str, Any]], known: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Name -> its zones; a known name that is nowhere has none."""
    rows: dict[str, set[str]] = {name: set() for name in known}
    for one in found:
        rows.setdefault(one["name"], set()).add(one["zone"].rpartition("/")[2])
    return {name: sorted(where) for name, where in rows.items()}


def _listing(method: str, date: str, places: Mapping[str, Sequence[str]]) -> Listing:
    rows = {name: tuple(where) for name, where in places.items()}
    return Listing(source=f"Compute Engine, {method}", date=date, places=rows)


def changes(before: Offers, after: Offers) -> Iterator[str]:
    """Say what a renewed list has otherwise than the one before, one line for each row.

    A row that had regions without their zones is compared by its regions.
    """
    for name, old in vars(before).items():
        new: Listing = vars(after)[name]
        for row in sorted({*old.places, *new.places}):
            was, now = set(old.places.get(row, ())), set(new.places.get(row, ()))
            if name != "zones" and any(it in zones.ZONES for it in was):
                was, now = {_region(it) for it in was}, {_region(it) for it in now}
            if was != now:
                gone, come = sorted(was - now), sorted(now - was)
                yield f"{row}: " + "; ".join(
                    f"{word} {', '.join(it)}" for word, it in (("gone", gone), ("new", come)) if it
                )


def _region(place: str) -> str:
    return place if place in zones.ZONES else zones.region_of(place)


def main(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    """Renew the files, and say what changed.

    `argv`: the program's name, the project's ID, and perhaps another file to write for the
    catalogue's offers; the prices and sizes go beside it.
    """
    if len(argv) < _FEWEST:
        raise SettingsError(
            "PROJECT_ID is missing",
            code=Code.MISSING_SETTING,
            fix="make facts PROJECT_ID=<your project>",
        )
    file = Path(argv[2]) if len(argv) > _FEWEST else zones.FILE
    if file == zones.FILE and endpoints.is_rehearsal(environ):
        raise SettingsError(
            "Google Cloud is simulated here",
            why="the catalogue's facts must come from Google",
            fix="name another file, or leave the rehearsal",
        )
    progress = Progress(Clock.of(environ), lambda _: None)
    api = GoogleApi(auth.credentials(environ), environ, progress)
    today = dt.datetime.now(tz=dt.UTC).date()
    types = with_gpus(api, argv[1])
    found, sized = read(api, argv[1], today.isoformat(), types), sizes(types)
    before = prices.listed()
    after = prices.renewed(before, skus.ask(api, today))
    file.write_text(zones.write_offers(found), encoding="utf-8")
    file.with_name(prices.FILE.name).write_text(prices.write(after), encoding="utf-8")
    file.with_name(machines.SIZES_FILE.name).write_text(write_sizes(sized), encoding="utf-8")
    others = (
        f"{name}: is {it}, was {machines.SIZES.get(name, 'not known')}"
        for name, it in sized.items()
        if it != machines.SIZES.get(name)
    )
    lines = [*changes(zones.OFFERS, found), *others, *prices.changes(before, after)]
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    try:
        sys.stdout.write(main(sys.argv, os.environ))
    except ProvisionError as error:
        sys.exit("\n".join(f"{it.what}: {it.why}; {it.fix}" for it in error.problems))
