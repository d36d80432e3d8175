"""A managed instance group of GPU VMs: settings to Terraform's variables, outputs to words."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from provision.catalogue import gpu_networks, machines
from provision.deployment.kind import Kind
from provision.kinds import variables as parts
from provision.settings.choices import Network, Orchestrator
from provision.settings.masking import mask, mask_map

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.deployment.kind import Findings
    from provision.deployment.location import Location
    from provision.files.archive import Archive
    from provision.google.api import GoogleApi
    from provision.settings import Settings

kind = Kind.MIG


def variables(
    settings: Settings, cluster_id: str, location: Location, findings: Findings
) -> dict[str, Any]:
    """Make the variables of `terraform/mig`; `Cluster.variables` has the arguments."""
    networks = _gpu_networks(settings)
    return {
        **parts.common(settings, cluster_id, location),
        "network_config": str(settings.network_config),
        "gpu_networks": [dataclasses.asdict(network) for network in networks],
        "group": {
            "instance_count": settings.instance_count,
            "machine_type": settings.vm_type,
            "gpu": _attached_gpu(settings),
            "metadata": dict(settings.metadata),
            "external_ip": settings.enable_external_ip,
        },
        "capacity": _capacity(settings),
        "resize_requests": {
            name: dataclasses.asdict(request) for name, request in findings.resize_requests.items()
        },
        "image": _image(settings, findings.image),
        "boot_disk": {"size_gb": settings.disk_size_gb, "type": str(settings.disk_type)},
        "files": _files(findings.files),
        "startup": _startup(settings, 1 + sum(network.subnets for network in networks)),
    }


def masked(variables: Mapping[str, Any]) -> dict[str, Any]:
    """The variables without what the metadata and the command may hold of secrets."""
    group, startup = variables["group"], variables["startup"]
    command = startup["command"]
    return {
        **variables,
        "group": group | {"metadata": mask_map(group["metadata"])},
        "startup": startup | {"command": command and mask(command)},
    }


def connection(settings: Settings, outputs: Mapping[str, Any], api: GoogleApi) -> dict[str, Any]:
    """The VMs and how to open a shell on each; `Cluster.connection` has the arguments."""
    project, zone = settings.project_id, outputs["group"]["zone"]
    found = api.labelled_instances(project, zone, "aiinfra-cluster", outputs["cluster_id"])
    return {"vms": [_vm(instance, project, zone) for instance in found]}


def _gpu_networks(settings: Settings) -> tuple[gpu_networks.Network, ...]:
    """The networks of the second interface and those after it, in their order."""
    if settings.network_config is not Network.MULTI_NIC:
        return ()
    return gpu_networks.beside_the_first(machines.lookup(settings.vm_type))


def _attached_gpu(settings: Settings) -> dict[str, Any] | None:
    """The GPUs to attach, which N1 takes; other machine types bring their own."""
    if not machines.takes_gpus(settings.vm_type):
        return None
    if not settings.accelerator_type or not settings.gpu_count:
        return None
    return {"type": settings.accelerator_type, "count": settings.gpu_count}


def _capacity(settings: Settings) -> dict[str, Any]:
    """Where VMs come from; the rules of the settings let one model through."""
    if settings.enable_flex_start:
        model = "flex_start"
    elif settings.enable_spot:
        model = "spot"
    else:
        model = "standard" if settings.reservation_name is None else "reservation"
    return {
        "model": model,
        "reservation": settings.reservation_name,
        "max_run_seconds": settings.max_run_duration,
        "compact": settings.enable_compact_placement,
    }


def _files(archive: Archive | None) -> dict[str, str | None]:
    if archive is None:
        return {"archive": None, "sha256": None}
    return {"archive": archive.path.name, "sha256": archive.sha256}


def _startup(settings: Settings, interfaces: int) -> dict[str, Any]:
    """What a VM does when it starts, and what it then checks that it has."""
    gpus = {"count": settings.gpu_count, "accelerator": settings.accelerator_type}
    is_ray = settings.orchestrator_type is Orchestrator.RAY
    return {
        "command": settings.startup_command,
        "files_destination": settings.vm_localfile_dest_path,
        "gpus": gpus if all(gpus.values()) else None,
        "interfaces": interfaces,
        "notebook": settings.enable_notebook,
        "ops_agent": not settings.disable_ops_agent,
        "ray": {"version": settings.ray_version} if is_ray else None,
    }


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
