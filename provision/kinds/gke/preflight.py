"""What the online checks need to know about a GKE cluster, and the check of its version."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import gke_versions, names
from provision.codes import Code
from provision.errors import CheckError
from provision.google import resources
from provision.google.api import Service
from provision.kinds.gke import left_behind
from provision.preflight.check import Check, CheckContext, Finding, OfKind, note, refuse
from provision.preflight.networks import in_the_network
from provision.preflight.table import SUBNETWORK
from provision.settings.choices import OnlineCheck, ReleaseChannel
from provision.spec import pools

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provision.spec.cluster import GkeSpec
    from provision.state.record import Record


def of(spec: GkeSpec) -> OfKind:
    """What the online checks need to know about a GKE cluster."""
    return OfKind(
        grants_in_state_folder=True,
        checks=(VERSION, *((SUBNETWORK,) if spec.existing else ())),
        apis=(
            *("container", "logging", "monitoring"),
            *(("secretmanager",) if spec.secrets else ()),
        ),
        made=(
            resources.CLUSTER,
            resources.NODE_POOL,
            # The pods' service account, which the Kubernetes service account impersonates.
            resources.SERVICE_ACCOUNT,
            resources.ACCOUNT_ROLE,
            resources.PROJECT_ROLE,
        ),
        main=(resources.CLUSTER, names.CLUSTER),
        ranges=(spec.ranges.pods, spec.ranges.services),
        # Whoever reaches the control plane by its DNS name needs it (GKE, "Network isolation").
        pods_account=True,
        used={"container.clusters": "connect"},
        swept=left_behind.PERMISSIONS,
        beside_the_role=(
            "and grant roles/container.admin too: objects in the cluster, such as cluster roles,",
            "take permissions of Kubernetes that no short list can name.",
            *in_the_network(spec),
        ),
        # The other pools place their nodes alone; see `terraform/modules/gke-nodepool`.
        policies=tuple(
            f"{pool.name}-compact"
            for pool in spec.gpu_pools
            if pool.compact and pool.mode.means.flex_start
        ),
    )


def resolve(spec: GkeSpec, record: Record | None) -> GkeSpec:
    """Resolve the full GKE version: the one that an earlier run chose, if the check was skipped."""
    asked = spec.version
    if asked is None or gke_versions.is_full(asked):
        return spec if asked is None else _with(spec, asked)
    before = record.gke_version if record else None
    settled = gke_versions.settle(asked, [asked], before)
    if settled is None or gke_versions.is_full(settled):
        return _with(spec, settled) if settled else dataclasses.replace(spec, version=None)
    raise CheckError(
        f"GKE_VERSION={settled} could not be resolved to a full version",
        code=Code.INVALID_VALUE,
        why="Google's versions could not be read, or their check was skipped",
        fix="remove gke-version from SKIP_CHECKS, or set the full version, such as"
        " GKE_VERSION=1.35.7-gke.1222000",
        setting="GKE_VERSION",
    )


def _with(spec: GkeSpec, version: str) -> GkeSpec:
    return dataclasses.replace(spec, version=version, managed=spec.managed_by(version))


def _check(ctx: CheckContext[GkeSpec]) -> Iterator[Finding]:
    """Check that GKE offers the version, or that the default version has the needed features."""
    spec = ctx.spec
    path = f"projects/{ctx.project}/locations/{spec.region}/serverConfig"
    config = ctx.answers.get(Service.CONTAINER, path)
    offered, usual = _offer(config, spec.release_channel)
    asked = spec.version
    before = ctx.record.gke_version if ctx.record else None
    settled = gke_versions.settle(asked, offered, before)
    if settled is not None:
        yield Finding(settled={"version": settled, "managed": spec.managed_by(settled)})
        if offered and not any(gke_versions.is_of_its_minor(it, settled) for it in offered):
            yield _given_up(settled, usual)
        yield from _floors(ctx, settled, offered)
    elif asked is not None:
        yield refuse(
            code=Code.NOT_OFFERED,
            setting="GKE_VERSION",
            what=f"GKE has no version {asked} in {spec.region}",
            why=f"the channel {spec.release_channel} has {', '.join(offered)}",
            fix=f"GKE_VERSION={offered[0]}, or remove it" if offered else "remove GKE_VERSION",
        )
    else:
        yield Finding(settled={"managed": bool(usual) and spec.managed_by(usual)})
        yield from _floors(ctx, usual, offered)


def _given_up(version: str, usual: str) -> Finding:
    """A note on a version of which GKE offers no patch any more."""
    until = gke_versions.supported_until(version)
    end = f"the end of its standard support, {until}," if until else "the end of its support"
    return note(
        code=Code.NOTE,
        setting="GKE_VERSION",
        what=f"GKE offers no version like {version} in this channel any more",
        why=f"after {end} GKE upgrades nodes when it likes, which ends the jobs on them",
        fix=f"GKE_VERSION={usual}, one minor version after the other, at a time that suits you",
    )


def _offer(config: dict[str, Any], channel: ReleaseChannel) -> tuple[list[str], str]:
    """The versions of a channel in Google's order, newest first, and its default version."""
    named = config.get("channels", []) if channel is not ReleaseChannel.UNSPECIFIED else ()
    for one in named:
        if one["channel"] == channel:
            return list(one.get("validVersions", [])), one.get("defaultVersion", "")
    return list(config.get("validMasterVersions", [])), config.get("defaultClusterVersion", "")


def _floors(ctx: CheckContext[GkeSpec], version: str, offered: Sequence[str]) -> Iterator[Finding]:
    """Check that a version has what the pools need, and if not, name one that does."""
    spec = ctx.spec
    needed = pools.floors(spec.gpu_pools, driver=spec.driver, ray_operator=spec.ray_operator)
    floor = next((it for it in needed if version and it.refuses(version)), None)
    if floor is None:
        return
    fitting = [it for it in offered if not any(one.refuses(it) for one in needed)]
    by_default = spec.version is None
    default = f", and {version} is the default version of the channel {spec.release_channel}"
    yield refuse(
        code=Code.CONFLICTING_SETTINGS,
        setting="GKE_RELEASE_CHANNEL" if by_default else "GKE_VERSION",
        what=f"GKE {version} does not support {floor.feature}",
        why=f"it needs GKE {floor.of(version)} or newer"
        + (f"{default} for new clusters" if by_default else ""),
        fix=f"GKE_VERSION={fitting[0]}" if fitting else "GKE_RELEASE_CHANNEL=RAPID",
    )


VERSION: Final = Check(
    name=OnlineCheck.GKE_VERSION,
    find=_check,
)
