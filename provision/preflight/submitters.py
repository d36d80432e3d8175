"""What is granted to an account that runs jobs, and changes neither cluster nor state (ADR 96).

What Run, Jobs, Logs and Cancel write lies below `jobs/` of the deployment's folder; on GKE they
make and delete objects of the cluster, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.preflight import permissions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.spec.cluster import ClusterSpec
    from provision.state.location import StateLocation

_LOOKS: Final[Mapping[str, str]] = {
    "compute.instanceGroupManagers": "get list",
    "compute.instances": "get list",
    "iam.serviceAccounts": "get",
    "resourcemanager.projects": "get",
}
"""Where a cluster is looked for, and why its machines may hear of no job."""
_REACHES: Final[Mapping[str, str]] = {"container.clusters": "connect get list"}
_NAME: Final = "aiinfra_jobs"
# Roles of a bucket are added beside those with conditions only if that is said.
_ALWAYS: Final = "--condition=None"


def used(spec: ClusterSpec) -> list[str]:
    """The permissions on the project, sorted."""
    return permissions.listed([_LOOKS, *([_REACHES] if spec.has_control_plane else [])])


def as_yaml(spec: ClusterSpec, location: StateLocation) -> str:
    """The custom role as `gcloud iam roles create --file` reads it, and how to grant all of it."""
    project = spec.project_id
    lines = [
        f"# What Run, Jobs, Logs and Cancel need on {spec.name_prefix}, with which nobody changes",
        "# the cluster or its Terraform state. Create the role with",
        f"#   gcloud iam roles create {_NAME} --project {project} --file <this file>",
        "# and give it, and what it lacks, to <WHO>, as group:researchers@example.com:",
        *(f"#   {line}" for line in _grants(spec, location)),
        "# Who has them runs programs as the machines' account, reads the state, cancels any job.",
        f"title: {_NAME} for {spec.name_prefix}",
        "description: Run jobs on one GPU cluster, and look at it",
        "stage: GA",
        "includedPermissions:",
        *(f"- {name}" for name in used(spec)),
    ]
    return "\n".join(lines) + "\n"


def _grants(spec: ClusterSpec, location: StateLocation) -> Iterator[str]:
    project = spec.project_id
    on_project = f"gcloud projects add-iam-policy-binding {project} --member='<WHO>'"
    yield f"{on_project} --role=projects/{project}/roles/{_NAME} {_ALWAYS}"
    if spec.has_control_plane:
        # A job is an object of a custom type, for which there is no smaller role.
        yield f"{on_project} --role=roles/container.developer {_ALWAYS}"
    bucket = f"gs://{location.bucket} --member='<WHO>'"
    on_bucket = f"gcloud storage buckets add-iam-policy-binding {bucket}"
    # The bucket itself and names in it: conditions on objects say nothing of these.
    yield f"{on_bucket} --role=roles/storage.legacyBucketReader {_ALWAYS}"
    for role, part in (("objectViewer", ""), ("objectUser", "jobs/")):
        start = f"projects/_/buckets/{location.bucket}/objects/{location.folder}/{part}"
        condition = f'title={spec.name_prefix},expression=resource.name.startsWith("{start}")'
        yield f"{on_bucket} --role=roles/storage.{role} --condition='{condition}'"
