"""What a GKE cluster costs: time beyond Google's own, plans of many pools, Kubernetes objects."""

from __future__ import annotations

import datetime as dt
import functools
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.measuring import Program, compared, row, timed
from provision.kinds.gke.kubernetes import manifests
from rehearsal import session
from rehearsal.cloud.server import Cloud
from rehearsal.cloud.store import Database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_RATE: Final = "0.5"
"""Two seconds of Google Cloud in one of ours: what the program itself takes counts twice."""
_POOLS: Final = 50
_GKE: Final = {"ORCHESTRATOR_TYPE": "gke", "SKIP_CHECKS": "quota"}
_WHOLE: Final = {
    **_GKE,
    "ZONE": "us-central1-c",
    "VM_TYPE": "a3-megagpu-8g",
    "INSTANCE_COUNT": "2",
    "NFS_FILESHARE_LIST": "/mnt/nfs:BASIC_SSD",
}
_MANY: Final = {
    **_GKE,
    "VM_TYPE": "g2-standard-24",
    "GKE_MIN_NODE_COUNT": "0",
    "GKE_MAX_NODE_COUNT": "1",
}
_QUEUE: Final = {
    **_GKE,
    "ZONE": "us-central1-b",
    "VM_TYPE": "a3-ultragpu-8g",
    "ENABLE_FLEX_START": "yes",
    "ENABLE_QUEUED_PROVISIONING": "yes",
    "ENABLE_RAY_OPERATOR": "yes",
}

# What has to be there before the operations of a kind can begin. GKE makes a cluster with a first
# pool, and that is deleted before others are made.
_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "networks": (),
    "subnetworks": ("networks",),
    "routers": ("networks",),
    "firewalls": ("networks",),
    "instances": ("networks",),
    "clusters": ("subnetworks",),
    "default-pool": ("clusters",),
    "nodePools": ("default-pool",),
}


def measure(environ: dict[str, str], runs: int) -> list[str]:
    """The rows of all tables."""
    return [*_create(environ), "", *_plans(environ, runs), "", *_objects(environ, runs)]


def _create(environ: Mapping[str, str]) -> list[str]:
    """One Create with all that takes Google's time, against what of that can't be side by side."""
    rate = float(_RATE)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        moved = {**environ, "CLOUD_CLOCK_RATE": _RATE}
        with Cloud(database=folder / session.DATABASE, environ=moved) as cloud:
            program = Program(folder, cloud.base_url, moved)
            whole = timed(functools.partial(program.run, "Create", **_WHOLE)) / rate
        spans = list(_spans(folder / session.DATABASE))
    longest: dict[str, float] = {}
    for kind, begin, end in spans:
        longest[kind] = max(longest.get(kind, 0.0), (end - begin) / rate)
    critical = max(_path(kind, longest) for kind in longest)
    operations = (max(end for _, _, end in spans) - min(begin for _, begin, _ in spans)) / rate
    return [
        "| seconds of cloud time | |",
        "| --- | --- |",
        f"| the operations that can't be side by side | {critical:.0f} |",
        f"| from the first operation's beginning to the last one's end | {operations:.0f} |",
        f"| the whole `Create`: ten networks, Filestore, two nodes, objects | {whole:.0f} |",
        f"| ratio, operations | {operations / critical:.3f} |",
        f"| ratio, whole `Create` | {whole / critical:.3f} |",
    ]


def _path(kind: str, longest: Mapping[str, float]) -> float:
    """Seconds from nothing to the end of the operations of a kind, all others side by side."""
    before = max((_path(it, longest) for it in _NEEDS[kind]), default=0.0)
    return before + longest.get(kind, 0.0)


def _spans(database: Path) -> Iterator[tuple[str, float, float]]:
    """Kind, begin and end (Unix epoch) of each operation that Terraform has begun."""
    opened = Database(database)
    try:
        with opened.transaction() as store:
            for collection in store.collections():
                if collection.endswith("/operations"):
                    for _, document in store.list(collection):
                        yield from _span(document)
    finally:
        opened.close()


def _span(document: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    about = document.get("metadata") or {}
    target = str(document.get("targetLink") or about.get("target"))
    collection, name = target.split("/")[-2:]
    kind = name if name == "default-pool" else collection
    # The others are parts of a pool.
    if kind in _NEEDS:
        since = str(document.get("startTime") or about.get("createTime"))
        yield kind, dt.datetime.fromisoformat(since).timestamp(), float(document["_end"])


def _plans(environ: dict[str, str], runs: int) -> list[str]:
    """Plan what exists, with one pool and with many."""
    both = {"one": "1", "many": str(_POOLS)}
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with Cloud(database=folder / session.DATABASE, environ=environ) as cloud:
            program = Program(folder, cloud.base_url, environ)
            calls: list[Callable[[], object]] = []
            for prefix, count in both.items():
                settings = {**_MANY, "GKE_NODE_POOL_COUNT": count}
                program.run("Create", prefix=prefix, **settings)
                calls.append(functools.partial(program.run, "Plan", prefix=prefix, **settings))
            return compared(
                ("`Plan` of 1 node pool that exists", f"`Plan` of {_POOLS} that exist"),
                (calls[0], calls[1]),
                runs,
            )


def _objects(environ: Mapping[str, str], runs: int) -> list[str]:
    """How long bringing all objects into a cluster takes, at first and when they are there."""
    own = {name: value for name, value in environ.items() if name != manifests.VARIABLE}
    first, again = [], []
    count = 0
    for _ in range(runs):
        with tempfile.TemporaryDirectory(prefix="bench-") as name:
            folder = Path(name)
            log = folder / "requests.jsonl"
            with Cloud(database=folder / session.DATABASE, environ=own, log=log) as cloud:
                program = Program(folder, cloud.base_url, own)
                program.run("Create", **_QUEUE)
                count, seconds = _applied(log)
                first.append(seconds)
                log.unlink()
                program.run("Create", **_QUEUE)
                again.append(_applied(log)[1])
    return [
        f"{count} Kubernetes objects, with stand-ins for Kueue and JobSet, which the image brings.",
        "",
        "| seconds | least | median | most |",
        "| --- | --- | --- | --- |",
        row("applied at first", first),
        row("applied again", again),
    ]


def _applied(log: Path) -> tuple[int, float]:
    """How many objects a run has applied, and the seconds from the first request to the last."""
    with log.open(encoding="utf-8") as lines:
        entries: Sequence[dict[str, Any]] = [json.loads(line) for line in lines]
    own = [entry for entry in entries if entry["path"].startswith("/kubernetes/")]
    return (
        sum(entry["method"] == "PATCH" for entry in own),
        own[-1]["time"] - own[0]["time"],
    )
