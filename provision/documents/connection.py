"""How to connect to a cluster; connection.json beside the state has the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Connection:
    """What every kind of cluster has.

    Attributes:
        state: The folder of the deployment, "gs://...".
        terraform_state: The folder of Terraform's state, likewise.
        billing_label: The label by which the bill tells what belongs to it.
        dashboard: The URL of its dashboard; None if it has none.
    """

    state: str
    terraform_state: str
    billing_label: str
    dashboard: str | None


@dataclass(frozen=True, kw_only=True)
class VmConnection:
    """One VM.

    Attributes:
        name: Its name.
        rank: Its rank in the group, NODE_RANK of its programs; None as long as it has none.
        status: Its status in the API, such as "RUNNING".
        internal_ip: Its address in the VPC network.
        external_ip: Its public address; None if it has none.
        ssh: The command that opens a shell on it.
        notebook: The URL of its notebook; None if there is none, or not yet.
        notebook_tunnel: The command that opens a tunnel to its notebook; None if there is none.
    """

    name: str
    rank: int | None
    status: str
    internal_ip: str | None
    external_ip: str | None
    ssh: str
    notebook: str | None
    notebook_tunnel: str | None


@dataclass(frozen=True, kw_only=True)
class RayConnection:
    """The dashboard of a Ray cluster on VMs.

    Attributes:
        tunnel: The command that opens a tunnel to it, through one of the VMs.
        dashboard: Its URL while the tunnel is open.
        token: The command that prints the token which it asks for.
    """

    tunnel: str
    dashboard: str
    token: str


@dataclass(frozen=True, kw_only=True)
class VmsConnection(Connection):
    """A group of VMs.

    Attributes:
        vms: The VMs.
        ray: The dashboard of its Ray cluster; None if it has none.
        local_ssd_path: Where each mounts its local SSDs; None if it has none.
        local_ssd_gb: The local SSDs of each together, in GB; 0 for none.
    """

    vms: tuple[VmConnection, ...]
    ray: RayConnection | None
    local_ssd_path: str | None = None
    local_ssd_gb: int = 0


@dataclass(frozen=True, kw_only=True)
class NodePoolMade:
    """A GPU node pool.

    Attributes:
        name: Its name.
        zone: Its zone.
        machine_type: The machine type of its nodes.
        mode: How they are got, such as "flex_start".
        max: The most nodes that it can have.
    """

    name: str
    zone: str
    machine_type: str
    mode: str
    max: int


@dataclass(frozen=True, kw_only=True)
class ClusterConnection(Connection):
    """A GKE cluster.

    Attributes:
        cluster: Its name.
        endpoint: The URL of its API.
        get_credentials: The command that configures kubectl for it.
        node_pools: Its GPU node pools.
        jobs: File name of an example job -> its URL, "gs://...".
        job_log: The command that prints what the pods of a JobSet NAME have written, also when
            they are gone.
    """

    cluster: str
    endpoint: str
    get_credentials: str
    node_pools: tuple[NodePoolMade, ...]
    jobs: Mapping[str, str]
    job_log: str = ""
