"""How to connect to a cluster; connection.json beside the state has the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Connection:
    """What every kind of cluster has."""

    state: str  # the folder of the deployment, "gs://..."
    terraform_state: str  # the folder of Terraform's state, likewise
    billing_label: str  # the label by which the bill tells what belongs to it
    dashboard: str | None  # the URL of its dashboard; None if it has none


@dataclass(frozen=True, kw_only=True)
class VmConnection:
    """One VM."""

    name: str  # its name
    # its rank in the group, NODE_RANK of its programs; None as long as it has none
    rank: int | None
    status: str  # its status in the API, such as "RUNNING"
    internal_ip: str | None  # its address in the VPC network
    external_ip: str | None  # its public address; None if it has none
    ssh: str  # the command that opens a shell on it
    notebook: str | None  # the URL of its notebook; None if there is none, or not yet
    # the command that opens a tunnel to its notebook; None if there is none
    notebook_tunnel: str | None


@dataclass(frozen=True, kw_only=True)
class RayConnection:
    """The dashboard of a Ray cluster on VMs."""

    tunnel: str  # the command that opens a tunnel to it, through one of the VMs
    dashboard: str  # its URL while the tunnel is open
    token: str  # the command that prints the token which it asks for


@dataclass(frozen=True, kw_only=True)
class VmsConnection(Connection):
    """A group of VMs."""

    vms: tuple[VmConnection, ...]  # the VMs
    ray: RayConnection | None  # the dashboard of its Ray cluster; None if it has none
    local_ssd_path: str | None = None  # where each mounts its local SSDs; None if it has none
    local_ssd_gb: int = 0  # the local SSDs of each together, in GB; 0 for none


@dataclass(frozen=True, kw_only=True)
class NodePoolMade:
    """A GPU node pool."""

    name: str  # its name
    zone: str  # its zone
    machine_type: str  # the machine type of its nodes
    mode: str  # how they are got, such as "flex_start"
    max: int  # the most nodes that it can have


@dataclass(frozen=True, kw_only=True)
class ClusterConnection(Connection):
    """A GKE cluster."""

    cluster: str  # its name
    endpoint: str  # the URL of its API
    get_credentials: str  # the command that configures kubectl for it
    node_pools: tuple[NodePoolMade, ...]  # its GPU node pools
    jobs: Mapping[str, str]  # file name of an example job -> its URL, "gs://..."
    # the command that prints what the pods of a JobSet NAME have written, also when they are gone
    job_log: str = ""
