"""The permissions with which Create and Destroy make and delete what is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.google import resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provision.google.resources import Resource
    from provision.preflight.check import OfKind
    from provision.spec.cluster import ClusterSpec


def changing(spec: ClusterSpec, of_kind: OfKind, *, makes_bucket: bool) -> list[str]:
    """The permissions that Create and Destroy need to make and delete what is asked for, sorted."""
    needs = [row.permissions for row in made(spec, of_kind)]
    return listed([*needs, *_used(spec, makes_bucket=makes_bucket), of_kind.used])


def listed(needs: Iterable[Mapping[str, str]]) -> list[str]:
    """Collection -> verbs as names of permissions, sorted."""
    return sorted(
        {
            f"{collection}.{verb}"
            for one in needs
            for collection, verbs in one.items()
            for verb in verbs.split()
        }
    )


def made(spec: ClusterSpec, of_kind: OfKind) -> Iterator[Resource]:
    """The types of the resources that Terraform creates for this env.list."""
    yield from of_kind.made
    if spec.makes_network:
        yield resources.NETWORK
        yield resources.SUBNETWORK
        yield resources.FIREWALL
        yield resources.ROUTER
        yield resources.NAT
    elif spec.makes_firewall and not spec.hosts:
        yield resources.FIREWALL
    if spec.service_account == "dedicated":
        yield resources.SERVICE_ACCOUNT
        yield resources.PROJECT_ROLE
    if any(pool.compact for pool in spec.pools):
        yield resources.RESOURCE_POLICY
    if spec.shares:
        yield resources.FILESTORE


def _used(spec: ClusterSpec, *, makes_bucket: bool) -> Iterator[Mapping[str, str]]:
    """The permissions that are needed for more than creating and deleting resources."""
    if spec.service_account == "dedicated":
        yield {"iam.serviceAccounts": "actAs"}
    if any(pool.external_ip for pool in spec.pools):
        yield {"compute.subnetworks": "useExternalIp"}
    if makes_bucket:
        yield {"storage.buckets": "create get"}
