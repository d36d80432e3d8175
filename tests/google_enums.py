"""What we do with each value of Google's enums."""

from __future__ import annotations

from typing import Final

from provision.catalogue import filestores, machines
from provision.kinds.gke import control_plane
from provision.kinds.machines import _STARTING
from provision.kinds.vms import flex_start, instances, preflight
from provision.lifecycle import exclusive
from provision.preflight import future, quotas, reservations
from provision.settings.choices import DriverVersion, ReleaseChannel
from tests.google_documents import Enum

_VMS: Final = "provision/kinds/vms"
_MODULES: Final = "terraform/modules"
_CLUSTER: Final = f"{_MODULES}/gke-cluster/cluster.tf"
_POOL: Final = f"{_MODULES}/gke-nodepool/pool.tf"
_GROUP: Final = f"{_MODULES}/gpu-mig/group.tf"
_WAYS: Final = (f"{_MODULES}/gpu-mig/capacity.tf", f"{_MODULES}/gpu-mig/template.tf")
_NOT_ASKED: Final = "nothing here asks for it"
_STATES_OF_VMS: Final = "DEPROVISIONING PENDING PENDING_STOP REPAIRING STOPPING SUSPENDING"
_BY_ITS_NAME: Final = "Status and Create tell it by its name: it is on its way, or still billed"

