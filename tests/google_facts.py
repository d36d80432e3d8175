"""What Google's descriptions have that nobody has looked at yet, and which facts end when.

`make facts-check` prints it, and `make facts-check SEEN=yes` says that somebody has looked. A newer
description comes with a newer package: `make lock UPGRADE=google-api-python-client`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests import dated_facts, google_names
from tests.google_documents import APIS, TREE, document, values
from tests.google_enums import ENUMS

SEEN: Final = TREE / "tests" / "contract" / "discovery-seen.json"
"""Revisions, values of enums and fields of what we make, as somebody has looked at them."""

MADE: Final = (
    "compute.v1 AttachedDisk",
    "compute.v1 FutureReservation",
    "compute.v1 FutureReservationStatus",
    "compute.v1 Image",
    "compute.v1 Instance",
    "compute.v1 InstanceGroupManager",
    "compute.v1 InstanceGroupManagerResizeRequest",
    "compute.v1 InstanceProperties",
    "compute.v1 InstancesReportHostAsFaultyRequest",
    "compute.v1 ManagedInstance",
    "compute.v1 Network",
    "compute.v1 NetworkInterface",
    "compute.v1 Reservation",
    "compute.v1 ResourcePolicyWorkloadPolicy",
    "compute.v1 Scheduling",
    "compute.v1 UpcomingMaintenance",
    "container.v1 AddonsConfig",
    "container.v1 Cluster",
    "container.v1 NodeConfig",
    "container.v1 NodeNetworkConfig",
    "container.v1 NodePool",
    "container.v1 UpgradeSettings",
    "file.v1 Instance",
)
"""Schemas of what is made or read here: a new field of theirs may be what somebody asks for."""


def now() -> dict[str, Any]:
    """What the documents of the lock have, in the form of the file of the last look."""
    return {
        "revisions": {api: document(api)["revision"] for api in APIS},
        "enums": {it.place: " ".join(sorted(values(it.place))) for it in ENUMS},
        "fields": {place: " ".join(sorted(_fields(place))) for place in MADE},
    }


def _fields(place: str) -> Iterator[str]:
    api, _, schema = place.partition(" ")
    yield from document(api)["schemas"][schema]["properties"]


def changes(seen: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    """What somebody should look at, a line each."""
    for api, revision in found["revisions"].items():
        if (before := seen["revisions"].get(api)) != revision:
            yield f"{api}: revision {revision}, looked at {before or 'never'}"
    for kind in ("enums", "fields"):
        for place, words in found[kind].items():
            before, there = set(seen[kind].get(place, "").split()), set(words.split())
            if new := sorted(there - before):
                yield f"{place}: new {', '.join(new)}"
            if gone := sorted(before - there):
                yield f"{place}: gone {', '.join(gone)}"


def main(arguments: list[str]) -> int:
    """Print what changed since the last look; 1 if anything did."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seen", action="store_true", help="somebody has looked at it")
    is_seen = parser.parse_args(arguments).seen
    found = now()
    new = list(changes(json.loads(SEEN.read_text(encoding="utf-8")), found))
    lines = [f"{api:24} {revision}" for api, revision in found["revisions"].items()]
    lines += [f"{len(them):6,} {what}" for what, them in google_names.compared().items()]
    lines += [it.row for it in sorted(dated_facts.facts(), key=lambda it: it.end)]
    lines += new or ["nothing has changed since the last look"]
    sys.stdout.write("\n".join(lines) + "\n")
    if is_seen:
        SEEN.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return bool(new) and not is_seen


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
