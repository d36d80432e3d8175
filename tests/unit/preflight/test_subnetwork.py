"""A subnetwork of others is looked at as far as one may, and what may not be seen is a note."""

from provision.codes import Code
from provision.documents.checks import CheckState
from provision.kinds import registry
from provision.preflight import table
from provision.settings.choices import OnlineCheck
from provision.settings.model import Settings
from tests.unit.preflight.stand_in import PARENT, PROJECT, REGION, Google

EXISTING = {"network_config": "existing", "network": "my-vpc", "subnetwork": "gpus"}
ABROAD = EXISTING | {"network": "projects/my-host/global/networks/my-vpc"}
THERE = "projects/my-host/regions/us-central1"
SUBNETWORK = {
    "network": f"https://x/v1/{PROJECT}/global/networks/my-vpc",
    "ipCidrRange": "10.1.0.0/29",
    "privateIpGoogleAccess": True,
}


def test_one_of_the_project_itself_needs_no_look_at_who_shares_it(google: Google) -> None:
    google.documents[f"{REGION}/subnetworks/gpus"] = SUBNETWORK

    found = google.check(EXISTING)

    assert found.problems == []
    assert found.states[OnlineCheck.SUBNETWORK] is CheckState.PASSED
    assert OnlineCheck.NETWORK not in found.states
    assert not any("getXpnHost" in path or "getIamPolicy" in path for path in google.asked)


def test_a_range_without_a_word_of_its_use_is_taken_for_free(google: Google) -> None:
    google.documents[f"{REGION}/subnetworks/gpus"] = SUBNETWORK

    assert google.check(EXISTING, instance_count="4").problems == []
    (problem,) = google.check(EXISTING, instance_count="5").problems
    assert problem.code is Code.NO_FREE_ADDRESSES
    assert "of its range 10.1.0.0/29, 4 are free" in problem.why
    assert problem.fix.startswith("INSTANCE_COUNT=4, or another SUBNETWORK")


def test_a_group_or_a_role_of_ones_own_may_have_the_right(google: Google) -> None:
    number = google.documents[PARENT] = {"projectId": "my-project", "projectNumber": "42"}
    agent = f"serviceAccount:{number['projectNumber']}@cloudservices.gserviceaccount.com"
    google.documents |= {
        f"{PROJECT}/getXpnHost": {"name": "my-host"},
        f"{THERE}/subnetworks/gpus": SUBNETWORK,
        f"{THERE}/subnetworks/gpus/getIamPolicy": {},
    }
    for role_, member, fits in (
        ("roles/compute.networkUser", agent, True),
        ("organizations/1/roles/netUser", agent, True),
        ("roles/compute.networkUser", "group:gpu-projects@example.com", True),
        ("roles/compute.networkViewer", agent, False),
        ("roles/compute.networkUser", "serviceAccount:43@cloudservices.gserviceaccount.com", False),
    ):
        binding = {"role": role_, "members": [member]}
        google.documents[f"{THERE}/subnetworks/gpus/getIamPolicy"] = {"bindings": [binding]}
        problems = [
            it for it in google.check(ABROAD).problems if it.code is Code.PERMISSION_MISSING
        ]
        assert bool(problems) is not fits, (role_, member)


def test_a_host_that_may_not_be_seen_is_a_note(google: Google) -> None:
    google.documents[PARENT] = {"projectId": "my-project", "projectNumber": "42"}
    google.documents[f"{THERE}/subnetworks/gpus"] = SUBNETWORK
    google.refusals |= {f"{PROJECT}/getXpnHost": 403, f"{THERE}/subnetworks/gpus/getIam": 403}

    found = google.check(ABROAD)

    assert found.problems == []
    told = {note.what: note for note in found.notes}
    note = told["could not look at the host project of my-project, whether it is my-host"]
    assert "administrator of my-project" in note.fix
    assert "could not see whether 42@cloudservices" in " ".join(told)


def test_each_interface_of_gpus_has_a_network_of_its_own(google: Google) -> None:
    google.documents[f"{PROJECT}/global/networks/my-vpc"] = {"name": "my-vpc"}
    for number in range(9):
        name = "gpus" if not number else f"gpu-{number}"
        google.documents[f"{REGION}/subnetworks/{name}"] = SUBNETWORK
    google.documents["projects/my-project/zones/us-central1-a/machineTypes/a3-megagpu-8g"] = {}

    found = google.check(EXISTING, gpu_subnetworks="gpu-{1..8}", vm_type="a3-megagpu-8g")

    told = [it for it in found.problems if "where another interface is, too" in it.what]
    assert [it.what.partition(" ")[0] for it in told] == [f"gpu-{it}" for it in range(1, 9)]


def _role(**asked: str) -> str:
    base = {"project_id": "my-project", "name_prefix": "np", "zone": "us-central1-a"}
    settings = Settings(base | asked)
    kind = registry.of(settings)
    spec = kind.spec(settings)
    return table.role_as_yaml(spec, kind.preflight(spec))


def test_the_role_has_what_an_image_of_ones_own_takes() -> None:
    use = "- compute.images.useReadOnly\n"
    assert use not in _role()
    assert use in _role(image_project="my-project", image_name="mine")
    # Public images are for everybody.
    assert "imageUser" not in _role(image_project="debian-cloud", image_name="d")
    elsewhere = _role(image_project="our-images", image_name="mine")
    assert use not in elsewhere
    assert "# On the project our-images, unless its images are public, roles/compute" in elsewhere


def test_the_role_has_what_the_check_takes_only_where_it_is_made() -> None:
    whole = {}
    rules = ABROAD | {"make_firewall": "yes"}
    made = {"network_config": "new_network"}
    for name, more in (("without", {}), ("with", ABROAD), ("rules", rules), ("made", made)):
        whole[name] = _role(**more)
    assert "compute.subnetworks.getIamPolicy" in whole["with"]
    assert "compute.subnetworks.getIamPolicy" not in whole["without"]
    assert f"On {THERE}/subnetworks/gpus, roles/compute.networkUser" in whole["with"]
    assert ["roles/compute.securityAdmin" in it for it in whole.values()] == [0, 0, 1, 0]
    # A range that is enlarged changes what was made.
    assert ["compute.firewalls.update" in it for it in whole.values()] == [0, 0, 0, 1]
    assert "compute.subnetworks.expandIpCidrRange" in whole["made"]
