"""Giving Google's service agents their role on the key of Cloud KMS, where GRANT_KMS says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.preflight import keys

if TYPE_CHECKING:
    from provision.context import Cloud, Context
    from provision.spec.cluster import ClusterSpec

_SPREADS: Final = 120.0
"""Seconds of cloud time until a new role counts: "typically 2 minutes" (IAM, "Access change
propagation", undated)."""


def grant(context: Context, cloud: Cloud, spec: ClusterSpec, *, makes_bucket: bool) -> None:
    """Give the role to those that encrypt something, and wait until it counts.

    It stays after a Destroy: the agents are the project's, and other clusters may use the key.

    Raises:
        GoogleApiError: These credentials may not do that.
    """
    if not (spec.grants_kms and spec.kms_key):
        return
    agents = keys.agents(spec, cloud.project_number, makes_bucket=makes_bucket)
    members = [f"serviceAccount:{agent}" for agent in agents]
    if cloud.api.grant_on_key(spec.kms_key, keys.ROLE, members):
        name = spec.kms_key.rpartition("/")[2]
        context.console.progress(f"Google's service agents may use {name} from now on")
        with context.progress.waits("the role on the key to count"):
            context.progress.deadline(_SPREADS, _SPREADS).pause()
