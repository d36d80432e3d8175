"""The Kubernetes half of the reference of walk-throughs, from what the builders give."""

from __future__ import annotations

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
    from tests.terraform.object_fields import Table


def tables(name: str) -> list[list[Table]]:
    """The tables of each object of a walk-through; of several alike all."""
    ours = _ours(name)
    return [list(object_fields.compare(thing, ours)) for thing in SEEDS[name]]


def part(name: str) -> str:
    """The part of the page for a walk-through; of several objects alike the first stands there."""
    return object_fields.page([alike[0] for alike in tables(name)], WHY)


def _ours(name: str) -> dict[str, Object]:
    """What the same inputs make: kind and name, or the start of it -> the object."""
    spec = cluster.gke(Settings(MANDATORY | SETTINGS[name].settings))
    facts = samples.of_spec(spec)
    found = {title(thing): thing for stage in stages.own(facts) for thing in stage.objects}
    for file, text in jobs.render(facts).items():
        for thing in from_yaml(text):
            found[f"{thing['kind']} {thing['metadata']['generateName']}"] = thing
            found[f"{thing['kind']} {file.removesuffix('.yaml')}"] = thing
    return found
