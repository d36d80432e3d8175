"""What is left out of a plan where the provider remembers it: is that the default?

Terraform keeps the value of what is Optional and Computed when a configuration leaves it out: what
was set once stays for ever. Such a block or argument is always written, or it stands here with the
reason why what stays does no harm.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import hcl2

TREE: Final = Path(__file__).parents[2]
SCHEMAS: Final = TREE / "rehearsal" / "provider" / "schema" / "resources"
HARMLESS: Final = {
    "google_container_cluster.master_authorized_networks_config": "it is left out where no address"
    " is open, so that nobody is let in by it",
    "google_container_cluster.addons_config.ray_operator_config.ray_cluster_logging_config": "it"
    " is left out where the operator itself is switched off",
    "google_container_cluster.addons_config.ray_operator_config.ray_cluster_monitoring_config": "it"
    " is left out where the operator itself is switched off",
    "google_compute_instance_group_manager.target_size": "a group of flex start keeps its VMs, and"
    " requests make it grow",
    "google_container_node_pool.initial_node_count": "it is of the beginning, and ignored later",
    "google_container_node_pool.upgrade_settings": "a pool becomes one of flex start or a queue by"
    " being replaced",
    "google_container_node_pool.node_config.gpudirect_strategy": "a pool's RDMA becomes GKE's"
    " by being replaced",
    "google_container_node_pool.network_config.additional_node_network_configs": "another machine"
    " type replaces the pool, and so does another network",
    "google_compute_subnetwork.secondary_ip_range": "a prefix never changes its kind of cluster",
}


def _named(blocks: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and contents of blocks; the parser keeps the quotes of labels."""
    for name, content in blocks.items():
        yield name.strip('"'), content


def _dynamic(schema: Mapping[str, Any], body: Mapping[str, Any], path: str) -> Iterator[str]:
    """The paths of the blocks that a plan may leave out although the provider remembers them."""
    for name, content in _named(body):
        if name == "dynamic":
            for one in content:
                for of, dynamic in _named(one):
                    known = schema.get(of, {})
                    if "c" in known.get("flags", ""):
                        yield f"{path}.{of}"
                    for inner in dynamic["content"]:
                        yield from _dynamic(known.get("block", {}), inner, f"{path}.{of}")
        elif "c" in schema.get(name, {}).get("flags", "") and _may_be_null(content):
            yield f"{path}.{name}"
        elif isinstance(content, list) and "block" in schema.get(name, {}):
            for inner in content:
                yield from _dynamic(schema[name]["block"], inner, f"{path}.{name}")


def _may_be_null(value: object) -> bool:
    """Whether an argument's expression says that it may be left out."""
    return isinstance(value, str) and re.search(r"\bnull\b|\bone\(", value) is not None


def _left_out() -> Iterator[str]:
    for file in sorted((TREE / "terraform").rglob("*.tf")):
        if "tests" in file.parts:
            continue
        for resource in hcl2.loads(file.read_text()).get("resource", []):
            for kind, named in _named(resource):
                schema = json.loads((SCHEMAS / f"{kind}.json").read_text())["block"]
                for body in named.values():
                    yield from _dynamic(schema, body, kind)


def test_nothing_is_left_out_that_the_provider_would_keep_as_it_was() -> None:
    assert sorted(_left_out()) == sorted(HARMLESS)
