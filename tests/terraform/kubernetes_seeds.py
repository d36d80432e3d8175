"""What the same walk-throughs made in Kubernetes by hand, and why ours differs where it does.

Sources, read 2026-11-23: cluster-toolkit 10470803, `dws-flex-start-queued-provisioning` and the
modules `gke-cluster` and `kubectl-apply`; saltysoup/nearmap-gcp-oasis 086f5b6, and the installer
that it applies, container-engine-accelerators 992db812; Zencore's article, and the queues that it
applies, GoogleCloudPlatform/ai-on-gke 336d37c3 (`dws-queues.yaml`).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tests.terraform.object_fields import ByHand

_RDMA: Final = tuple(f"rdma-{number}" for number in range(8))
_INTERFACES: Final = {
    "eth0": "default",
    "eth1": "gvnic-1",
    **{f"eth{number}": name for number, name in enumerate(_RDMA, start=2)},
}
_QUEUE: Final = "dws-local-queue"
_RUN: Final = "metadata.annotations[provreq.kueue.x-k8s.io/maxRunDurationSeconds]"
_QUEUE_NAME: Final = "metadata.labels[kueue.x-k8s.io/queue-name]"
_POOL: Final = "nodeSelector[cloud.google.com/gke-nodepool]"
_GPU_TOLERATION: Final = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
_SLEEP: Final = "gcr.io/k8s-staging-perf-tests/sleep:v0.0.3"


def _networks(vpc: str, subnet: str, rdma: str, rdma_subnet: str) -> tuple[ByHand, ...]:
    def param_set(name: str, network: str, part: str, mode: str, *each: str) -> ByHand:
        return ByHand(
            title=f"GKENetworkParamSet {name}",
            ours=f"GKENetworkParamSet {name}",
            fields={"spec.vpc": network, "spec.vpcSubnet": part, "spec.deviceMode": mode},
            each=each or ("",),
        )

    def device(name: str, *each: str) -> ByHand:
        return ByHand(
            title=f"Network {name}",
            ours=f"Network {name}",
            fields={
                "spec.type": "Device",
                "spec.parametersRef.group": "networking.gke.io",
                "spec.parametersRef.kind": "GKENetworkParamSet",
                "spec.parametersRef.name": name,
            },
            each=each or ("",),
        )

    return (
        param_set("gvnic-1", vpc, subnet, "NetDevice"),
        device("gvnic-1"),
        param_set("{name}", rdma, f"{rdma_subnet}{{number}}", "RDMA", *_RDMA),
        device("{name}", *_RDMA),
    )


_INSTALLER: Final = "initContainers[nccl-rdma-installer]"
_LIBRARIES: Final = {"[library-dir-host]": "[libraries]", "disable-log-martian": "quiet-martians"}
_INSTALLER_FIELDS: Final = {
    "metadata.namespace": "kube-system",
    "metadata.labels[k8s-app]": "nccl-rdma-installer",
    "spec.selector.matchLabels[k8s-app]": "nccl-rdma-installer",
    "spec.updateStrategy.type": "RollingUpdate",
    "spec.template.metadata.labels[k8s-app]": "nccl-rdma-installer",
    "spec.template.metadata.labels.name": "nccl-rdma-installer",
    "spec.template.spec.priorityClassName": "system-node-critical",
    "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    ".nodeSelectorTerms[0].matchExpressions[cloud.google.com/gke-accelerator].values": [
        "nvidia-h200-141gb"
    ],
    "spec.template.spec.tolerations": [{"operator": "Exists"}],
    "spec.template.spec.hostNetwork": True,
    "spec.template.spec.hostPID": True,
    "spec.template.spec.volumes[library-dir-host].hostPath.path": (
        "/home/kubernetes/bin/nvidia/lib64"
    ),
    "spec.template.spec.volumes[library-dir-host].hostPath.type": "DirectoryOrCreate",
    "spec.template.spec.volumes[gib].hostPath.path": "/home/kubernetes/bin/gib",
    "spec.template.spec.volumes[gib].hostPath.type": None,
    f"spec.template.spec.{_INSTALLER}.resources.requests.cpu": "150m",
    f"spec.template.spec.{_INSTALLER}.securityContext.privileged": True,
    f"spec.template.spec.{_INSTALLER}.volumeMounts[library-dir-host].mountPath": (
        "/usr/local/home/kubernetes/bin/nvidia/lib64"
    ),
    f"spec.template.spec.{_INSTALLER}.volumeMounts[gib].mountPath": (
        "/usr/local/home/kubernetes/bin/gib"
    ),
    f"spec.template.spec.{_INSTALLER}.command?container_entry.sh install": True,
    "spec.template.spec.containers[pause].image": (
        "gke.gcr.io/pause:3.8"
        "@sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830"
    ),
}
_GIB: Final = "us-docker.pkg.dev/gce-ai-infra/gpudirect-gib/nccl-plugin-gib"
_CHECK: Final = (
    ByHand(
        title="AdmissionCheck dws-prov",
        ours="AdmissionCheck dws-prov",
        fields={
            "spec.controllerName": "kueue.x-k8s.io/provisioning-request",
            "spec.parameters.apiGroup": "kueue.x-k8s.io",
            "spec.parameters.kind": "ProvisioningRequestConfig",
            "spec.parameters.name": "dws-config",
        },
    ),
    ByHand(
        title="ProvisioningRequestConfig dws-config",
        ours="ProvisioningRequestConfig dws-config",
        fields={
            "spec.provisioningClassName": "queued-provisioning.gke.io",
            "spec.managedResources": ["nvidia.com/gpu"],
        },
    ),
    ByHand(
        title="LocalQueue dws-local-queue",
        ours="LocalQueue dws-local-queue",
        fields={"metadata.namespace": "default", "spec.clusterQueue": "dws-cluster-queue"},
    ),
)


def _cluster_queue(
    covered: list[str], flavors: Mapping[str, Mapping[str, str]], ours: Mapping[str, str]
) -> ByHand:
    group = "spec.resourceGroups[0]"
    return ByHand(
        title="ClusterQueue dws-cluster-queue",
        ours="ClusterQueue dws-cluster-queue",
        fields={
            "spec.namespaceSelector": {},
            f"{group}.coveredResources": covered,
            **{
                f"{group}.flavors[{flavor}].resources[{resource}].nominalQuota": quota
                for flavor, resources in flavors.items()
                for resource, quota in resources.items()
            },
            "spec.admissionChecks": ["dws-prov"],
        },
        renamed={f"flavors[{old}]": f"flavors[{new}]" for old, new in ours.items()},
    )


def _rdma_pod(template: str, image: str, **more: object) -> dict[str, object]:
    """What all pods on the network of A3 Ultra have; `more` is what is asked of the container."""
    pod = f"{template}.spec"
    return {
        f"{template}.metadata.annotations[networking.gke.io/default-interface]": "eth0",
        f"{template}.metadata.annotations[networking.gke.io/interfaces]@interfaces": _INTERFACES,
        f"{pod}.tolerations[nvidia.com/gpu]": _GPU_TOLERATION,
        f"{pod}.volumes[gib].hostPath.path": "/home/kubernetes/bin/gib",
        f"{pod}.volumes[nvidia].hostPath.path": "/home/kubernetes/bin/nvidia",
        f"{pod}.volumes[lib64].hostPath.path": "/lib64",
        f"{pod}.volumes[sys].hostPath.path": "/sys",
        f"{pod}.volumes[proc-sys].hostPath.path": "/proc/sys",
        f"{pod}.volumes[shared-memory].emptyDir.medium": "Memory",
        f"{pod}.volumes[shared-memory].emptyDir.sizeLimit": "250Gi",
        f"{pod}.containers[0].image": image,
        f"{pod}.containers[0].volumeMounts[/usr/local/nvidia].name": "nvidia",
        f"{pod}.containers[0].volumeMounts[/usr/local/gib].name": "gib",
        f"{pod}.containers[0].volumeMounts[/dev/shm].name": "shared-memory",
        f"{pod}.containers[0].resources.limits[nvidia.com/gpu]": "8",
        f"{pod}.containers[0].resources.requests[nvidia.com/gpu]": "8",
        **{f"{pod}.{path}": value for path, value in more.items()},
    }


_PERF: Final = "/third_party/nccl-tests/build/all_gather_perf"
_ALL_GATHER: Final = {
    "restartPolicy": "Never",
    "activeDeadlineSeconds": 3600,
    "containers[0].stdin": True,
    "containers[0].tty": True,
    "containers[0].env[MY_NODE_NAME].valueFrom.fieldRef.fieldPath": "spec.nodeName",
    "containers[0].env[OMPI_ALLOW_RUN_AS_ROOT].value": "1",
    "containers[0].env[OMPI_ALLOW_RUN_AS_ROOT_CONFIRM].value": "1",
    "containers[0].command?/sbin/ldconfig": True,
    "containers[0].command?apt install": True,
    "containers[0].command?/scripts/container_entry.sh daemon": True,
    "containers[0].command?NCCL_TESTS_SPLIT_MASK": True,
    "containers[0].command?/usr/local/gib/scripts/set_nccl_env.sh": True,
    "containers[0].command?--mca plm_rsh_no_tree_spawn 1": True,
    "containers[0].command?--mca orte_keep_fqdn_hostnames 1": True,
    "containers[0].command?--mca btl self,tcp": True,
    "containers[0].command?--mca btl_tcp_if_include eth0": True,
    "containers[0].command?--bind-to none": True,
    f"containers[0].command?{_PERF} -b 1K -e 8G -f 2 -g 1 -w 5 --iters 100 -c 1": True,
}


def _sample_job(pool: str, requests: Mapping[str, str], **more: object) -> dict[str, object]:
    pod = "spec.template.spec"
    return {
        "metadata.namespace": "default",
        _QUEUE_NAME: _QUEUE,
        "spec.parallelism": 1,
        "spec.completions": 1,
        "spec.suspend": True,
        f"{pod}.{_POOL}": pool,
        f"{pod}.tolerations[nvidia.com/gpu]": _GPU_TOLERATION,
        f"{pod}.containers[0].name": "dummy-job",
        f"{pod}.containers[0].image": _SLEEP,
        f"{pod}.containers[0].args": ["120s"],
        f"{pod}.containers[0].resources.requests": requests,
        f"{pod}.containers[0].resources.limits": requests,
        f"{pod}.restartPolicy": "Never",
        **more,
    }


_REPLICATED: Final = "spec.replicatedJobs[w].template.spec"
_HEALTH: Final = "initContainers[gpu-healthcheck]"
_PLUGIN: Final = "us-docker.pkg.dev/gce-ai-infra/gpudirect-gib/nccl-plugin-gib-diagnostic"

TOOLKIT: Final = (
    *_networks(
        "gke-a3u-dws-fs-qp-net-1",
        "gke-a3u-dws-fs-qp-sub-1",
        "gke-a3u-dws-fs-qp-rdma-net",
        "gke-a3u-dws-fs-qp-rdma-sub-",
    ),
    ByHand(
        title="DaemonSet nccl-rdma-installer",
        ours="DaemonSet nccl-rdma-installer",
        fields={
            **_INSTALLER_FIELDS,
            "spec.template.spec.initContainers[disable-log-martian].image": "alpine:latest",
            "spec.template.spec.initContainers[disable-log-martian].securityContext.privileged": (
                True
            ),
            "spec.template.spec.initContainers[disable-log-martian].command?log_martians": True,
            f"spec.template.spec.{_INSTALLER}.image": f"{_GIB}:v1.1.0",
            f"spec.template.spec.{_INSTALLER}.command?--install-nccl": True,
        },
        renamed=_LIBRARIES,
    ),
    ByHand(
        title="ServiceAccount workload-identity-k8s-sa",
        ours="ServiceAccount dws-workload",
        fields={
            "metadata.namespace": "default",
            "metadata.annotations[iam.gke.io/gcp-service-account]": (
                "gke-wl-sa@my-project.iam.gserviceaccount.com"
            ),
        },
    ),
    ByHand(
        title="ResourceFlavor default-flavor",
        ours="ResourceFlavor dws-nodepool-1",
        fields={"spec.nodeLabels": None, "spec.tolerations": None},
    ),
    *_CHECK,
    _cluster_queue(
        ["nvidia.com/gpu"],
        {"default-flavor": {"nvidia.com/gpu": "512"}},
        {"default-flavor": "dws-nodepool-1"},
    ),
    *(
        ByHand(
            title=f"PriorityClass {name}",
            ours=f"PriorityClass {name}",
            fields={"value": value, "globalDefault": False},
        )
        for name, value in (
            *(("very-low", 100), ("low", 250), ("medium", 500)),
            *(("high", 750), ("very-high", 1000)),
        )
    ),
    ByHand(
        title="JobSet ag-2-",
        ours="JobSet all-gather-",
        fields={
            "metadata.generateName": "ag-2-",
            "metadata.namespace": "default",
            _QUEUE_NAME: _QUEUE,
            _RUN: "600",
            "spec.ttlSecondsAfterFinished": 1200,
            "spec.suspend": False,
            "spec.network.enableDNSHostnames": True,
            f"{_REPLICATED}.parallelism": 2,
            f"{_REPLICATED}.completions": 2,
            **_rdma_pod(
                f"{_REPLICATED}.template",
                f"{_PLUGIN}:v1.1.0",
                **_ALL_GATHER,
                **{
                    _POOL: "a3-ultragpu-8g-a3-ultragpu-pool",
                    "nodeSelector[cloud.google.com/gke-flex-start]": "true",
                    "tolerations[cloud.google.com/gke-queued]": {
                        "key": "cloud.google.com/gke-queued",
                        "value": "true",
                        "effect": "NoSchedule",
                    },
                    "setHostnameAsFQDN": True,
                    f"{_HEALTH}.image": "alpine:latest",
                    f"{_HEALTH}.command?nvidia-smi": True,
                    "containers[0].command?NCCL_NET=gIB": True,
                    "containers[0].securityContext.privileged": True,
                },
            ),
        },
    ),
    ByHand(
        title="Job sample-job",
        ours="Job sample-job-dws-nodepool-1",
        fields=_sample_job(
            "a3-ultragpu-8g-a3-ultragpu-pool", {"nvidia.com/gpu": "1"}, **{_RUN: "600"}
        ),
    ),
)

_UNLIMITED: Final = {
    "cpu": "1000000000",
    "memory": "1000000000Gi",
    "ephemeral-storage": "1000000000Ti",
}
_WORKER: Final = "workerGroupSpecs[0]"
_TOPOLOGY: Final = "metadata.annotations[kueue.x-k8s.io/podset-preferred-topology]"


def _head(spec: str, image: str, cpu: str) -> dict[str, object]:
    head = f"{spec}.headGroupSpec"
    container = f"{head}.template.spec.containers[ray-head]"
    return {
        f"{head}.rayStartParams[dashboard-host]": "0.0.0.0",  # noqa: S104 - of a pod
        f"{head}.template.spec.{_POOL}": "default-pool",
        f"{container}.image": image,
        f"{container}.ports[gcs-server].containerPort": 6379,
        f"{container}.ports[dashboard].containerPort": 8265,
        f"{container}.ports[client].containerPort": 10001,
        f"{container}.resources.limits.cpu": cpu,
        f"{container}.resources.limits.memory": "5G",
    }


def _workers(spec: str, image: str, cpu: str, memory: str, **more: object) -> dict[str, object]:
    group = f"{spec}.{_WORKER}"
    return {
        f"{group}.groupName": "gpu-group",
        f"{group}.replicas": 2,
        f"{group}.minReplicas": 0,
        f"{group}.maxReplicas": 4,
        f"{group}.template.{_TOPOLOGY}": "kubernetes.io/hostname",
        **_rdma_pod(
            f"{group}.template",
            image,
            **{
                _POOL: "h200-dws",
                "containers[0].resources.limits.cpu": cpu,
                "containers[0].resources.requests.cpu": cpu,
                "containers[0].resources.limits.memory": memory,
                **more,
            },
        ),
    }


NEARMAP: Final = (
    *_networks(
        "a3u-dws-primary-net", "a3u-dws-primary-sub", "a3u-dws-rdma-net", "a3u-dws-rdma-sub-"
    ),
    ByHand(
        title="DaemonSet nccl-rdma-installer",
        ours="DaemonSet nccl-rdma-installer",
        fields={
            **{
                path: ["nvidia-h200-141gb", "nvidia-b200"] if path.endswith("values") else value
                for path, value in _INSTALLER_FIELDS.items()
            },
            f"spec.template.spec.{_INSTALLER}.image": f"{_GIB}:v1.1.1",
            f"spec.template.spec.{_INSTALLER}.command?--install-nccl": False,
        },
        renamed=_LIBRARIES,
    ),
    ByHand(
        title="ServiceAccount ksa-ray",
        ours="ServiceAccount dws-workload",
        fields={"metadata.name": "ksa-ray"},
    ),
    ByHand(
        title="ResourceFlavor default-cpu",
        ours="ResourceFlavor default-flavor",
        fields={"spec.nodeLabels[cloud.google.com/gke-nodepool]": "default-pool"},
    ),
    ByHand(
        title="ResourceFlavor h200-dws",
        ours="ResourceFlavor dws-nodepool-1",
        fields={"spec.nodeLabels[cloud.google.com/gke-nodepool]": "h200-dws"},
    ),
    *_CHECK,
    _cluster_queue(
        ["cpu", "memory", "nvidia.com/gpu", "ephemeral-storage"],
        {
            "default-cpu": {**_UNLIMITED, "nvidia.com/gpu": "0"},
            "h200-dws": {**_UNLIMITED, "nvidia.com/gpu": "1000000000"},
        },
        {"default-cpu": "default-flavor", "h200-dws": "dws-nodepool-1"},
    ),
    ByHand(
        title="Service nccl-host-{name}",
        ours="",
        why="a JobSet makes the Service that its hosts are found by; nothing selects by these two",
        fields={"spec.clusterIP": "None", "spec.selector.name": "nccl-host-{name}"},
        each=("1", "2"),
    ),
    ByHand(
        title="Job nccl-dws-job",
        ours="JobSet all-gather-",
        renamed={"spec.template": f"{_REPLICATED}.template"},
        fields={
            "metadata.namespace": "default",
            _QUEUE_NAME: _QUEUE,
            _RUN: "1200",
            "spec.ttlSecondsAfterFinished": 3600,
            "spec.suspend": True,
            **_rdma_pod("spec.template", f"{_PLUGIN}:v1.0.5", **_ALL_GATHER),
            f"spec.template.{_TOPOLOGY}": "kubernetes.io/hostname",
            "spec.template.spec.containers[0].command?NCCL_NET=gIB": True,
        },
    ),
    ByHand(
        title="RayCluster pytorch-mnist-cluster",
        ours="RayCluster ray-",
        renamed={"[gcs-server]": "[gcs]"},
        fields={
            _QUEUE_NAME: _QUEUE,
            _RUN: "41600",
            "spec.suspend": False,
            "spec.rayVersion": "2.46.0",
            **_head("spec", "rayproject/ray:2.46.0-cu128", "2"),
            **_workers(
                "spec",
                "rayproject/ray:2.46.0-cu128",
                "220",
                "2800Gi",
                **{
                    "serviceAccountName": "ksa-ray",
                    "containers[0].env[LD_LIBRARY_PATH].value": "/usr/local/nvidia/lib64",
                    "containers[0].command?/usr/local/gib/scripts/set_nccl_env.sh": True,
                    "containers[0].command?unset NCCL_NET": True,
                    "containers[0].resources.limits.ephemeral-storage": "1000Gi",
                    "containers[0].volumeMounts[/tmp].name": "ray-tmp-storage",
                    "containers[0].volumeMounts[/bucket].name": "gcs-fuse-csi-eph",
                    "volumes[gcs-fuse-csi-eph].csi.volumeAttributes.bucketName": "ikwak-ray",
                },
            ),
            f"spec.{_WORKER}.rayStartParams[num-cpus]": "220",
            f"spec.{_WORKER}.template.metadata.annotations[gke-gcsfuse/volumes]": "true",
        },
    ),
    ByHand(
        title="RayJob pytorch-mnist-job",
        ours="RayJob ray-job-",
        renamed={"[gcs-server]": "[gcs]"},
        fields={
            _QUEUE_NAME: _QUEUE,
            _RUN: "21600",
            "spec.suspend": True,
            "spec.shutdownAfterJobFinishes": True,
            "spec.entrypoint": "python ai-ml/gke-ray/raytrain/dws/train.py",
            "spec.runtimeEnvYAML?torch": True,
            "spec.rayClusterSpec.rayVersion": "2.47.0",
            **_head("spec.rayClusterSpec", "rayproject/ray:2.47.0", "1"),
            **_workers("spec.rayClusterSpec", "rayproject/ray:2.47.0-gpu", "100", "600Gi"),
        },
    ),
)

_ENOUGH: Final = {"cpu": "10000", "memory": "10000Gi", "nvidia.com/gpu": "10000"}
_SMALL: Final = {"cpu": "100m", "memory": "100Mi", "nvidia.com/gpu": "1"}

ZENCORE: Final = (
    ByHand(
        title="ResourceFlavor default-flavor",
        ours="ResourceFlavor dws-t4",
        fields={"spec.nodeLabels": None, "spec.tolerations": None},
    ),
    *_CHECK,
    _cluster_queue(
        ["cpu", "memory", "nvidia.com/gpu"],
        {"default-flavor": _ENOUGH},
        {"default-flavor": "dws-t4"},
    ),
    ByHand(
        title="Job sample-job",
        ours="Job sample-job-dws-t4",
        fields=_sample_job("dws-t4-nodepool", _SMALL),
    ),
    ByHand(
        title="Job sample-job-a100",
        ours="Job sample-job-dws-a100",
        fields=_sample_job("dws-a100-nodepool", _SMALL),
    ),
)

SEEDS: Final = MappingProxyType({"toolkit": TOOLKIT, "nearmap": NEARMAP, "zencore": ZENCORE})
"""Name of a walk-through, as in `seeds` -> its objects."""
