"""The program's facts and the rehearsal's are from different places, and must not differ.

A rehearsal refuses what is wrong in the first that comes to Google; this names the rest, row by
row. Where Google's own lists differ from the program's on purpose, the reason stands here.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal

import pytest

from provision.catalogue import filestores, gke_versions, machine_sizes
from provision.catalogue import images as our_images
from provision.catalogue import machines as ours
from provision.catalogue import zones as our_places
from provision.kinds.gke.kubernetes import fabric_pods
from provision.preflight.future import Procurement
from provision.settings.model import Settings
from rehearsal.cloud import discovery
from rehearsal.cloud.compute import quotas
from rehearsal.cloud.container import rules, versions
from rehearsal.cloud.facts import filestore_tiers, images, machines, offers, places
from rehearsal.cloud.facts import gke_versions as their_versions
from rehearsal.cloud.kubernetes import pools

# Where one list has a machine type and the other has not: region -> why.
REGIONS_APART = {
    "europe-west8": "SkyPilot's list has parts of A3 High there, the list by region has not"
}


def _mib(gib: Decimal | None) -> int | None:
    return None if gib is None else round(gib * 1024)


def _differences(
    catalogue: Mapping[str, ours.MachineType], facts: Mapping[str, machines.Machine]
) -> Iterator[str]:
    """Each fact that two catalogues tell differently, by the machine's name."""
    for name, machine in catalogue.items():
        if name not in facts:
            yield f"{name}: Google's lists do not have it"
            continue
        theirs = facts[name]
        rows = {
            "vCPUs": (machine.vcpus, theirs.vcpus),
            "GPU": (machine.accelerator or "", theirs.gpu),
            "GPUs": (machine.gpus or 0, theirs.gpus),
            "takes GPUs": (machine.gpus is None, theirs.attachable),
            "MiB of memory": (_mib(machine_sizes.memory(name)), theirs.memory_mb),
            "local SSDs": (machine.local_ssds, theirs.local_ssds),
            "Arm": (machine.family.arm, theirs.is_arm),
            "flex start": (ours.may_flex_start(name), machines.may_flex_start(name)),
        }
        for what, (own, found) in rows.items():
            if own != found:
                yield f"{name}: {what}: the program has {own!r}, Google {found!r}"


def test_the_program_has_no_machine_otherwise_than_google() -> None:
    assert list(_differences(ours.MACHINE_TYPES, machines.MACHINES)) == []


@pytest.mark.parametrize("what", ["vcpus", "gpus", "local_ssds"])
def test_a_wrong_number_is_named_with_its_machine(what: str) -> None:
    machine = ours.MACHINE_TYPES["a3-highgpu-8g"]
    number = getattr(machine, what)
    wrong = {machine.name: replace(machine, **{what: number + 1})}
    (found,) = _differences(wrong, machines.MACHINES)
    assert found.startswith("a3-highgpu-8g: ")
    assert found.endswith(f"the program has {number + 1}, Google {number}")


def test_a_machine_that_google_has_not_is_named() -> None:
    made_up = {"a9-highgpu-8g": replace(ours.MACHINE_TYPES["a3-highgpu-8g"], name="a9-highgpu-8g")}
    (found,) = _differences(made_up, machines.MACHINES)
    assert found.startswith("a9-highgpu-8g: ")


def test_the_program_has_every_machine_with_gpus() -> None:
    with_gpus = {name for name, it in machines.MACHINES.items() if it.gpu or it.attachable}
    assert with_gpus == ours.MACHINE_TYPES.keys()


@pytest.mark.parametrize("name", ours.MACHINE_TYPES)
def test_a_job_that_asks_for_a_node_leaves_room_for_what_gke_runs_there(name: str) -> None:
    node = pools.Pool({"name": "np", "config": {"machineType": name}}).allocatable
    room = fabric_pods.room_on(name)
    assert room is not None
    assert Decimal("0.3") <= node["cpu"] - Decimal(room.milli_cpus) / 1000
    assert Decimal("0.5") <= node["memory"] / 2**30 - Decimal(room.mib) / 1024


def test_machines_are_offered_in_the_same_regions_but_for_those_apart() -> None:
    listed = our_places.OFFERS.machine_types.places
    for name in listed:
        for region in our_places.REGIONS:
            zones = our_places.ZONES[region]
            own = not all(our_places.OFFERS.machine_types.lacks(name, zone) for zone in zones)
            theirs = any(offers.has_machine(zone, name, frozenset()) for zone in zones)
            assert own == theirs or region in REGIONS_APART, (name, region)
    without_gpus = {name for name, it in ours.MACHINE_TYPES.items() if it.gpus is None}
    assert listed.keys() == ours.MACHINE_TYPES.keys() - without_gpus


def test_gpus_to_attach_are_in_the_same_regions_until_their_end_of_support() -> None:
    listed = our_places.OFFERS.accelerators
    for name, gpu in ours.ATTACHMENTS.items():
        ended = gpu.supported_until and gpu.supported_until <= "2026-09-22"
        for region, zones in our_places.ZONES.items():
            own = not ended and not all(listed.lacks(name, zone) for zone in zones)
            theirs = any(offers.has_gpu(zone, name, frozenset()) for zone in zones)
            assert own == theirs, (name, region)


def test_google_gives_machines_in_the_same_ways_where_the_program_is_certain() -> None:
    models = {
        ours.Consumption.ON_DEMAND: "STANDARD",
        ours.Consumption.SPOT: "SPOT",
        ours.Consumption.FLEX_START: "FLEX_START",
    }
    for name, machine in ours.MACHINE_TYPES.items():
        for way, model in models.items():
            own = machine.offered(way)
            theirs = offers.is_given(name, model, frozenset())
            assert own is ours.Offered.DOUBTFUL or theirs == (own is ours.Offered.YES), (name, way)


