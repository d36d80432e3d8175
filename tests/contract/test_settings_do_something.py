"""Every setting that a kind of cluster takes changes something of it, and every other is refused.

A setting that is taken and does nothing is a promise that is not kept.
"""

from typing import Final

import pytest

from provision.intake import load
from provision.settings.choices import Orchestrator
from provision.settings.model import BY_VARIABLES, OF_PROGRAM, Settings
from provision.spec import cluster
from provision.spec.cluster import ClusterSpec

MANDATORY: Final = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np", "ZONE": "us-central1-a"}
IN_SPEC: Final = {"capacity_timeout", "show_proxy_url", "skip_checks"}
"""Settings of the program that the specification hands on."""
OF_THE_RUN: Final = (OF_PROGRAM - IN_SPEC) | {
    *("ca_bundle", "impersonate", "team_defaults", "terraform_gcs_path")
}
"""Settings that are for the program, whatever the cluster is."""
_EXISTING: Final = {
    "NETWORK_CONFIG": "existing",
    "NETWORK": "vpc",
    "SUBNETWORK": "vms",
    "GKE_PODS_RANGE": "pods",
    "GKE_SERVICES_RANGE": "services",
}
OTHERS: Final = {
    "accelerator_type": ("nvidia-tesla-t4", {"VM_TYPE": "n1-standard-8", "GPU_COUNT": "1"}),
    "action": ("Destroy", {}),
    "capacity": ("spot", {}),
    "capacity_timeout": ("2h", {}),
    "disk_type": ("pd-balanced", {}),
    "enable_queued_provisioning": ("yes", {"GKE_MAX_NODE_COUNT": "2"}),
    "gke_pods_range": ("more-pods", _EXISTING),
    "gke_services_range": ("more-services", _EXISTING),
    "gke_max_pods_per_node": ("32", {}),
    "gpu_subnetworks": ("gpu-{1..8}", _EXISTING | {"VM_TYPE": "a3-megagpu-8g"}),
    "gpu_count": ("4", {"VM_TYPE": "n1-standard-8", "ACCELERATOR_TYPE": "nvidia-tesla-t4"}),
    "secure_boot": ("yes", {"IMAGE_PROJECT": "my-images", "IMAGE_NAME": "signed"}),
    "enable_kueue": ("no", {}),
    "make_firewall": ("yes", _EXISTING),
    "gke_min_node_count": ("1", {"GKE_MAX_NODE_COUNT": "4"}),
    "gke_node_pool_count": ("2", {}),
    "gke_release_channel": ("RAPID", {}),
    "gpu_driver_version": ("LATEST", {}),
    "image_project": ("my-project", {"IMAGE_NAME": "my-image"}),
    "kueue_queues": ("team-a:1", {}),
    "max_run_duration": ("12h", {"ENABLE_FLEX_START": "yes"}),
    "name_prefix": ("other", {}),
    "no_proxy": (".example.com", {"HTTPS_PROXY": "http://proxy.example.com:3128"}),
    "network": ("my-vpc", _EXISTING),
    "orchestrator_type": ("", {}),
    "ray_version": ("2.59.0", {}),
    "project_id": ("other-project", {}),
    "region": ("", {}),
    "reservation_name": ("r", {}),
    "secrets": ("A=projects/my-project/secrets/a", {"STARTUP_COMMAND": "true"}),
    "service_account": ("me@my-project.iam.gserviceaccount.com", {}),
    "subnetwork": ("gpu-vms", _EXISTING),
    "startup_restart": ("always", {"STARTUP_COMMAND": "true"}),
    "system_node_pool": ("max=4", {}),
    "vm_localfile_dest_path": ("/data", {}),
    "vm_type": ("a2-highgpu-1g", {}),
    "zone": ("us-central1-b", {}),
    "enable_node_ssh": ("no", {}),
    "enable_notebook": ("no", {}),
    "show_proxy_url": ("no", {"SERVICE_ACCOUNT": "me@my-project.iam.gserviceaccount.com"}),
    "gke_max_node_count": ("7", {"GKE_MIN_NODE_COUNT": "0"}),
    "enable_spot": ("yes", {}),
}
"""Field -> a value that is not its default, and what it needs; others have their example."""


def _spec(kind: Orchestrator, settings: Settings) -> ClusterSpec:
    return cluster.gke(settings) if kind is Orchestrator.GKE else cluster.vms(settings)


@pytest.mark.parametrize("kind", Orchestrator)
@pytest.mark.parametrize("field", sorted(set(BY_VARIABLES) - OF_THE_RUN))
def test_a_setting_changes_the_cluster_or_is_refused(field: str, kind: Orchestrator) -> None:
    about = Settings.model_fields[field]
    value, needs = OTHERS.get(field, (str((about.examples or [""])[0]), {}))
    if not value:
        return
    if value == "no" and _only_with(field) and kind.value not in _only_with(field):
        value = "yes"  # to turn off what is not there is no mistake
    known = {
        name: it
        for name, it in needs.items()
        if not _only_with(name.lower()) or kind.value in _only_with(name.lower())
    }
    base = MANDATORY | {"ORCHESTRATOR_TYPE": kind.value} | known
    without, loaded = load(base), load(base | {field.upper(): value})

    if any("no effect" in it.what and it.setting == field.upper() for it in loaded.problems):
        assert kind.value not in _only_with(field)
        return
    assert loaded.settings is not None, loaded.problems
    plain = without.settings or load(MANDATORY | {"ORCHESTRATOR_TYPE": kind.value}).settings
    assert plain is not None
    assert _spec(kind, plain) != _spec(kind, loaded.settings)


def _only_with(field: str) -> list[str]:
    extra = Settings.model_fields[field].json_schema_extra
    assert isinstance(extra, dict)
    kinds = extra["only_with"]
    assert isinstance(kinds, list)
    return [str(kind) for kind in kinds]
