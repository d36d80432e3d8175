"""Where a job's log is when its pods are gone: in Cloud Logging, where the cluster sends it.

Kubernetes deletes an ended pod with its node, and JobSet the pods of each attempt that failed; the
log that a node keeps goes with them. Cloud Logging has it for 30 days, by the labels of the pods.
"""

from __future__ import annotations

import shlex
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_BY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "JobSet": 'labels."k8s-pod/jobset_sigs_k8s_io/jobset-name"="{name}"',
        "Job": 'labels."k8s-pod/batch_kubernetes_io/job-name"="{name}"',
        "RayCluster": 'labels."k8s-pod/ray_io/cluster"="{name}"',
    }
)
"""Kind of a job -> what its pods have; of others the names of the pods begin with the job's."""
_OTHERS: Final = 'resource.labels.pod_name:"{name}-"'


def command(project: str, cluster: str, location: str, kind: str, name: str) -> str:
    """The command that prints all that the pods of a job have written, the oldest first.

    `kind`: the job's kind, such as "JobSet".
    """
    terms = [
        'resource.type="k8s_container"',
        f'resource.labels.cluster_name="{cluster}"',
        f'resource.labels.location="{location}"',
        _BY.get(kind, _OTHERS).format(name=name),
    ]
    return (
        f"gcloud logging read {shlex.quote(' '.join(terms))} --project {project}"
        " --order asc --freshness 30d --format 'value(textPayload,jsonPayload.message)'"
    )
