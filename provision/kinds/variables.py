"""The variables that all Terraform roots have in common, and their accounts for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provision.catalogue import filestores, names
from provision.spec.cluster import BucketGrant, ClusterSpec

if TYPE_CHECKING:
    from provision.documents.plan import Identity
    from provision.google.owner import Owner
    from provision.spec.pools import Pool
    from provision.state.location import StateLocation


def mounts(spec: ClusterSpec, *, shared: bool) -> list[dict[str, Any]]:
    """The buckets to mount; `shared`: whether others may use the account that mounts them, too."""
    found = []
    for mount in spec.buckets:
        one, grant = mount.model_dump(), spec.grant(mount.bucket)
        if shared or grant is BucketGrant.GIVEN:
            one["grant"] = str(grant)
        if spec.buckets_read_only:
            one["read_only"] = True
        found.append(one)
    return found


def common(spec: ClusterSpec, owner: Owner, location: StateLocation) -> dict[str, Any]:
    """The variables that every root takes."""
    account = spec.service_account
    return {
        "project_id": spec.project_id,
        "name_prefix": spec.name_prefix,
        "cluster_id": owner.id,
        "marker": owner.text,
        "region": spec.region,
        "zone": spec.zone,
        "labels": dict(spec.labels),
        "state_folder": {"bucket": location.bucket, "folder": location.folder},
        "service_account": {
            "create": account == "dedicated",
            "email": None if account in {"dedicated", "default"} else account,
        },
        # Pods act as an account of the cluster's own, whatever its machines act as.
        "gcs_mounts": mounts(spec, shared=False),
        "filestores": [
            {
                "path": share.path,
                "tier": str(share.tier),
                "size_gb": share.size_gb,
                "location": spec.region if filestores.is_regional(share.tier) else spec.zone,
                **key(spec),
            }
            for share in spec.shares
        ],
        "existing": _existing(spec),
        "secrets": [secret.model_dump() for secret in spec.secrets],
    }


def key(spec: ClusterSpec) -> dict[str, str]:
    """The key of Cloud KMS for what keeps data, if there is one."""
    return {"kms_key": spec.kms_key} if spec.kms_key else {}


def disk(spec: ClusterSpec, pool: Pool) -> dict[str, Any]:
    """The boot disk of each machine."""
    return {"size_gb": pool.disk_size_gb, "type": pool.disk_type, **key(spec)}


def ip_ranges(spec: ClusterSpec) -> dict[str, str]:
    """The ranges of a network that is made: the whole, and that of the first interfaces."""
    return {"block": str(spec.ranges.whole), "first": str(spec.first_range)}


def _existing(spec: ClusterSpec) -> dict[str, Any] | None:
    """The network of the first interface, and the others with the types that they have."""
    it = spec.existing
    if it is None:
        return None
    types = [network.nic_type for network in spec.gpu_networks for _ in range(network.subnets)]
    return {
        "network": it.path,
        "subnetwork": it.subnetwork.path,
        "interfaces": [
            {"nic_type": nic_type, "subnetwork": one.path}
            for nic_type, one in zip(types, it.gpus, strict=True)
        ],
        "rules": [rule.variable for rule in spec.firewall_rules],
    }


def identity(spec: ClusterSpec, bearer: str) -> Identity:
    """The account that machines act as; a plan knows its roles."""
    from provision.documents.plan import Identity  # noqa: PLC0415 - Plan alone needs it

    known = {
        "dedicated": names.SERVICE_ACCOUNT.of(spec.name_prefix),
        "default": "the project's default account",
    }
    asked = spec.service_account
    return Identity(account=known.get(asked, asked), bearer=bearer, made=asked == "dedicated")
