"""The Kubernetes half of the reference of walk-throughs, from what the builders give."""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING

from provision.kinds.gke.kubernetes import jobs, stages
from provision.kinds.gke.kubernetes.objects import Object, from_yaml, title
from provision.settings.model import Settings
from provision.spec import cluster
from tests.kubernetes import samples
from tests.terraform import object_fields
from tests.terraform.kubernetes_reasons import WHY
from tests.terraform.kubernetes_seeds import SEEDS
from tests.terraform.seeds import MANDATORY
from tests.terraform.seeds import SEEDS as SETTINGS

if TYPE_CHECKING:
    from provision.spec.cluster import GkeSpec
    from tests.terraform.object_fields import Table


def tables(name: str) -> list[list[Table]]:
    """The tables of each object of a walk-through; of several alike all."""
    ours = _ours(name)
    return [list(object_fields.compare(thing, ours)) for thing in SEEDS[name]]


def part(name: str) -> str:
    """The part of the page for a walk-through; of several objects alike the first stands there."""
    return object_fields.page([alike[0] for alike in tables(name)], WHY)


def by_gke(name: str) -> str:
    """What is left of a walk-through's RDMA where GKE manages it: without a queue."""
    settings = SETTINGS[name].settings | {"enable_queued_provisioning": "no"}
    spec = cluster.gke(Settings(MANDATORY | settings))
    columns = [_counted(dataclasses.replace(spec, managed=it)) for it in (False, True)]
    rows = [
        f"| {what} | {' | '.join(str(it.get(what, '-')) for it in columns)} |"
        for what in dict.fromkeys([*columns[0], *columns[1]])
        if columns[0].get(what) != columns[1].get(what)
    ]
    return "\n".join(["| of our own | as by hand | by GKE |", "| --- | --- | --- |", *rows])


def _counted(spec: GkeSpec) -> dict[str, int]:
    """How many of what a cluster has: networks, objects of each kind, parts of a pod of Test."""
    networks = [it for kind in spec.network_kinds.values() for it in kind]
    ours = _objects(spec)
    (job,) = (it for called, it in ours.items() if called.endswith("nccl-all-gather"))
    pod = job["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    kinds = collections.Counter(
        it["kind"] for called, it in ours.items() if "name" in it["metadata"]
    )
    return {
        "VPC networks": len(networks),
        "subnetworks": sum(it.subnets for it in networks),
        **kinds,
        "pod: annotations for interfaces": sum(
            it.startswith("networking.gke.io/") for it in pod["metadata"]["annotations"]
        ),
        "pod: `resourceClaims`": len(pod["spec"].get("resourceClaims", ())),
    }


def _ours(name: str) -> dict[str, Object]:
    """What the same inputs make: kind and name, or the start of it -> the object."""
    return _objects(cluster.gke(Settings(MANDATORY | SETTINGS[name].settings)))


def _objects(spec: GkeSpec) -> dict[str, Object]:
    facts = samples.of_spec(spec)
    found = {title(thing): thing for stage in stages.own(facts) for thing in stage.objects}
    for file, text in jobs.render(facts).items():
        for thing in from_yaml(text):
            found[f"{thing['kind']} {thing['metadata']['generateName']}"] = thing
            found[f"{thing['kind']} {file.removesuffix('.yaml')}"] = thing
    return found
