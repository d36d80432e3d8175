"""What the programs of this VM read of the group: its rank, its peers, their hostfile.

All is written whole or not at all, and again whenever the roster changes:

    /run/aiinfra/peers.env   NODE_RANK, NNODES, MASTER_ADDR, MASTER_PORT, NPROC_PER_NODE
    /run/aiinfra/hostfile    `ADDRESS slots=N` for each VM that is there, in order of rank
    /run/aiinfra/peers.json  all that is known

NODE_RANK is missing as long as this VM has none, MASTER_ADDR as long as nobody has rank 0.
WORLD_SIZE is not among them: it is a number of processes, which torchrun sets for its own.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, Mapping, NamedTuple

from aiinfra_vm import configuration, counted, roster

FOLDER = "run/aiinfra"
"""Where it is, below the root."""

_USUAL = frozenset({"NODE_RANK", "NNODES", "MASTER_ADDR", "MASTER_PORT", "NPROC_PER_NODE"})
_OF_OTHERS = {
    "JAX_COORDINATOR_IP": "MASTER_ADDR",
    "JAX_COORDINATOR_PORT": "MASTER_PORT",
    "JAX_NUM_PROCESSES": "NNODES",
    "JAX_PROCESS_ID": "NODE_RANK",
    "GPUS_PER_NODE": "NPROC_PER_NODE",  # of Google's GPU recipes
}
_MASTER_PORT = 29500  # torchrun's own default
_POLL = 1.0  # seconds


class Slots(NamedTuple):
    """How many processes a VM is to run: one a GPU, or one."""

    number: int

    @classmethod
    def of(cls, config: dict[str, Any]) -> Slots:
        """By the configuration of this VM, as all VMs of a group are equal."""
        gpus = config.get("gpus")
        return cls(int(gpus["count"]) if gpus else 1)


def environment(known: roster.Roster, name: str, slots: Slots) -> dict[str, str]:
    """The variables of one VM; all values are numbers or addresses, safe in any shell."""
    seat = known.seat(name)
    first = next((it.member.address for it in known.seats if it.rank == 0), None)
    return {
        **({} if seat is None else {"NODE_RANK": str(seat.rank)}),
        "NNODES": str(known.nnodes),
        **({} if first is None else {"MASTER_ADDR": first}),
        "MASTER_PORT": str(_MASTER_PORT),
        "NPROC_PER_NODE": str(slots.number),
    }


def launchers(usual: Mapping[str, str]) -> dict[str, str]:
    """What launchers read of the variables above, as far as those are there.

    torchrun takes the default of each option from PET_<OPTION> (torch/distributed/run.py), JAX its
    coordinator's address from JAX_COORDINATOR_ADDRESS (jax/_src/distributed.py), MaxText from _IP
    and _PORT (max_utils.py), and without them each of its machines trains alone. They are for
    commands and jobs alone: in a login shell, torchrun for one VM would wait for all.
    """
    found = {f"PET_{name}": text for name, text in usual.items() if name in _USUAL}
    if "MASTER_ADDR" in usual and "MASTER_PORT" in usual:
        found["JAX_COORDINATOR_ADDRESS"] = f"{usual['MASTER_ADDR']}:{usual['MASTER_PORT']}"
    return {**found, **{name: usual[own] for name, own in _OF_OTHERS.items() if own in usual}}


def hostfile(known: roster.Roster, slots: Slots) -> str:
    """The VMs that are there, as mpirun takes them."""
    there = (seat.member.address for seat in known.seats if seat.present)
    return "".join(f"{address} slots={slots.number}\n" for address in there)


def document(known: roster.Roster, name: str) -> dict[str, Any]:
    """All that is known, for programs: the roster, and this VM's place in it."""
    seat = known.seat(name)
    own = {"name": name, "rank": None if seat is None else seat.rank}
    return {**own, "complete": known.complete, **known.document()}


def write(known: roster.Roster, name: str, slots: Slots, folder: Path) -> None:
    """Write what has changed; the documents last, as who waits looks at that."""
    lines = "".join(f"{key}={text}\n" for key, text in environment(known, name, slots).items())
    put(folder / "hostfile", hostfile(known, slots))
    put(folder / "peers.env", lines)
    put(folder / "peers.json", json.dumps(document(known, name), indent=1) + "\n")


def put(file: Path, text: str, mode: int = 0o644) -> None:
    """Give a file a content, whole or not at all."""
    if file.exists() and file.read_text("utf-8") == text:
        return
    draft = file.with_name(f".{file.name}.new")
    # A job may be there before this VM has read the roster, which comes first elsewhere.
    draft.parent.mkdir(parents=True, exist_ok=True)
    draft.touch(mode)
    draft.chmod(mode)
    draft.write_text(text, "utf-8")
    draft.replace(file)


def missing(found: dict[str, Any] | None) -> str:
    """What keeps the group from being whole, in words; "" for nothing.

    `found`: the document of this VM; None if there is none yet.
    """
    if found is None:
        return (
            "the VMs have not agreed on their ranks: either Create has not said yet how many they"
            " are, or this VM's account may not write to the folder vms/ of the state folder"
            " (journalctl -u aiinfra-agent)"
        )
    if found["rank"] is None:
        return f"the group has {counted(found['nnodes'], 'VM')} without this one, which has no rank"
    there = [it for it in found["members"] if it["present"]]
    if len(there) == found["nnodes"]:
        return ""
    away = [it["name"] for it in found["members"] if not it["present"]]
    gone = f"; gone are {', '.join(sorted(away)[:5])}" if away else ""
    return (
        f"{len(there)} of {found['nnodes']} VMs have joined{gone}; the others get their ranks when"
        " they come"
    )


def read() -> dict[str, Any] | None:
    """The document of this VM; None if there is none yet."""
    try:
        found: dict[str, Any] = json.loads(Path("/", FOLDER, "peers.json").read_text("utf-8"))
    except FileNotFoundError:
        return None
    return found


def main() -> int:
    """`wait SECONDS`: until every rank has a VM that is there, or to say what is missing."""
    _, seconds = sys.argv[1:]
    deadline = time.monotonic() + float(seconds)
    while missing(read()) and time.monotonic() < deadline:
        time.sleep(_POLL)
    found = read()
    lacking = missing(found)
    if lacking:
        sys.stderr.write(f"after {float(seconds):g} seconds, {lacking}\n")
        return 1
    if found:
        known = environment(
            roster.parse(json.dumps(found).encode()), found["name"], Slots.of(configuration.load())
        )
        sys.stderr.write(f"{' '.join(f'{key}={text}' for key, text in known.items())}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