def test_machines_are_bound_to_their_reservation_alike() -> None:
    for name, machine in ours.MACHINE_TYPES.items():
        theirs = ours.Binding.NEVER
        if machines.always_bound(name):
            theirs = ours.Binding.ALWAYS
        elif machines.may_be_bound(name):
            theirs = ours.Binding.SOMETIMES
        if not machines.never_reserved(name):
            assert machine.family.binding is theirs, name


def test_machines_take_placement_policies_alike() -> None:
    for name, machine in ours.MACHINE_TYPES.items():
        assert machine.family.compact == machines.takes_compact(name), name
        assert bool(machine.family.topology) == machines.needs_policy(name), name


def test_attached_gpus_have_the_same_limits() -> None:
    assert {
        name: dict(it.max_vcpus) for name, it in ours.ATTACHMENTS.items()
    } == machines.MOST_VCPUS


def test_quotas_of_gpus_have_the_same_names() -> None:
    for name, gpu in ours.GPUS.items():
        own = f"NVIDIA_{gpu.quota_word}"
        metric = quotas.of_gpu(name, "us-central1", model="STANDARD").metric
        shared = gpu.quota is ours.GpuQuota.SHARED
        assert metric == ("GPUS_PER_GPU_FAMILY" if shared else f"{own}_GPUS"), name
        preemptible = quotas.of_gpu(name, "us-central1", model="SPOT").metric
        assert preemptible == f"PREEMPTIBLE_{own}_GPUS", name


def test_machines_with_a_gpu_network_have_the_same_one_and_as_many_interfaces() -> None:
    for name, machine in ours.MACHINE_TYPES.items():
        theirs = machines.MACHINES[name]
        own = machine.gpu_network.label if machine.gpu_network else None
        assert (own, machine.max_nics) == (theirs.gpu_network, theirs.most_nics), name
        assert machine.family.boot_disks == theirs.boot_disks, name


def test_the_zones_are_the_same() -> None:
    for region in {**our_places.ZONES, **places.ZONES}:
        own = set(our_places.ZONES.get(region, ()))
        assert own == {*places.ZONES.get(region, ()), *places.AI_ZONES.get(region, ())}, region
        ai = {zone for zone in own if our_places.is_ai_zone(zone)}
        assert ai == set(places.AI_ZONES.get(region, ())), region


@pytest.mark.parametrize("line", our_images.LINES, ids=lambda line: line.family)
def test_the_family_that_is_remembered_is_the_one_that_would_be_chosen(
    line: our_images.Line,
) -> None:
    held = [it for it in images.IMAGES.values() if it.project == line.project]
    usable = {it.family for it in held if it.deprecated is None and it.arm == line.arm}
    assert our_images.preferred(line, usable) == line.family


def test_the_same_images_have_the_open_module() -> None:
    for image in images.IMAGES.values():
        is_open = image.driver is not None and image.driver.open
        assert our_images.has_open_module(image.name) == is_open, image.name
        assert our_images.has_open_module(image.family) == is_open, image.family


def test_the_same_gpus_are_not_for_the_open_module() -> None:
    assert {gpu.name for gpu in ours.GPUS.values() if not gpu.open_module} == images.WITHOUT_GSP


def test_filestores_tiers_take_the_same_sizes_at_the_same_places() -> None:
    for tier in filestores.Tier:
        theirs = filestore_tiers.TIERS[tier]
        own = tuple((it.smallest, it.largest, it.step) for it in filestores.TIERS[tier])
        assert own == tuple((it[0], it[-1], it.step) for it in theirs.sizes), tier
        assert filestores.is_regional(tier) == theirs.is_regional, tier
        assert filestores.sizes_in_words(tier) == theirs.sizes_in_words
    assert filestore_tiers.TIERS.keys() == set(filestores.Tier)


def test_features_of_gke_come_with_the_same_versions() -> None:
    assert gke_versions.FLEX_START.version == rules.FLEX_START
    assert gke_versions.QUEUED.version == rules.QUEUED
    assert gke_versions.RAY_OPERATOR.version == rules.RAY_OPERATOR
    assert gke_versions.GPU_PARTS.version == rules.GPU_PARTS


def test_versions_of_gke_have_an_end_of_support_and_the_example_is_the_usual_one() -> None:
    assert all(gke_versions.supported_until(it) for it in versions.ALL)
    usual = versions.default("REGULAR")
    (example, *_) = Settings.model_fields["gke_version"].examples or [""]
    assert gke_versions.settle(str(example), versions.offered("REGULAR"), None) == usual


@pytest.mark.parametrize(
    "name", [name for name, it in ours.MACHINE_TYPES.items() if not it.family.arm]
)
def test_machines_come_to_gke_with_the_same_versions(name: str) -> None:
    floor = gke_versions.of_machine(name)
    for version in versions.ALL:
        lacking = their_versions.lacking(name, version)
        refused = floor.of(version) if floor and floor.refuses(version) else None
        assert refused == lacking, version


def test_the_states_of_future_reservations_are_those_of_googles_document() -> None:
    document = json.loads((discovery.folder() / "compute.v1.json").read_text("utf-8"))
    told = document["schemas"]["FutureReservationStatus"]["properties"]["procurementStatus"]
    assert set(told["enum"]) == set(Procurement)
