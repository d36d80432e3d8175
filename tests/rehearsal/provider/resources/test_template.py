"""Instance templates, beyond what the recorded traffic has."""

from typing import Any

import pytest

from rehearsal.provider.api import Api
from rehearsal.provider.failures import ProviderError
from rehearsal.provider.resource import UNKNOWN, PartialError
from rehearsal.provider.resources import RESOURCES
from tests.rehearsal.provider.resources.conftest import Google
from tests.table import cases

TEMPLATE = RESOURCES["google_compute_instance_template"]
TEMPLATES = "/compute/v1/projects/p/global/instanceTemplates"
IMAGE = "https://www.googleapis.com/compute/v1/projects/cos-cloud/global/images/cos-1"
DONE = {"name": "o", "status": "DONE", "targetId": "77"}

DISK = {"source_image": IMAGE, "auto_delete": True, "boot": UNKNOWN, "disk_type": UNKNOWN}
NIC = {"network": "default", "subnetwork": UNKNOWN, "access_config": []}
PLAN: dict[str, Any] = {
    "name": "t",
    "machine_type": "a3-highgpu-8g",
    "disk": [DISK],
    "network_interface": [NIC],
    "scheduling": UNKNOWN,
    "effective_labels": {"goog-terraform-provisioned": "true"},
}


def properties(google: Google, api: Api, **more: Any) -> Any:
    """What a create sends as the template's properties."""
    google.on("POST .*", DONE).on("GET .*", {"name": "t", "id": "77", "properties": {}})
    TEMPLATE.create(api, {**PLAN, **more})
    return google.body(f"POST {TEMPLATES}")["properties"]


SPECIFIC = {"key": "compute.googleapis.com/reservation-name", "values": ["r"]}


@cases(
    """
given | sent
{reservation_affinity: [{type: NO_RESERVATION, specific_reservation: []}]}
    | {reservationAffinity: {consumeReservationType: NO_RESERVATION}}
{reservation_affinity: [{type: SPECIFIC_RESERVATION, specific_reservation: [@specific]}]}
    | {reservationAffinity: {consumeReservationType: SPECIFIC_RESERVATION,
       key: compute.googleapis.com/reservation-name, values: [r]}}
{resource_policies: [projects/p/regions/r/resourcePolicies/compact]} | {resourcePolicies: [compact]}
{disk: [{source_image: @image, auto_delete: true, boot: @unknown, disk_type: @unknown,
    disk_encryption_key: [{kms_key_self_link: k}]}]}
    | {disks: [{autoDelete: true, boot: true, diskEncryptionKey: {kmsKeyName: k},
       initializeParams: {diskType: pd-standard, sourceImage: "@image"}}]}
{network_interface: [{subnetwork: s, access_config: [{network_tier: PREMIUM}]}]}
    | {networkInterfaces: [{accessConfigs: [{networkTier: PREMIUM, type: ONE_TO_ONE_NAT}],
       subnetwork: projects/p/regions/us-central1/subnetworks/s}]}
""",
    specific=SPECIFIC,
    image=IMAGE,
    unknown=UNKNOWN,
)
def test_what_the_roots_say_is_sent_in_googles_words(
    google: Google, api: Api, given: dict[str, Any], sent: dict[str, Any]
) -> None:
    assert sent.items() <= properties(google, api, **given).items()


@cases(
    """
image | sent_as
projects/cos-cloud/global/images/cos-1 | projects/cos-cloud/global/images/cos-1
projects/c/global/images/family/f | projects/c/global/images/family/f
http://127.0.0.1/compute/v1/projects/c/global/images/i | projects/c/global/images/i
@image | @image
""",
    image=IMAGE,
)
def test_a_path_of_an_image_is_taken_at_its_word(
    google: Google, api: Api, image: str, sent_as: str
) -> None:
    sent = properties(google, api, disk=[{**DISK, "source_image": image}])
    assert sent["disks"][0]["initializeParams"]["sourceImage"] == sent_as
    assert google.lines[0].startswith("POST ")


def test_an_image_that_nobody_knows_is_an_error(google: Google, api: Api) -> None:
    with pytest.raises(ProviderError, match="Error resolving image name 'x/nix': Could not find"):
        TEMPLATE.create(api, {**PLAN, "disk": [{**DISK, "source_image": "x/nix"}]})
    images = "GET /compute/v1/projects/x/global/images"
    assert google.lines == [f"{images}/nix", f"{images}/family/nix"]


def test_an_interrupted_create_leaves_the_template_tainted_in_the_state(
    google: Google, api: Api
) -> None:
    google.on(".*", {"name": "o", "status": "RUNNING", "targetId": "77"})
    api.cancel.set()
    with pytest.raises(PartialError) as caught:
        TEMPLATE.create(api, PLAN)
    assert caught.value.state["id"] == "projects/p/global/instanceTemplates/t"
    assert UNKNOWN not in caught.value.state.values()


def test_a_read_turns_googles_words_back(google: Google, api: Api) -> None:
    subnetwork = "https://www.googleapis.com/compute/v1/projects/p/regions/r/subnetworks/s"
    affinity = {"consumeReservationType": "SPECIFIC_RESERVATION", **SPECIFIC}
    answer = {
        "disks": [{"boot": True, "initializeParams": {"sourceImage": IMAGE}, "diskSizeGb": "200"}],
        "networkInterfaces": [{"subnetwork": subnetwork, "name": "nic0"}],
        "metadata": {"items": [{"key": "k", "value": "v"}], "fingerprint": "m"},
        "tags": {"items": ["ssh"], "fingerprint": "f"},
        "scheduling": {"automaticRestart": True, "maxRunDuration": {"seconds": "60"}},
        "labels": {"team": "ml", "theirs": "x"},
        "reservationAffinity": affinity,
    }
    google.on("GET .*", {"name": "t", "id": "77", "properties": answer})
    known = {"name": "t", "id": "x/t", "labels": {"team": "ml"}, "disk": [DISK]}
    found = TEMPLATE.read(api, known)
    assert found is not None
    disk, nic, schedule = (found[it][0] for it in ("disk", "network_interface", "scheduling"))
    assert disk["source_image"] == "projects/cos-cloud/global/images/cos-1"
    assert disk["disk_size_gb"] == 200
    assert (nic["subnetwork_project"], found["region"]) == ("p", "r")
    assert schedule["max_run_duration"] == [{"seconds": 60, "nanos": 0}]
    assert (found["metadata"], found["metadata_fingerprint"]) == ({"k": "v"}, "m")
    assert (found["tags"], found["tags_fingerprint"]) == (["ssh"], "f")
    assert (found["labels"], found["effective_labels"]["theirs"]) == ({"team": "ml"}, "x")
    assert found["reservation_affinity"] == [
        {"type": "SPECIFIC_RESERVATION", "specific_reservation": [SPECIFIC]}
    ]


@pytest.mark.parametrize(
    ("there", "wanted", "planned"),
    [
        ("projects/c/global/images/family/f", "c/f", "projects/c/global/images/family/f"),
        ("projects/cos-cloud/global/images/cos-0", IMAGE, IMAGE),
    ],
)
def test_a_plan_that_names_the_same_image_otherwise_changes_nothing(
    google: Google, api: Api, there: str, wanted: str, planned: str
) -> None:
    google.on("GET .*/images/family/f", {"name": "i"})
    prior = {"disk": [{"source_image": there}]}
    plan = {"disk": [{"source_image": wanted}], "project": "p"}
    assert TEMPLATE.customize(api, prior, plan)["disk"][0]["source_image"] == planned
