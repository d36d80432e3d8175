"""How to connect to a cluster; connection.json beside the state has the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, kw_only=True)
class Connection:
    """What every kind of cluster has."""

    state: Annotated[str, 'the folder of the deployment, "gs://..."']
    terraform_state: Annotated[str, "the folder of Terraform's state, likewise"]
    billing_label: Annotated[str, "the label by which the bill tells what belongs to it"]
    dashboard: Annotated[str | None, "the URL of its dashboard; None if it has none"]


@dataclass(frozen=True, kw_only=True)
class VmConnection:
    """One VM."""

    name: Annotated[str, "its name"]
    rank: Annotated[
        int | None, "its rank in the group, NODE_RANK of its programs; None as long as it has none"
    ]
    status: Annotated[str, 'its status in the API, such as "RUNNING"']
    internal_ip: Annotated[str | None, "its address in the VPC network"]
    external_ip: Annotated[str | None, "its public address; None if it has none"]
    ssh: Annotated[str, "the command that opens a shell on it"]
    notebook: Annotated[str | None, "the URL of its notebook; None if there is none, or not yet"]
    notebook_tunnel: Annotated[
        str | None, "the command that opens a tunnel to its notebook; None if there is none"
    ]


@dataclass(frozen=True, kw_only=True)
class RayConnection:
    """The dashboard of a Ray cluster on VMs."""

    tunnel: Annotated[str, "the command that opens a tunnel to it, through one of the VMs"]
    dashboard: Annotated[str, "its URL while the tunnel is open"]
    token: Annotated[str, "the command that prints the token which it asks for"]


@dataclass(frozen=True, kw_only=True)
class SlurmConnection:
    """Slurm on VMs, which answers on each of them."""

    shell: Annotated[str, "the command that opens a shell on one, for sinfo, squeue and sbatch"]
    partition: Annotated[str, "the partition by its machines; all has the same, and is the default"]


@dataclass(frozen=True, kw_only=True)
class VmsConnection(Connection):
    """A group of VMs."""

    vms: Annotated[tuple[VmConnection, ...], "the VMs"]
    ray: Annotated[RayConnection | None, "the dashboard of its Ray cluster; None if it has none"]
    slurm: Annotated[SlurmConnection | None, "the way to its Slurm; None if it has none"] = None
    local_ssd_path: Annotated[
        str | None, "where each mounts its local SSDs; None if it has none"
    ] = None
    local_ssd_gb: Annotated[int, "the local SSDs of each together, in GB; 0 for none"] = 0


@dataclass(frozen=True, kw_only=True)
class NodePoolMade:
    """A GPU node pool."""

    name: Annotated[str, "its name"]
    zone: Annotated[str, "its zone"]
    machine_type: Annotated[str, "the machine type of its nodes"]
    mode: Annotated[str, 'how they are got, such as "flex_start"']
    max: Annotated[int, "the most nodes that it can have"]


@dataclass(frozen=True, kw_only=True)
class ClusterConnection(Connection):
    """A GKE cluster."""

    cluster: Annotated[str, "its name"]
    endpoint: Annotated[str, "the URL of its API"]
    get_credentials: Annotated[str, "the command that configures kubectl for it"]
    node_pools: Annotated[tuple[NodePoolMade, ...], "its GPU node pools"]
    jobs: Annotated[Mapping[str, str], 'file name of an example job -> its URL, "gs://..."']
    job_log: Annotated[
        str,
        "the command that prints what the pods of a JobSet NAME have written, also when they "
        "are gone",
    ] = ""
