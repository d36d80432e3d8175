"""The estimate: what is queued or empty costs nothing yet, and what is unknown is never free."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision.catalogue import machine_sizes, machines, prices
from provision.catalogue.filestores import Tier
from provision.catalogue.machines import Consumption
from provision.cost import estimate
from provision.documents import plain
from provision.documents.cost import Cost, Origin, Part, PartKind
from provision.kinds import registry
from provision.settings.model import Settings
from provision.spec.cluster import ClusterSpec
from rehearsal.cloud.facts import machines as facts

MANDATORY = {"project_id": "my-project", "name_prefix": "np", "zone": "us-central1-a"}
NOTHING = prices.Prices(origin=Origin.LIST, sources={}, rows={})


def spec(**settings: str) -> ClusterSpec:
    asked = Settings({**MANDATORY, **settings})
    made: ClusterSpec = registry.of(asked).spec(asked)
    return made


def cost(**settings: str) -> Cost:
    return estimate.of(spec(**settings), prices.listed())


def part(of: Cost, kind: PartKind) -> Part:
    (found,) = [it for it in of.parts if it.kind is kind]
    return found


def test_with_machines_that_run_now_is_what_they_cost_and_most_what_can_come() -> None:
    flex = {"vm_type": "a3-highgpu-8g", "instance_count": "4", "enable_flex_start": "yes"}
    waiting = cost(**flex)
    running = estimate.of(spec(**flex), prices.listed(), {"np-mig": 3})
    four = part(waiting, PartKind.MACHINES)
    three = part(running, PartKind.MACHINES)
    assert four.pool == "np-mig"
    assert (four.now, three.now) == (Decimal(0), Decimal("114.960114"))
    assert four.most == three.most == Decimal("153.280152")
    # Whatever it was that made more of them, they are billed.
    more = estimate.of(spec(**flex), prices.listed(), {"np-mig": 5})
    assert more.now.per_hour == more.most.per_hour > waiting.most.per_hour


def test_a_nat_counts_thirty_two_vms_and_its_addresses() -> None:
    def nat(count: int) -> Decimal | None:
        group = {"network_config": "new_network", "instance_count": str(count)}
        return part(cost(**group), PartKind.NAT).most

    assert nat(32) == nat(63) == Decimal("0.0498")
    # 64,512 ports of an address, 1,024 of them for each VM.
    assert nat(64) == Decimal("0.0548")
    # Those with addresses of their own do not use it.
    own = cost(network_config="new_network", enable_external_ip="yes")
    assert PartKind.NAT not in {it.kind for it in own.parts}


def test_a_hyperdisk_is_billed_for_what_google_provisions_unasked() -> None:
    # The example on Google's page: 43.35 USD a month for 255 GiB.
    asked = {"vm_type": "a3-ultragpu-8g", "enable_spot": "yes", "disk_size_gb": "255"}
    disk = part(cost(**asked), PartKind.DISKS)
    assert disk.most == (Decimal("43.35") / 730).quantize(Decimal("1e-6"))
    # 2,400 MiB/s and 160,000 IOPS are the most that a disk has.
    large = part(cost(**{**asked, "disk_size_gb": "65536"}), PartKind.DISKS)
    month = 65536 * Decimal("0.08") + 157_000 * Decimal("0.005") + 2260 * Decimal("0.04")
    assert large.most == (month / 730).quantize(Decimal("1e-6"))


@pytest.mark.parametrize(
    ("settings", "unknown"),
    [
        ({"vm_type": "a4x-highgpu-4g", "reservation_name": "mine"}, PartKind.MACHINES),
        ({"vm_type": "a3-ultragpu-8g", "reservation_name": "mine"}, PartKind.MACHINES),
        ({"vm_type": "n1-custom-8-30720", "accelerator_type": "nvidia-tesla-t4", "gpu_count": "1"},
         PartKind.MACHINES),
        ({"disk_type": "pd-extreme"}, PartKind.DISKS),
        ({"nfs_fileshare_list": "/mnt/x:ENTERPRISE:1024"}, PartKind.SHARES),
        ({"zone": "europe-west4-a", "nfs_fileshare_list": "/mnt/x:BASIC_SSD"}, PartKind.SHARES),
    ],
)  # fmt: skip
def test_what_has_no_price_is_named_and_the_rest_is_still_summed(
    settings: dict[str, str], unknown: PartKind
) -> None:
    found = cost(**settings)
    lacking = part(found, unknown)
    assert (lacking.now, lacking.most) == (None, None)
    assert "no price is known for" in str(lacking.remark)
    assert found.now.unknown == found.most.unknown == (lacking.name,)
    assert found.most.per_hour == sum(it.most for it in found.parts if it.most is not None) > 0
    assert plain(lacking)["most"] is None


def test_machines_that_are_not_there_cost_nothing_even_at_an_unknown_price() -> None:
    asked = spec(
        orchestrator_type="gke", vm_type="a3-ultragpu-8g", enable_flex_start="yes",
        gke_max_node_count="2", zone="asia-southeast1-b",
    )  # fmt: skip
    found = estimate.of(asked, prices.listed())
    machine = part(found, PartKind.MACHINES)
    assert (machine.now, machine.most) == (Decimal(0), None)
    assert found.now.unknown == ()
    assert machine.name in found.most.unknown
    assert found.at_most_in_all is None


def test_of_several_dates_the_oldest_counts_and_one_unknown_leaves_it_unknown() -> None:
    t4 = {"vm_type": "n1-standard-8", "gpu_count": "1"}
    known = part(cost(**t4, accelerator_type="nvidia-tesla-p4"), PartKind.MACHINES)
    assert known.dated == "2026-07-30"
    undated = part(cost(**t4, accelerator_type="nvidia-tesla-t4"), PartKind.MACHINES)
    assert undated.dated is None
    assert "SkyPilot" in str(undated.source)


def test_flex_start_without_a_discount_is_priced_as_on_demand_and_marked() -> None:
    flex = part(cost(vm_type="g2-standard-24", enable_flex_start="yes"), PartKind.MACHINES)
    assert flex.most == Decimal("2.000833")
    assert flex.is_estimate
    # Families with a discount of which the list does not know the price are not.
    a4 = {"vm_type": "a3-megagpu-8g", "enable_flex_start": "yes", "zone": "africa-south1-a"}
    assert part(cost(**a4), PartKind.MACHINES).most is None


def test_without_any_price_all_is_unknown_and_nothing_is_free() -> None:
    found = estimate.of(spec(orchestrator_type="gke"), NOTHING)
    assert {it.most for it in found.parts} == {None}
    assert found.most.per_hour == 0
    assert set(found.most.unknown) == {it.name for it in found.parts}


def test_the_json_has_prices_as_numbers() -> None:
    document = plain(cost())
    assert document["now"]["per_hour"] == pytest.approx(7.817523)
    assert isinstance(document["parts"][0]["most"], float)
    assert (document["currency"], document["prices"]) == ("USD", "list")


@given(*(st.integers(0, 5), st.integers(0, 5), st.integers(0, 20), st.integers(1, 4)))
def test_now_is_never_more_than_most_and_sums_are_those_of_the_parts(
    first: int, more: int, running: int, system: int
) -> None:
    wanted = {"orchestrator_type": "gke", "vm_type": "a2-highgpu-1g"}
    wanted |= {"gke_max_node_count": str(max(1, first + more)), "system_node_pool": f"max={system}"}
    queued = {"gke_min_node_count": "0", "enable_queued_provisioning": "yes"}
    for way in ({"gke_min_node_count": str(first)}, queued):
        asked = spec(**wanted | way)
        for counts in (None, {asked.pools[0].name: running}):
            found = estimate.of(asked, prices.listed(), counts)
            assert found.now.per_hour == sum(it.now or 0 for it in found.parts)
            assert found.most.per_hour == sum(it.most or 0 for it in found.parts)
            assert found.now.per_hour <= found.most.per_hour
            assert found.now.unknown == found.most.unknown == ()


def test_the_memory_that_is_billed_is_that_of_googles_own_lists() -> None:
    for name in machines.MACHINE_TYPES:
        assert round(1024 * (machine_sizes.memory(name) or 0)) == facts.MACHINES[name].memory_mb, (
            name
        )
    for name, machine in facts.MACHINES.items():
        shape = machine_sizes.billed(name)
        if shape is not None:
            assert round(1024 * shape.gib) == machine.memory_mb, name
            assert shape.vcpus <= machine.vcpus, name


def test_each_item_of_the_list_is_one_that_a_cluster_can_have() -> None:
    disks = {disk for row in machines.ROWS for disk in row.boot_disks}
    known = {
        *(prices.machine(name) for name in machines.MACHINE_TYPES),
        *(prices.gpu(name) for name in machines.ATTACHMENTS),
        *(made(series) for series in ("n1", "e2") for made in (prices.core, prices.memory)),
        *(made(kind) for kind in disks for made in (prices.disk, prices.iops, prices.throughput)),
        *(prices.share(tier) for tier in Tier),
        prices.CONTROL_PLANE, prices.NAT, prices.NAT_ADDRESS, prices.ADDRESS,
    }  # fmt: skip
    assert {item for item, _ in prices.listed().rows} <= known
    used = {key for there in prices.listed().rows.values() for _, key in there.values()}
    assert used == set(prices.listed().sources)


def test_spot_and_flex_start_have_prices_of_their_own() -> None:
    listed = prices.listed()
    for way in (Consumption.SPOT, Consumption.FLEX_START):
        own = listed.find(prices.machine("a3-megagpu-8g"), "us-central1", way)
        usual = listed.find(prices.machine("a3-megagpu-8g"), "us-central1")
        assert own is not None
        assert usual is not None
        assert own.usd < usual.usd
