"""The reservations that an env.list names."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rehearsal.presumption import texts
from rehearsal.presumption.things import MARK, Ask, Thing

_RESERVATION: Final = re.compile(
    r"(?:projects/(?P<project>[^/]+)/reservations/)?(?P<name>[^/]+)"
    r"(?:/reservationBlocks/(?P<block>[^/]+)(?:/reservationSubBlocks/(?P<part>[^/]+))?)?"
)


@dataclass(frozen=True, kw_only=True)
class _Machines:
    """Machines of one kind that are to come from a reservation."""

    reservation: re.Match[str]
    zone: str
    machine: str
    gpu: str
    gpus: str
    count: int


def of(settings: Mapping[str, str]) -> Iterator[Thing]:
    """The reservations, each as large as all that is to come from it."""
    wanted: dict[tuple[str, str], list[_Machines]] = {}
    for one in _reserved(settings):
        owner = one.reservation["project"] or settings["PROJECT_ID"]
        path = f"projects/{owner}/zones/{one.zone}/reservations"
        wanted.setdefault((path, one.reservation["name"]), []).append(one)
    for (path, name), reserved in wanted.items():
        yield _reservation(settings["PROJECT_ID"], path, name, reserved)


def _reserved(settings: Mapping[str, str]) -> Iterator[_Machines]:
    pools = settings.get("GKE_NODE_POOLS")
    for pool in _pools(pools) if pools else [{}]:
        text = pool.get("reservation") or settings.get("RESERVATION_NAME", "")
        match = _RESERVATION.fullmatch(text)
        if match is None:
            continue
        most = pool.get("max") or pool.get("count") or settings.get("GKE_MAX_NODE_COUNT")
        nodes = texts.number(most or settings.get("INSTANCE_COUNT", ""))
        yield _Machines(
            reservation=match,
            zone=pool.get("zone") or settings["ZONE"],
            machine=pool.get("vm_type") or settings.get("VM_TYPE") or texts.USUAL_MACHINE,
            gpu=pool.get("accelerator_type") or settings.get("ACCELERATOR_TYPE", ""),
            gpus=pool.get("gpu_count") or settings.get("GPU_COUNT", ""),
            count=nodes * (1 if pools else texts.number(settings.get("GKE_NODE_POOL_COUNT", ""))),
        )


def _pools(text: str) -> list[dict[str, str]]:
    """The pools of GKE_NODE_POOLS: `name=a,vm_type=...;name=b,...`."""
    pairs = ([pair.partition("=") for pair in texts.items(pool)] for pool in texts.items(text, ";"))
    return [{key.strip(): value.strip() for key, _, value in pool} for pool in pairs]


def _reservation(user: str, path: str, name: str, reserved: Sequence[_Machines]) -> Thing:
    first, count = reserved[0], str(sum(one.count for one in reserved))
    owner, zone = path.split("/")[1], path.split("/")[3]
    own = f"/compute/v1/{path}/{name}"

    def mend(found: Mapping[str, Any]) -> Sequence[Ask]:
        held = found["specificReservation"]
        same = held["instanceProperties"]["machineType"] == first.machine
        if not same or found["description"] != body["description"]:
            return thing.anew if is_free(found) else ()
        if held["count"] == count:
            return ()
        return [Ask("POST", f"{own}/resize", body={"specificSkuCount": count})]

    def is_free(found: Mapping[str, Any]) -> bool:
        return bool(found["specificReservation"].get("inUseCount", "0") == "0")

    body = _reservation_body(name, count, reserved)
    abroad = ""
    if owner != user:
        abroad = f" of {owner}"
        shared = {"shareType": "SPECIFIC_PROJECTS", "projectMap": {user: {"projectId": user}}}
        body["shareSettings"] = shared
    thing = Thing(
        f"the reservation {name} of {count} {first.machine} in {zone}{abroad}",
        own,
        [Ask("POST", f"/compute/v1/{path}", body=body)],
        own,
        mend,
        is_free,
    )
    return thing


def _reservation_body(name: str, count: str, reserved: Sequence[_Machines]) -> dict[str, Any]:
    first = reserved[0]
    properties: dict[str, Any] = {"machineType": first.machine}
    if first.gpu and first.machine.startswith("n1-"):
        gpus = {"acceleratorType": first.gpu, "acceleratorCount": texts.number(first.gpus)}
        properties["guestAccelerators"] = [gpus]
    # Only dense capacity has blocks; the cloud gives the first of them these names.
    block, part = first.reservation["block"], first.reservation["part"]
    called = [f"first block {block}"] if block else []
    called += [f"first sub-block {part}"] if part else []
    return {
        "name": name,
        "description": ", ".join([MARK, *called]),
        "specificReservationRequired": True,
        "specificReservation": {"count": count, "instanceProperties": properties},
        **({"deploymentType": "DENSE"} if block else {}),
    }
