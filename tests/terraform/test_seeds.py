"""One env.list plans what published walk-throughs set up by hand; the reference is made of it."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import pytest

from provision.catalogue import gke_versions
from provision.deployment.deployment import RunInputs
from provision.google.owner import Owner
from provision.kinds.gke import variables as gke
from provision.settings.model import Settings
from provision.spec import cluster
from provision.state.location import StateLocation
from tests.conftest import Golden
from tests.terraform import kubernetes_page
from tests.terraform.conftest import Terraform
from tests.terraform.seeds import MANDATORY, PAGE, SEEDS, Seed

# Google offers others by now; which one does not matter here.
OFFERED = ["1.32.13-gke.1000", "1.33.1-gke.1107000"]
RUN = 'mock_provider "google" {}\n\nrun "plan" {\n  command = plan\n}\n'

HEAD = """\
# What three walk-throughs set up by hand, and what one env.list makes

This page is made by `tests/terraform/test_seeds.py`, of Terraform's plans and of what the builders
of Kubernetes objects give: where a row gives no reason, ours has what was set by hand, or a test
fails. "-" is nothing set. Of scripts it is said whether they have some words (`?`); of objects that
are alike the first is here, and all are compared.
"""


BY_GKE = """\
## What GKE manages since

All three wait in a queue, where pods can claim nothing: what is above stays ours. Without the
queue, GKE 1.36 and newer make the networks, install gIB and give pods the interfaces that they
claim ([ADR 87](adr/0087-gke-manages-rdma-where-it-can.md)). Of the first, that leaves:

{table}
"""


def _plan(terraform: Terraform, name: str, seed: Seed) -> dict[str, dict[str, Any]]:
    """The planned resources by address."""
    terraform.init("gke")
    folder = terraform.copy("gke", f"seed-{name}")
    settings = Settings(MANDATORY | seed.settings)
    version = gke_versions.settle(settings.gke_version, OFFERED, None)
    spec = dataclasses.replace(cluster.gke(settings), version=version)
    location = StateLocation("bucket", "dws-deployment", is_default=True)
    variables = gke.variables(spec, Owner("3f9c2a71"), location, RunInputs())
    root = terraform.folder / folder
    (root / "tests/seed.auto.tfvars.json").write_text(json.dumps(variables), encoding="utf-8")
    (root / "tests/seed.tftest.hcl").write_text(RUN, encoding="utf-8")
    done = terraform.run(folder, "test", "-json", "-verbose", "-filter=tests/seed.tftest.hcl")
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    plans = [it["test_plan"] for it in messages if it["type"] == "test_plan"]
    assert len(plans) == 1, done.stdout
    return {it["address"]: it["change"]["after"] for it in plans[0]["resource_changes"]}


@pytest.fixture(scope="session")
def plans(terraform: Terraform) -> dict[str, dict[str, dict[str, Any]]]:
    """By name of the walk-through."""
    return {name: _plan(terraform, name, seed) for name, seed in SEEDS.items()}


def _value(resource: Mapping[str, Any], path: str) -> object:
    """What stands at a path; None where a part of it is not there."""
    found: Any = resource
    for part in path.split("."):
        if part == "#":
            return len(found)
        if isinstance(found, list):
            found = found[int(part)] if int(part) < len(found) else None
        else:
            found = found.get(part)
        if found is None:
            return None
    result: object = found
    return result


@pytest.mark.parametrize("name", SEEDS)
def test_the_plan_has_what_was_set_by_hand_or_says_why_not(
    plans: dict[str, dict[str, dict[str, Any]]], name: str
) -> None:
    different = {
        field.words: (_value(plans[name][field.address], field.path), field.by_hand)
        for field in SEEDS[name].fields
        if _value(plans[name][field.address], field.path) != field.by_hand
    }

    assert set(different) == {field.words for field in SEEDS[name].fields if field.why}, different


def test_the_reference_shows_the_plans_field_by_field(
    plans: dict[str, dict[str, dict[str, Any]]], golden: Golden
) -> None:
    page = [HEAD]
    for name, seed in SEEDS.items():
        settings = "\n".join(f"    {key.upper()}={text}" for key, text in seed.settings.items())
        rows = [
            f"| {field.words} | {_cell(field.by_hand)} |"
            f" {_cell(_value(plans[name][field.address], field.path))} | {field.why} |"
            for field in seed.fields
        ]
        table = "\n".join(
            ["| field | by hand | our plan | why |", "| --- | --- | --- | --- |", *rows]
        )
        page.append(
            f"## {seed.title}\n\n    ORCHESTRATOR_TYPE=gke\n{settings}\n\n{table}\n\n"
            f"{kubernetes_page.part(name)}\n"
        )

    page.append(BY_GKE.format(table=kubernetes_page.by_gke(next(iter(SEEDS)))))
    golden.check(PAGE, "\n".join(page))


def _cell(value: object) -> str:
    return "-" if value is None else f"`{json.dumps(value)}`"
