"""The variables of `terraform/mig`, a managed instance group of GPU VMs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import gcsfuse
from provision.catalogue.fabrics import STACKS
from provision.kinds import variables as parts
from provision.settings.masking import seal_settings
from provision.spec import outbound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.deployment.deployment import Deployment, ResizeRequestSpec, RunInputs
    from provision.google.owner import Owner
    from provision.spec.cluster import VmSpec
    from provision.state.location import StateLocation

ROOT: Final = "mig"


def variables(
    spec: VmSpec, owner: Owner, location: StateLocation, inputs: RunInputs
) -> dict[str, Any]:
    """Make the variables of `terraform/mig`; see `Kind.variables` for the arguments."""
    networks, group, image, files = spec.gpu_networks, spec.group, spec.image, inputs.files
    return {
        **parts.common(spec, owner, location),
        "gcs_mounts": parts.mounts(spec, shared=True),
        "gcs_options": list(gcsfuse.on_vms(spec.bucket_options, spec.bucket_cache_gib)),
        "ip_ranges": parts.ip_ranges(spec),
        "network_config": str(spec.network),
        "gpu_networks": [dataclasses.asdict(it) for it in networks if not spec.existing],
        "group": {
            "instance_count": group.size.first,
            "machine_type": group.machine_type,
            # Machine types that include their GPUs get none attached.
            "gpu": {"type": group.gpu_type, "count": group.gpus}
            if group.attached and group.gpus
            else None,
            "external_ip": group.external_ip,
            "secure_boot": spec.secure_boot,
        },
        "capacity": {
            "model": str(group.mode),
            "reservation": group.reservation,
            "max_run_seconds": group.max_run_seconds,
            "idle_seconds": spec.idle_seconds,
            "compact": group.compact,
            "keeps_policy": False,  # what runs may change it: `keeping_policy`
            "policies": list(group.policies),
            "topology": group.topology,
        },
        "resize_requests": _requests(inputs.resize_requests),
        "image": {
            "project": image.project,
            # By its name where that is known, as a family gets newer images.
            "family": image.family if image.name is None else None,
            "name": image.name,
        },
        "metadata": dict(spec.metadata),
        "boot_disk": parts.disk(spec, group),
        "files": {
            "archive": files.path.name if files else None,
            "sha256": files.sha256 if files else None,
        },
        "startup_command": spec.command or None,
        "startup": {
            **_startup(spec),
            "outbound": spec.outbound.on_vms(inputs.certificates),
        },
    }


def with_requests(
    target: Deployment[VmSpec], requests: Mapping[str, ResizeRequestSpec]
) -> Deployment[VmSpec]:
    """The deployment with these resize requests."""
    asked = {"resize_requests": _requests(requests)}
    inputs = dataclasses.replace(target.inputs, resize_requests=requests)
    return dataclasses.replace(_with(target, asked), inputs=inputs)


def keeping_policy(target: Deployment[VmSpec]) -> Deployment[VmSpec]:
    """The deployment whose group has a workload policy, whatever the settings say."""
    return _with(target, {"capacity": {**target.variables["capacity"], "keeps_policy": True}})


def _with(target: Deployment[VmSpec], some: Mapping[str, Any]) -> Deployment[VmSpec]:
    return dataclasses.replace(
        target,
        variables={**target.variables, **some},
        masked_variables={**target.masked_variables, **some},
    )


def masked(variables: Mapping[str, Any]) -> dict[str, Any]:
    """The variables with metadata and command sealed: they are named as the settings."""
    return seal_settings(variables)


def _requests(requests: Mapping[str, ResizeRequestSpec]) -> dict[str, Any]:
    return {name: dataclasses.asdict(request) for name, request in requests.items()}


def _startup(spec: VmSpec) -> dict[str, Any]:
    """What a VM does at start-up, and the hardware that it then expects to find."""
    gpus = {"count": spec.group.gpu_count, "accelerator": spec.group.gpu_type}
    return {
        "files_destination": spec.files_destination,
        "gpus": gpus if all(gpus.values()) else None,
        "local_ssds": spec.group.local_ssds,
        "node_ssh": spec.node_ssh,
        "fabric": _fabric(spec) if all(gpus.values()) else None,
        "notebook": spec.notebook,
        "ops_agent": spec.ops_agent,
        "ray": {"version": spec.ray_version} if spec.ray_version else None,
        "slurm": {"partition": spec.slurm_partition} if spec.slurm_partition else None,
        "restart": str(spec.restart),
        "stop_notice": spec.stop_notice,
        "os_updates": spec.os_updates,
    }


def _fabric(spec: VmSpec) -> dict[str, Any] | None:
    """What VMs set up for NCCL; None where there is nothing to set up."""
    if spec.fabric is None:
        return None
    stack = STACKS.get(spec.fabric)
    if stack is None:
        return {"kind": str(spec.fabric), "interfaces": 0, "plugin": None, "daemon": None}
    # Those of the GPUs are last, each with a subnetwork of its own.
    gpus, mirrors = spec.gpu_networks[-1], spec.outbound.image_mirrors
    return {
        "kind": str(spec.fabric),
        "interfaces": sum(it.subnets for it in spec.gpu_networks if it == gpus),
        "plugin": stack.package or outbound.image(stack.plugin.pinned, mirrors),
        "daemon": outbound.image(stack.daemon.pinned, mirrors) if stack.daemon else None,
    }
