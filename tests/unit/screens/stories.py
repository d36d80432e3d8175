"""The documents of the most used stories, made from the examples as a run makes them."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from provision.catalogue import prices
from provision.cost import estimate
from provision.documents.cost import Cost
from provision.documents.deployed import Ending, Held
from provision.documents.plan import Change, Checks, Count, Loss, Plan, Quota
from provision.intake import Loaded, load
from provision.kinds import registry
from provision.kinds.vms import contents as of_vms
from provision.kinds.vms.kind import VM_GROUP
from provision.lifecycle import plan_document
from provision.spec import topology
from provision.words import counted

EXAMPLES = Path(__file__).parents[3] / "examples"
_ROLES = ("roles/logging.logWriter", "roles/monitoring.metricWriter")
_NODES = (
    "roles/artifactregistry.reader",
    *_ROLES,
    "roles/monitoring.viewer",
    "roles/stackdriver.resourceMetadata.writer",
)
STORIES: Mapping[str, Mapping[str, int]] = {
    name: {noun: int(number) for number, noun in (it.split(" ", 1) for it in added.split(", "))}
    for name, added in {
        "env": "1 group, 1 template, 1 dashboard, 1 service account, 2 role",
        "flex-start-h100": "1 group, 1 resize request, 1 template, 5 network, 5 subnetwork,"
        " 1 dashboard, 1 service account, 1 router, 1 Cloud NAT, 6 firewall rule, 2 role",
        "gke-a3-ultra-flex-queued": "1 cluster, 2 node pool, 3 network, 10 subnetwork,"
        " 2 service account, 1 router, 1 Cloud NAT, 3 firewall rule, 11 role",
        "gke-t4-a100-queued": "1 cluster, 3 node pool, 1 network, 1 subnetwork, 2 service account,"
        " 1 router, 1 Cloud NAT, 2 firewall rule, 11 role",
        "ray-gcs-filestore": "1 group, 1 template, 1 Filestore, 1 dashboard, 1 service account,"
        " 2 firewall rule, 4 role",
    }.items()
}
"""An example -> what a first Create of it adds."""


def first(example: str) -> tuple[Plan, Cost]:
    """The first Create of an example, with checks that passed."""
    plan, cost = of(_loaded(example))
    counts = tuple(
        Count(noun=noun, add=number, change=0, destroy=0)
        for noun, number in STORIES[example].items()
    )
    roles = _NODES if "gke" in example else _ROLES
    identities = tuple(dataclasses.replace(it, roles=roles) for it in plan.contents.identities)
    contents = dataclasses.replace(plan.contents, identities=identities)
    return dataclasses.replace(plan, counts=counts, contents=contents, checks=_checks(plan)), cost


def change(example: str, running: int, **settings: str) -> tuple[Plan, Cost]:
    """A Create of an example with other settings than its last one had."""
    before, now = _loaded(example), _loaded(example, settings)
    assert now.settings is not None
    plan, cost = of(now)
    given = {name.upper() for name in now.settings.model_fields_set}
    changed = plan_document.changed_settings(before.effective, now.effective, given)
    name = f"{plan.topology.name}-7b24bc23"
    loss = Loss(
        address="module.gpu_mig.google_compute_instance_template.gpu",
        noun="template",
        name=name,
        words=f"template {name} is replaced, for VMs that come",
    )
    return (
        dataclasses.replace(
            plan,
            change=Change.CHANGE,
            settings=changed,
            losses=(loss,),
            counts=(
                Count(noun="group", add=0, change=1, destroy=0),
                Count(noun="template", add=1, change=0, destroy=1),
            ),
            kept=of_vms.kept(VM_GROUP.spec(now.settings), running, [it.setting for it in changed]),
            checks=_checks(plan),
        ),
        cost,
    )


def ending(example: str) -> tuple[Ending, Cost]:
    """A Destroy of an example, of which all machines run."""
    loaded = _loaded(example)
    plan, _ = of(loaded)
    assert loaded.settings is not None
    spec = registry.of(loaded.settings).spec(loaded.settings)
    cost = estimate.of(spec, prices.listed(), {pool.name: pool.size.first for pool in spec.pools})
    is_gke = "gke" in example
    machines = [
        f"{counted(it.first, 'node' if is_gke else 'VM')}"
        f" {'runs' if it.first == 1 else 'run'}: {it.machine_type} in {it.zone}"
        f", for {'up to ' if it.first > 1 else ''}2 d 3 h"
        for it in plan.topology.machines
        if it.first
    ]
    return (
        Ending(
            name=plan.topology.name,
            words=plan.topology.what,
            zone=plan.topology.machines[0].zone,
            machines=tuple(machines),
            running=sum(it.first for it in plan.topology.machines),
            counts=dict(STORIES[example]),
            data=tuple(
                Held(words=f"Filestore np-nfs-1a2b3c4d, {it.size_gb} GB, with all its files")
                for it in plan.topology.stores
                if it.size_gb
            ),
        ),
        cost,
    )


def of(loaded: Loaded) -> tuple[Plan, Cost]:
    """What settings describe, and what that costs."""
    assert loaded.settings is not None, loaded.problems
    kind = registry.of(loaded.settings)
    spec = kind.spec(loaded.settings)
    plan = Plan(change=Change.NEW, topology=topology.of(spec), contents=kind.contents(spec))
    return plan, estimate.of(spec, prices.listed())


def _loaded(example: str, settings: Mapping[str, str] | None = None) -> Loaded:
    file = EXAMPLES / ("env.list" if example == "env" else f"{example}.env.list")
    return load({"ACTION": "Plan"}, file, flags=settings or {})


def _checks(plan: Plan) -> Checks:
    gpu = plan.topology.machines[0].gpu or ""
    metric = f"NVIDIA_{gpu.partition(' ')[0]}_GPUS"
    quota = Quota(metric=metric, limit=128, used=0, needed=16)
    return Checks(made=14, skipped=(), seconds=1.14, permissions=31, apis=6, quotas=(quota,))
