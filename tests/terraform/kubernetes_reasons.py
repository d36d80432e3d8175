"""Why our Kubernetes objects differ from those of the walk-throughs: the only place for it."""

from types import MappingProxyType
from typing import Final

_ACCOUNT: Final = "named as the account that it acts as; all jobs share it"
_NAMES: Final = "named after NAME_PREFIX"
_UNUSED: Final = "no container of ours mounts it"
_BUCKETS: Final = "GCS_MOUNT_LIST mounts buckets, as claims"
_RAY_SHM: Final = (
    "Ray's operator mounts /dev/shm itself, as large as the memory limit"
    " (tests/kubernetes/test_ray.py)"
)
_EXAMPLE: Final = "an example's size"
_NOBODY_TYPES: Final = "nobody types there"

WHY: Final = MappingProxyType(
    {
        ("GKENetworkParamSet", "spec.vpc"): _NAMES,
        ("DaemonSet", "metadata.labels[k8s-app]"): "the pods have it, which is what is selected by",
        ("DaemonSet", "spec.template.metadata.labels.name"): "nothing selects by it",
        ("DaemonSet", "volumes[gib].hostPath.type"): "the folder may not be there on a new node",
        ("DaemonSet", "values"): "the kinds of GPU that the cluster has",
        ("DaemonSet", "[disable-log-martian].image"): "one image less to fetch, and a pinned one",
        ("DaemonSet", "[nccl-rdma-installer].image"): "as Google's installer has it since 2026-05",
        ("DaemonSet", "?--install-nccl"): "Google's installer has dropped it (2026-05-06)",
        ("ServiceAccount", "metadata.annotations"): _NAMES,
        ("ServiceAccount", "metadata.name"): _ACCOUNT,
        ("ResourceFlavor", "spec.nodeLabels"): "a flavor for each pool, so that jobs select by GPU",
        (
            "ResourceFlavor",
            "spec.nodeLabels[cloud.google.com/gke-nodepool]",
        ): "all other nodes for the default flavor, and pools are named after NAME_PREFIX",
        ("ResourceFlavor", "spec.tolerations"): "jobs need no toleration of their own",
        (
            "ClusterQueue",
            "coveredResources",
        ): "Kueue admits no job that asks for a resource which is not covered; order means nothing",
        ("ClusterQueue", "resources[cpu].nominalQuota"): "no limit either",
        ("ClusterQueue", "resources[memory].nominalQuota"): "no limit either",
        ("ClusterQueue", "resources[ephemeral-storage].nominalQuota"): "no limit either",
        (
            "ClusterQueue",
            "resources[nvidia.com/gpu].nominalQuota",
        ): "the GPUs that the pools can have: more would be asked for in vain",
        (
            "ClusterQueue",
            "spec.admissionChecks",
        ): "for the flavors of queued pools alone (`admissionChecksStrategy`), so that jobs"
        " without GPUs wait for no node",
        ("PriorityClass", "globalDefault"): "the default",
        ("JobSet", "metadata.generateName"): "a name that says what it is",
        ("", "provreq.kueue.x-k8s.io/maxRunDurationSeconds"): "another length of the run",
        ("", "spec.ttlSecondsAfterFinished"): "twenty minutes to look at it",
        ("", "spec.suspend"): "Kueue sets it: a job is held until it is admitted",
        ("", "volumes[lib64]"): _UNUSED,
        ("", "volumes[sys]"): f"{_UNUSED}, and none of theirs",
        ("", "volumes[proc-sys]"): f"{_UNUSED}, and none of theirs",
        ("", "containers[0].image"): "the plugin that the nodes have, in one version",
        ("", "activeDeadlineSeconds"): "as long as its nodes are asked for",
        ("", "containers[0].stdin"): _NOBODY_TYPES,
        ("", "containers[0].tty"): _NOBODY_TYPES,
        ("", "env[MY_NODE_NAME]"): "for a line of its log",
        ("", "env[OMPI_ALLOW_RUN_AS_ROOT"): "mpirun is told by --allow-run-as-root",
        ("", "env[LD_LIBRARY_PATH]"): "set by its shell, which keeps what the image has set",
        ("", "command?apt install"): "nothing is fetched: hosts are awaited by ssh",
        ("", "command?NCCL_TESTS_SPLIT_MASK"): "0x0 is what the tests do without it",
        ("", "command?NCCL_NET=gIB"): "a variable of the container, for whatever runs in it",
        ("", "nodeSelector[cloud.google.com/gke-nodepool]"): _NAMES,
        ("", "tolerations[cloud.google.com/gke-queued]"): "Kueue adds it, from the flavor",
        ("JobSet", "setHostnameAsFQDN"): "hosts are found by the JobSet's names for them",
        ("JobSet", "initContainers[gpu-healthcheck]"): "Test itself looks at each node's GPUs",
        ("JobSet", "securityContext.privileged"): "GPUs and interfaces come without it",
        ("Job", "containers[0].name"): "a name that says what it is",
        ("Job", "resources.requests"): "processors and memory are asked for too",
        ("Job", "resources.limits"): "processors and memory are asked for too",
        ("", "podset-preferred-topology"): "topology-aware scheduling is left for later (ADR 35)",
        ("", "rayVersion"): "RAY_VERSION",
        ("RayCluster", "image"): "RAY_VERSION's image; workers have CUDA 12.8, which B200 needs",
        ("RayJob", "image"): "RAY_VERSION's image; workers have CUDA 12.8, which B200 needs",
        (
            "",
            "headGroupSpec.template.spec.nodeSelector[cloud.google.com/gke-nodepool]",
        ): "taints keep the head off GPU nodes; any other will do",
        ("", "[ray-head].resources"): _EXAMPLE,
        ("", "groupName"): "a name",
        ("", "minReplicas"): "a queue admits a fixed number of workers",
        ("", "maxReplicas"): "a queue admits a fixed number of workers",
        ("", "volumes[shared-memory].emptyDir.medium"): _RAY_SHM,
        ("", "volumes[shared-memory].emptyDir.sizeLimit"): _RAY_SHM,
        ("", "volumeMounts[/dev/shm]"): _RAY_SHM,
        ("", "containers[0].resources.limits.cpu"): "a limit would hold back a node's only job",
        ("", "containers[0].resources.requests.cpu"): "what the node can give beside its own pods",
        ("", "containers[0].resources.limits.memory"): "what the node can give beside its own pods",
        (
            "",
            "containers[0].resources.limits.ephemeral-storage",
        ): "no limit: the node's local SSDs are its only job's",
        ("RayCluster", "serviceAccountName"): _ACCOUNT,
        (
            "RayCluster",
            "?unset NCCL_NET",
        ): "it worked around gIB 1.0.6; with it NCCL may choose another network",
        (
            "RayCluster",
            "volumeMounts[/tmp]",
        ): "the container's own files are on the same local SSDs",
        ("RayCluster", "volumeMounts[/bucket]"): _BUCKETS,
        ("RayCluster", "volumes[gcs-fuse-csi-eph]"): _BUCKETS,
        ("RayCluster", "annotations[gke-gcsfuse/volumes]"): _BUCKETS,
        (
            "RayCluster",
            "rayStartParams[num-cpus]",
        ): "the operator takes it from the request (tests/kubernetes/test_ray.py)",
        ("RayJob", "spec.entrypoint"): "uses each GPU once; a job of one's own stands here",
        ("RayJob", "spec.runtimeEnvYAML"): "what the example of theirs trains with",
    }
)
"""Kind of theirs, or "" for any, and a part of a path -> the reason; the longest part counts."""
