"""What we take to be Google's words is in Google's own descriptions of its APIs."""

import functools
import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests import google_facts, google_names
from tests.google_documents import Enum
from tests.google_enums import ENUMS

_PARAMETER: Final = "a parameter of requests, which each of its methods describes"
_OBJECTS: Final = "of objects of Kubernetes"
_NO_DOCUMENT: Final = "of Cloud Quotas, of which the package has no description"
_HIGHER: Final = "no method has it for its own: Google names it where it uses it"
_PER_FAMILY: Final = "of a family of machines, which v1 does not list: asked of Cloud Quotas"
_BY_SERVICE_USAGE: Final = "newer than v1's list: asked of Service Usage, which has all quotas"

LEFT: Final[Mapping[str, Mapping[str, str]]] = {
    "fields": {
        _PARAMETER: "forceCreate maxResults optionsRequestedPolicyVersion",
        "the end of a method's name": "aggregatedList",
        "in the name that a share's driver gives to a volume": "modeInstance",
        _NO_DOCUMENT: "applicableLocations dimensionsInfos",
        "in an error's metadata, as Google sends it": "zonesAvailable",
        "a kind of member of a policy": "projectEditor projectOwner projectViewer",
        _OBJECTS: "claimName claimRef"
        " lastTransitionTime nodeName persistentVolumeClaim persistentVolumeReclaimPolicy queueName"
        " stopPolicy volumeClaimTemplates volumeHandle volumeName",
    },
    "values": {},
    "paths": {
        "each group is asked for its own": "projects/{}/aggregated/resizeRequests",
        _NO_DOCUMENT: "projects/{}/locations/global/services/{}/quotaInfos/{}",
        "the name of a reservation in a request": "projects/{}/reservations/{}",
    },
    "methods": {},
    "permissions": {
        _HIGHER: "compute.disks.useReadOnly compute.images.useReadOnly"
        " compute.instanceTemplates.useReadOnly compute.networks.updatePolicy compute.networks.use"
        " compute.resourcePolicies.use compute.subnetworks.use compute.subnetworks.useExternalIp"
        " container.clusters.connect iam.serviceAccounts.actAs",
        "the type of an operation": "compute.instances.hostError compute.instances.preempted"
        " compute.instances.terminateOnHostMaintenance",
        "a constraint of an organization": "compute.managed.vmExternalIpAccess"
        " iam.managed.disableServiceAccountCreation",
        "a method, beside the permission that it takes": "compute.projects.getXpnHost",
    },
    "metrics": {
        _PER_FAMILY: "CPUS_PER_VM_FAMILY LOCAL_SSD_TOTAL_STORAGE_PER_VM_FAMILY",
        _BY_SERVICE_USAGE: "GPUS_PER_GPU_FAMILY PREEMPTIBLE_NVIDIA_B200_GPUS"
        " PREEMPTIBLE_NVIDIA_GB200_GPUS PREEMPTIBLE_NVIDIA_GB300_GPUS"
        " PREEMPTIBLE_NVIDIA_H100_MEGA_GPUS PREEMPTIBLE_NVIDIA_H200_GPUS"
        " PREEMPTIBLE_NVIDIA_RTX_PRO_6000_GPUS",
    },
}
"""What we use and Google's descriptions do not have: the reason -> names, with blanks between."""


@pytest.mark.parametrize("enum", ENUMS, ids=lambda it: it.place)
def test_each_value_of_googles_is_handled_or_left_for_a_reason(enum: Enum) -> None:
    assert enum.unhandled == set()
    assert enum.handled & enum.left_values == set()


@pytest.mark.parametrize("enum", ENUMS, ids=lambda it: it.place)
def test_each_value_of_ours_is_one_of_googles(enum: Enum) -> None:
    assert enum.handled
    assert enum.invented == set()


@functools.cache
def _unknown() -> Mapping[str, Mapping[str, set[str]]]:
    return google_names.unknown()


@pytest.mark.parametrize("kind", LEFT)
def test_google_has_what_we_name_or_there_is_a_reason(kind: str) -> None:
    left = set(" ".join(LEFT[kind].values()).split())
    assert {name: who for name, who in _unknown()[kind].items() if name not in left} == {}
    assert left - set(_unknown()[kind]) == set()


def test_what_is_compared_is_not_little() -> None:
    counts = {what: len(them) for what, them in google_names.compared().items()}
    assert min(counts.values()) >= 50, counts


def test_somebody_has_looked_at_what_the_lock_has() -> None:
    seen = json.loads(google_facts.SEEN.read_text(encoding="utf-8"))
    new = list(google_facts.changes(seen, google_facts.now()))
    assert new == [], "look at it, then run: make facts-check SEEN=yes"


def test_what_changed_since_the_last_look_is_told() -> None:
    def found(revision: str, states: str) -> dict[str, Any]:
        enums = {"compute.v1 Instance.status": states}
        return {"revisions": {"compute.v1": revision}, "enums": enums, "fields": {}}

    assert list(google_facts.changes(found("1", "OFF ON"), found("2", "IDLE ON"))) == [
        "compute.v1: revision 2, looked at 1",
        "compute.v1 Instance.status: new IDLE",
        "compute.v1 Instance.status: gone OFF",
    ]
