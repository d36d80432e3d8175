"""What a plan has to replace beside what Terraform sees, and a move in words."""

from typing import Any

import pytest

from provision.catalogue import names
from provision.terraform import moves
from provision.terraform import plan as plans

REGION = "https://www.googleapis.com/compute/v1/projects/p/regions/us-central1"
GLOBAL = "https://www.googleapis.com/compute/v1/projects/p/global"


def _change(
    address: str,
    actions: str,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    type_ = address.split(".", maxsplit=1)[0]
    change = {"actions": actions.split(), "before": before, "after": after}
    return {"address": address, "type": type_, "change": change, **more}


def _subnetwork(actions: str, after: str = "10.0.0.0/16", **more: Any) -> dict[str, Any]:
    before = {
        "ip_cidr_range": "10.0.0.0/16",
        "network": f"{GLOBAL}/networks/np-net",
        "self_link": f"{REGION}/subnetworks/s",
    }
    return _change("google_compute_subnetwork.s", actions, before, {"ip_cidr_range": after}, **more)


def _network(actions: str) -> dict[str, Any]:
    return _change("google_compute_network.n", actions, {"name": "np-net"}, {})


def _group(actions: str, template: str = "old") -> dict[str, Any]:
    version = {"instance_template": f"{GLOBAL}/instanceTemplates/{template}"}
    before = {"version": [version], "zone": "us-central1-b", "target_size": 4}
    after = {"zone": "us-central1-a", "target_size": 2}
    return _change("google_compute_instance_group_manager.g", actions, before, after)


def _template(name: str, subnetwork: str) -> dict[str, Any]:
    before = {
        "self_link": f"{GLOBAL}/instanceTemplates/{name}",
        "network_interface": [{"subnetwork": f"{REGION}/subnetworks/{subnetwork}"}],
    }
    return _change("google_compute_instance_template.t", "create delete", before, {})


def _replaced_too(*changes: dict[str, Any]) -> list[str]:
    return moves.replaced_too({"resource_changes": list(changes)})


def test_a_network_goes_with_its_subnetwork_where_both_ranges_would_be_in_it() -> None:
    network = "google_compute_network.n"

    assert _replaced_too(_network("no-op"), _subnetwork("create delete")) == [network]
    assert _replaced_too(_network("no-op"), _subnetwork("create delete", "10.1.0.0/16")) == []
    assert _replaced_too(_network("no-op"), _subnetwork("delete create")) == []
    assert _replaced_too(_network("no-op"), _subnetwork("update")) == []
    assert _replaced_too(_network("create delete"), _subnetwork("create delete")) == []


@pytest.mark.parametrize(
    "network",
    [
        {"name": names.NETWORK.at("np", "us-central1")},
        {"name": names.GPU_NETWORK.at("np", "us-central1", "8244"), "mtu": 8244},
        {
            "name": names.GPU_NETWORK.at("np", "us-central1-a-vpc-roce", "8896"),
            "network_profile": "projects/p/global/networkProfiles/us-central1-a-vpc-roce",
            "mtu": 8896,
        },
    ],
)
def test_an_empty_network_goes_where_it_would_get_a_subnetwork_of_another_place(
    network: dict[str, Any],
) -> None:
    address, path = "google_compute_network.n", f"projects/p/global/networks/{network['name']}"
    kept, replaced = (_change(address, it, network, network) for it in ("no-op", "delete create"))
    here, there = (
        _change("google_compute_subnetwork.s", "create", None, {"region": it, "network": path})
        for it in ("us-central1", "europe-west4")
    )
    before = {"network": path, "self_link": f"{REGION}/subnetworks/other"}
    other = _change("google_compute_subnetwork.other", "no-op", before, before)
    assert _replaced_too(kept, here) == []
    assert _replaced_too(kept, there) == ([] if "network_profile" in network else [address])
    assert _replaced_too(kept, there, other) == []
    assert _replaced_too(replaced, there) == []


def test_a_network_is_replaced_where_its_mtu_would_change() -> None:
    def network(actions: str, mtu: int) -> dict[str, Any]:
        before, after = {"name": "np-net", "mtu": 8244}, {"name": "np-net", "mtu": mtu}
        return _change("google_compute_network.n", actions, before, after)

    assert _replaced_too(network("update", 8896)) == ["google_compute_network.n"]
    assert _replaced_too(network("update", 8244)) == []
    assert _replaced_too(network("delete create", 8896)) == []


def test_a_firewall_rule_that_a_killed_run_left_in_the_old_network_is_made_anew() -> None:
    def rule(actions: str, network: str) -> dict[str, Any]:
        before = {"name": "np-iap", "network": f"{GLOBAL}/networks/np-net"}
        after = {"name": "np-iap", "network": f"projects/p/global/networks/{network}"}
        return _change("google_compute_firewall.r", actions, before, after)

    assert _replaced_too(rule("update", "np-net-2")) == ["google_compute_firewall.r"]
    assert _replaced_too(rule("update", "np-net")) == []
    assert _replaced_too(rule("delete create", "np-net-2")) == []


def test_the_firewall_rules_of_a_network_are_replaced_with_it_in_one_more_plan() -> None:
    network = _network("no-op")
    here, there = ({"name": "r", "network": f"{GLOBAL}/networks/{it}"} for it in ("np-net", "x"))
    rules = [
        _change("google_compute_firewall.a[0]", "no-op", here, here),
        _change("google_compute_firewall.b", "create delete", here, here),
        _change("google_compute_firewall.c", "no-op", there, there),
        _change("google_compute_firewall.d", "create", None, here),
    ]
    too = _replaced_too(network, _subnetwork("create delete"), *rules)
    assert too == [network["address"], "google_compute_firewall.a[0]"]
    assert _replaced_too(network, *rules) == []


def test_what_is_replaced_too_is_told_by_what_people_call_it() -> None:
    addresses = [
        *(f'module.gpu_networks.google_compute_network.gpu["{it}"]' for it in range(2)),
        "module.network.google_compute_firewall.iap_ssh[0]",
    ]
    assert moves.in_words(addresses) == "2 networks and 1 firewall rule"


def test_a_group_goes_with_a_subnetwork_that_its_vms_have_an_interface_in() -> None:
    group = "google_compute_instance_group_manager.g"
    used, unused = _template("old", "s"), _template("old", "another")

    assert _replaced_too(_group("update"), used, _subnetwork("delete")) == [group]
    assert _replaced_too(_group("update"), used, _subnetwork("create delete")) == [group]
    assert _replaced_too(_group("update"), used, _subnetwork("no-op")) == []
    assert _replaced_too(_group("update"), unused, _subnetwork("delete")) == []
    assert _replaced_too(_group("delete create"), used, _subnetwork("delete")) == []


def test_a_group_is_replaced_whose_new_template_is_in_another_network() -> None:
    group, ours = "google_compute_instance_group_manager.g", "projects/p/regions/us-central1"
    for before, after, replaced in (
        ("default", [f"{ours}/subnetworks/default"], []),
        ("default", [f"{REGION}/subnetworks/np-primary"], [group]),
        # A company calls the subnetworks of all its host projects alike.
        ("default", ["projects/other/regions/us-central1/subnetworks/default"], [group]),
        # More interfaces are for new VMs; another subnetwork of one that there is, is a move.
        ("default", [f"{REGION}/subnetworks/{it}" for it in ("default", "gpu-1")], []),
        ("default gpu-1", [f"{ours}/subnetworks/{it}" for it in ("default", "gpu-1")], []),
        ("default gpu-1", [f"{ours}/subnetworks/{it}" for it in ("default", "gpu-2")], [group]),
        # One that is yet to be made has no name.
        ("default", [None], [group]),
    ):
        template = _template("old", "default")
        for side, found in (
            ("before", [f"{REGION}/subnetworks/{it}" for it in before.split()]),
            ("after", after),
        ):
            interfaces = [{"subnetwork": it} if it else {"nic_type": "GVNIC"} for it in found]
            template["change"][side]["network_interface"] = interfaces
        assert _replaced_too(template, _group("update")) == replaced


def test_a_cluster_without_multi_networking_is_replaced_for_a_pool_with_networks() -> None:
    def cluster(actions: str, *, on: bool) -> dict[str, Any]:
        values = {"name": "np-gke", "enable_multi_networking": on}
        return _change("google_container_cluster.c", actions, values, values)

    def pool(*interfaces: dict[str, str], **network: str) -> dict[str, Any]:
        made = {"additional_node_network_configs": list(interfaces), **network}
        values = {"network_config": [made]}
        return _change("google_container_node_pool.p", "delete create", values, values)

    more = {"network": "np-gpu-net-1", "subnetwork": "np-gpu-subnet-1"}
    assert _replaced_too(cluster("no-op", on=False), pool(more)) == ["google_container_cluster.c"]
    assert _replaced_too(cluster("no-op", on=False), pool()) == []
    assert _replaced_too(cluster("no-op", on=True), pool(more)) == []
    by_gke = pool(more, accelerator_network_profile="auto")
    assert _replaced_too(cluster("no-op", on=False), by_gke) == []


def test_a_subnetwork_is_replaced_with_its_cluster_where_a_range_of_pods_would_change() -> None:
    def ranged(actions: str, **after: str) -> dict[str, Any]:
        found = _subnetwork(actions)
        pods = {"pods": "10.16.0.0/12"}
        for values, ranges in (
            (found["change"]["before"], pods),
            (found["change"]["after"], after),
        ):
            values["secondary_ip_range"] = [
                {"range_name": name, "ip_cidr_range": cidr} for name, cidr in ranges.items()
            ]
        return found

    values = {"name": "np-gke", "subnetwork": "projects/p/regions/us-central1/subnetworks/s"}
    cluster = _change("google_container_cluster.c", "no-op", values, values)
    subnetwork = "google_compute_subnetwork.s"
    assert _replaced_too(cluster, ranged("update", pods="10.64.0.0/21")) == [subnetwork]
    assert _replaced_too(cluster, ranged("update", more="10.16.0.0/12")) == [subnetwork]
    assert _replaced_too(cluster, ranged("update", pods="10.16.0.0/12", more="10.1.0.0/20")) == []
    replaced = ranged("delete create", pods="10.64.0.0/21")
    assert _replaced_too(cluster, replaced) == ["google_container_cluster.c"]


def test_the_pools_of_a_cluster_go_with_it_and_what_an_ended_move_left_replaces_nothing() -> None:
    cluster = _change("google_container_cluster.c", "delete create", {"name": "np-gke"}, {})
    pool = _change("google_container_node_pool.p", "no-op", {"name": "np-system"}, {})
    assert _replaced_too(cluster, pool) == ["google_container_node_pool.p"]
    old = _subnetwork("delete", deposed="1a2b3c4d")
    assert _replaced_too(_group("no-op"), _template("old", "s"), old) == []


def test_vms_of_a_replaced_flex_start_group_are_missed_unless_the_plan_asks_for_them() -> None:
    flex = _group("delete create")
    flex["change"]["after"]["target_size"] = None
    request = _change("google_compute_resize_request.r", "create", None, {"name": "np-2"})

    assert plans.read({"resource_changes": [flex]}).emptied == 4
    assert plans.read({"resource_changes": [flex, request]}).emptied == 0
    assert plans.read({"resource_changes": [_group("delete create")]}).emptied == 0
    flex["change"]["actions"] = ["update"]
    assert plans.read({"resource_changes": [flex]}).emptied == 0


def test_a_group_that_is_replaced_for_its_workload_policy_alone_is_told_from_others() -> None:
    group = _group("delete create")
    for paths, is_told in {
        (("resource_policies", 0, "workload_policy"),): True,
        (("resource_policies",), ("zone",)): False,
        (): False,
    }.items():
        group["change"]["replace_paths"] = [list(it) for it in paths]
        assert plans.read({"resource_changes": [group]}).unbinds is is_told


def test_a_moved_group_and_a_moved_node_pool_are_told_by_their_machines() -> None:
    plan = plans.read({"resource_changes": [_network("delete create"), _group("delete create")]})
    assert [loss.words for loss in plan.losses] == [
        "4 VMs in us-central1-b end, 2 begin in us-central1-a",
        "network np-net is replaced",
    ]
    before = {"name": "np-a", "node_count": 1, "node_locations": ["us-central1-b"]}
    after = {"name": "np-a", "node_locations": ["us-central1-a"]}
    for count, words in {
        1: "1 node in us-central1-b ends",
        None: "all nodes in us-central1-b end",
    }.items():
        before["node_count"] = count
        pool = _change("google_container_node_pool.p", "delete create", before, after)
        told = f"node pool np-a: {words}, new ones begin in us-central1-a"
        assert moves.sentence(pool) == told
    assert moves.sentence(_network("delete create")) is None