ENUMS: Final = (
    Enum(
        place="compute.v1 Instance.status",
        ours=frozenset(instances.UNBILLED | {reservations._GONE}),
        files=(f"{_VMS}/trouble.py",),
        left={_BY_ITS_NAME: f"{_STATES_OF_VMS} PROVISIONING STAGING"},
    ),
    Enum(
        place="compute.v1 ManagedInstance.instanceStatus",
        ours=frozenset(instances.UNBILLED) | _STARTING,
        files=("provision/kinds/machines.py",),
        left={_BY_ITS_NAME: _STATES_OF_VMS},
    ),
    Enum(
        place="compute.v1 ManagedInstance.currentAction",
        ours=frozenset(flex_start._LEAVING),
        files=(f"{_VMS}/instances.py",),
        left={
            "Member.words makes a sentence of it: its group is verifying it": (
                "REFRESHING RESTARTING RESUMING STARTING STOPPING SUSPENDING VERIFYING"
            ),
        },
    ),
    Enum(
        place="compute.v1 InstanceGroupManagerResizeRequest.state",
        ours=frozenset(flex_start._STATES),
    ),
    Enum(
        place="compute.v1 Scheduling.provisioningModel",
        ours=frozenset(instances._MODES),
        files=(*_WAYS,),
    ),
    Enum(
        place="compute.v1 Scheduling.onHostMaintenance",
        files=(*_WAYS,),
        left={
            "no VM with GPUs is moved while it runs": "MIGRATE",
        },
    ),
    Enum(
        place="compute.v1 Scheduling.instanceTerminationAction",
        files=(*_WAYS,),
        left={
            "a VM that ends is made again, never started again": "STOP",
        },
    ),
    Enum(
        place="compute.v1 ReservationAffinity.consumeReservationType",
        files=(*_WAYS,),
        left={
            "what Google does by default is not written": "ANY_RESERVATION",
        },
    ),
    Enum(
        place="compute.v1 UpcomingMaintenance.maintenanceStatus",
        files=(f"{_VMS}/instances.py",),
        left={
            "its window is told as it is": "PENDING UNKNOWN",
        },
    ),
    Enum(
        place="compute.v1 InstanceGroupManagerUpdatePolicy.type",
        files=(_GROUP,),
        left={
            "no VM is replaced without a question": "PROACTIVE",
        },
    ),
    Enum(
        place="compute.v1 InstanceGroupManagerUpdatePolicy.minimalAction",
        files=(
            _GROUP,
            f"{_VMS}/out_of_date.py",
        ),
    ),
    Enum(
        place="compute.v1 InstanceGroupManagerUpdatePolicy.replacementMethod",
        files=(_GROUP,),
        left={
            "VMs keep their names": "SUBSTITUTE",
        },
    ),
    Enum(
        place="compute.v1 InstanceGroupManagerInstanceLifecyclePolicy.defaultActionOnFailure",
        files=(_GROUP,),
    ),
    Enum(
        place="compute.v1 InstancesReportHostAsFaultyRequestFaultReason.behavior",
        ours=frozenset(instances.Fault),
        left={
            "what no check of ours sees": "SILENT_DATA_CORRUPTION",
        },
    ),
    Enum(
        place="compute.v1 NetworkInterface.nicType",
        ours=frozenset({it.nic_type for it in machines.GpuNetwork}),
        left={
            "networks that this tool does not set up: of A5X, of A4X Max, of "
            "machines without GPUs": ("IDPF IRDMA"),
            "images have drivers for gVNIC": "VIRTIO_NET",
        },
    ),
    Enum(
        place="compute.v1 ResourcePolicyGroupPlacementPolicy.collocation",
        files=(*_WAYS,),
    ),
    Enum(
        place="compute.v1 ResourcePolicyWorkloadPolicy.type",
        files=(*_WAYS,),
        left={
            "machines far apart are slower at NCCL": "HIGH_AVAILABILITY",
        },
    ),
    Enum(
        place="compute.v1 Operation.status",
        files=("provision/google/api.py",),
        left={
            "all that is not DONE is waited for": "PENDING RUNNING",
        },
    ),
    Enum(
        place="compute.v1 Image.status",
        files=(f"{_VMS}/bake.py",),
        left={
            "an image that is not READY is not taken": "DELETING PENDING",
        },
    ),
    Enum(
        place="compute.v1 Image.architecture",
        files=("provision/catalogue/images.py",),
    ),
    Enum(
        place="compute.v1 DeprecationStatus.state",
        ours=frozenset({preflight._ACTIVE, preflight._DEPRECATED}),
        left={
            "it is refused by its name": "DELETED OBSOLETE",
        },
    ),
    Enum(
        place="compute.v1 Zone.status",
        files=("provision/preflight/zones.py",),
        left={
            "all that is not UP is refused by its name": "DOWN",
        },
    ),
    Enum(
        place="compute.v1 Firewall.direction",
        files=(f"{_MODULES}/network/firewall.tf",),
        left={
            _NOT_ASKED: "EGRESS",
        },
    ),
    Enum(
        place="compute.v1 RouterNat.natIpAllocateOption",
        files=(f"{_MODULES}/network/egress.tf",),
        left={
            _NOT_ASKED: "MANUAL_ONLY",
        },
    ),
    Enum(
        place="compute.v1 RouterNat.sourceSubnetworkIpRangesToNat",
        files=(f"{_MODULES}/network/egress.tf",),
        left={
            _NOT_ASKED: "ALL_SUBNETWORKS_ALL_PRIMARY_IP_RANGES LIST_OF_SUBNETWORKS",
        },
    ),
    Enum(
        place="compute.v1 RouterNatLogConfig.filter",
        files=(f"{_MODULES}/network/egress.tf",),
        left={
            "each connection would be a line that costs": "ALL TRANSLATIONS_ONLY",
        },
    ),
    Enum(
        place="compute.v1 FutureReservationStatus.procurementStatus",
        ours=frozenset(future.Procurement),
    ),
    Enum(
        place="compute.v1 FutureReservation.reservationMode",
        files=("provision/preflight/reservations.py",),
        left={
            "machines are not bound to one of this mode": "DEFAULT",
        },
    ),
    Enum(
        place="compute.v1 Reservation.status",
        ours=frozenset(reservations._SETTLING),
        files=("provision/preflight/reservations.py",),
        left={
            "it is refused by its name": "DELETING INVALID",
        },
    ),
    Enum(
        place="compute.v1 Reservation.deploymentType",
        ours=frozenset({reservations._DENSE}),
    ),
    Enum(
        place="compute.v1 Reservation.schedulingType",
        files=("provision/preflight/reservations.py",),
        left={
            "maintenance of each host by itself takes no word": "INDEPENDENT",
        },
    ),
    Enum(
        place="compute.v1 ShareSettings.shareType",
        files=("provision/preflight/reservations.py",),
        left={
            "the projects are looked up in projectMap": "SPECIFIC_PROJECTS",
        },
    ),
    Enum(
        place="compute.v1 AllocationResourceStatusHealthInfo.healthStatus",
        files=("provision/preflight/reservations.py",),
        left={
            "nothing is to be said of it": "HEALTHY",
        },
    ),
    Enum(
        place="compute.v1 FutureResourcesSpecLocationPolicyLocation.preference",
        files=("provision/lifecycle/calendar.py",),
        left={
            "zones that are not named are not asked for": "DENY",
        },
    ),
    Enum(
        place="container.v1 Cluster.status",
        ours=frozenset(control_plane.State),
        others=frozenset({control_plane.State.RUNNING_WITH_ERROR}),
    ),
    Enum(
        place="container.v1 NodePool.status",
        ours=frozenset(control_plane.State),
        others=frozenset({control_plane.State.DEGRADED}),
    ),
    Enum(
        place="container.v1 Operation.status",
        files=("provision/google/api.py",),
        left={
            "all that is not DONE is waited for": "ABORTING PENDING RUNNING",
        },
    ),
    Enum(
        place="container.v1 ReleaseChannel.channel",
        ours=frozenset(ReleaseChannel),
    ),
    Enum(
        place="container.v1 GPUDriverInstallationConfig.gpuDriverVersion",
        ours=frozenset(DriverVersion),
        left={
            "GPU_DRIVER_VERSION takes what GKE chooses itself": ("INSTALLATION_DISABLED SPECIFIC"),
        },
    ),
    Enum(
        place="container.v1 UpgradeSettings.strategy",
        files=(_POOL, "provision/terraform/plan.py"),
        left={
            "it takes twice the machines": "BLUE_GREEN",
        },
    ),
    Enum(
        place="container.v1 ReservationAffinity.consumeReservationType",
        files=(_POOL,),
        left={
            "machines on demand come where no reservation has any": ("ANY_RESERVATION_THEN_FAIL"),
        },
    ),
    Enum(
        place="container.v1 NodePoolAutoscaling.locationPolicy",
        files=(_POOL,),
        left={
            "pools have one zone": "BALANCED",
        },
    ),
    Enum(
        place="container.v1 PlacementPolicy.type",
        files=(_POOL,),
    ),
    Enum(
        place="container.v1 NodeTaint.effect",
        files=(_POOL,),
        left={
            _NOT_ASKED: "NO_EXECUTE PREFER_NO_SCHEDULE",
        },
    ),
    Enum(
        place="container.v1 WorkloadMetadataConfig.mode",
        files=(_POOL,),
        left={
            "pods would act as their node": "GCE_METADATA",
        },
    ),
    Enum(
        place="container.v1 MaintenanceExclusionOptions.scope",
        files=(_CLUSTER,),
        left={
            "patches of the control plane are wanted": "NO_UPGRADES",
            "nodes with jobs would be replaced": "NO_MINOR_UPGRADES",
        },
    ),
    Enum(
        place="container.v1 MaintenanceExclusionOptions.endTimeBehavior",
        files=(_CLUSTER,),
    ),
    Enum(
        place="container.v1 NetworkConfig.datapathProvider",
        files=(_CLUSTER,),
        left={
            "more than one interface takes Dataplane V2": "LEGACY_DATAPATH",
            "a cluster is made with it": (
                "MIGRATE_TO_ADVANCED_DATAPATH MIGRATE_TO_LEGACY_DATAPATH"
            ),
        },
    ),
    Enum(
        place="container.v1 ClusterAutoscaling.autoscalingProfile",
        files=(_CLUSTER,),
        left={
            "idle GPU nodes would stay longer": "BALANCED",
        },
    ),
    Enum(
        place="container.v1 DatabaseEncryption.state",
        files=(_CLUSTER,),
        left={
            "Google writes it": "ALL_OBJECTS_ENCRYPTION_ENABLED UNKNOWN",
        },
    ),
    Enum(
        place="container.v1 LoggingComponentConfig.enableComponents",
        files=(_CLUSTER,),
        left={
            "logs of the control plane cost, and nobody asked": (
                "APISERVER CONTROLLER_MANAGER KCP_CONNECTION KCP_HPA KCP_SSHD KCP_VPA SCHEDULER"
            ),
        },
    ),
    Enum(
        place="container.v1 MonitoringComponentConfig.enableComponents",
        files=(_CLUSTER,),
        left={
            "they cost, and nobody asked": (
                "APISERVER CADVISOR CONTROLLER_MANAGER DAEMONSET DEPLOYMENT HPA JOBSET "
                "KUBELET POD SCHEDULER STATEFULSET STORAGE"
            ),
        },
    ),
    Enum(
        place="file.v1 Instance.tier",
        ours=frozenset({*filestores.Tier, *quotas._OLDER}),
    ),
    Enum(
        place="file.v1 Instance.state",
        ours=frozenset(exclusive._PASSING),
        left={
            "nothing here begins it, so no earlier run can be at it": (
                "PROMOTING RESTORING RESUMING REVERTING SUSPENDING"
            ),
            "Terraform says what it is about": "ERROR READY SUSPENDED",
        },
    ),
    Enum(
        place="cloudkms.v1 CryptoKey.purpose",
        files=("provision/preflight/named.py",),
        left={
            "it is refused by its name": (
                "AES_WRAPPING ASYMMETRIC_DECRYPT ASYMMETRIC_SIGN KEY_ENCAPSULATION MAC "
                "RAW_ENCRYPT_DECRYPT"
            ),
        },
    ),
    Enum(
        place="cloudkms.v1 CryptoKeyVersion.state",
        files=("provision/preflight/named.py",),
        left={
            "it is refused by its name": (
                "DESTROYED DESTROY_SCHEDULED DISABLED EXTERNAL_DESTRUCTION_FAILED "
                "GENERATION_FAILED IMPORT_FAILED PENDING_EXTERNAL_DESTRUCTION "
                "PENDING_GENERATION PENDING_IMPORT"
            ),
        },
    ),
)
