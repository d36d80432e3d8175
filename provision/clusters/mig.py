"""A managed instance group of GPU VMs: settings to Terraform's variables, outputs to words."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from provision import gpu_networks, machines
from provision.clusters import Kind
from provision.settings.choices import Network

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.google_api import GoogleApi
    from provision.settings import Settings

kind = Kind.MIG


def variables(
    settings: Settings, cluster_id: str, image: Mapping[str, str | None]
) -> dict[str, Any]:
    """Make the variables of `terraform/mig`; `Cluster.variables` has the arguments."""
    return {
        "project_id": settings.project_id,
        "name_prefix": settings.name_prefix,
        "cluster_id": cluster_id,
        "region": settings.region,
        "zone": settings.zone,
        "labels": dict(settings.labels),
        "network_config": str(settings.network_config),
        "gpu_networks": _gpu_networks(settings),
        "group": {
            "instance_count": settings.instance_count,
            "machine_type": settings.vm_type,
            "gpu": _attached_gpu(settings),
            "metadata": dict(settings.metadata),
            "external_ip": settings.enable_external_ip,
        },
        "image": _image(settings, image),
        "boot_disk": {"size_gb": settings.disk_size_gb, "type": str(settings.disk_type)},
        "service_account": _service_account(settings.service_account),
    }


def connection(settings: Settings, outputs: Mapping[str, Any], api: GoogleApi) -> dict[str, Any]:
    """The VMs and how to open a shell on each; `Cluster.connection` has the arguments."""
    project, zone = settings.project_id, outputs["group"]["zone"]
    found = api.labelled_instances(project, zone, "aiinfra-cluster", outputs["cluster_id"])
    return {"vms": [_vm(instance, project, zone) for instance in found]}


def _gpu_networks(settings: Settings) -> list[dict[str, Any]]:
    """The networks of the second interface and those after it, in their order."""
    if settings.network_config is not Network.MULTI_NIC:
        return []
    machine = machines.lookup(settings.vm_type)
    return [dataclasses.asdict(network) for network in gpu_networks.beside_the_first(machine)]


def _attached_gpu(settings: Settings) -> dict[str, Any] | None:
    """The GPUs to attach, which N1 alone takes; all other machine types bring their own."""
    if not settings.vm_type.startswith("n1-"):
        return None
    if not settings.accelerator_type or not settings.gpu_count:
        return None
    return {"type": settings.accelerator_type, "count": settings.gpu_count}


def _image(settings: Settings, settled: Mapping[str, str | None]) -> dict[str, str | None]:
    family = None if settings.image_name else settings.image_family_name
    asked: dict[str, str | None] = {
        "project": settings.image_project,
        "family": family,
        "name": settings.image_name,
    }
    same = settled.get("project") == asked["project"] and settled.get("family") == family
    if family is not None and same and settled.get("name"):
        # A family moves on to newer images; a cluster stays on the one that it was made with.
        return asked | {"family": None, "name": settled["name"]}
    return asked


def _service_account(asked: str) -> dict[str, Any]:
    match asked:
        case "dedicated":
            return {"create": True, "email": None}
        case "default":
            return {"create": False, "email": None}
        case email:
            return {"create": False, "email": email}


def _vm(instance: Mapping[str, Any], project: str, zone: str) -> dict[str, Any]:
    interface = instance["networkInterfaces"][0]
    external = next((c.get("natIP") for c in interface.get("accessConfigs", [])), None)
    tunnel = "" if external else " --tunnel-through-iap"
    return {
        "name": instance["name"],
        "status": instance["status"],
        "internal_ip": interface.get("networkIP"),
        "external_ip": external,
        "ssh": f"gcloud compute ssh {instance['name']} --project {project} --zone {zone}{tunnel}",
    }
