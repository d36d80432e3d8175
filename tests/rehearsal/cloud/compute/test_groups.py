import pytest

from tests.rehearsal.cloud.compute.conftest import (
    GROUP,
    PROJECT,
    ROOT,
    SUBNETWORKS,
    TEMPLATES,
    ZONE,
    Compute,
    Json,
    boot,
    group_body,
    metadata,
)


def _addresses(api: Compute) -> dict[str, str]:
    return {vm["name"]: vm["networkInterfaces"][0]["networkIP"] for vm in api.vms()}


def test_a_group_has_as_many_vms_as_asked_with_the_same_names_in_every_rehearsal(
    made: Compute,
) -> None:
    made.group(size=3)
    assert list(_addresses(made)) == ["grp-vm-9k4k", "grp-vm-gm36", "grp-vm-ry28"]
    group = made.get_group()
    assert (group["currentActions"]["none"], group["status"]["isStable"]) == (3, True)
    assert "items" not in made.get(f"{GROUP}/listErrors")


def test_vms_come_up_by_the_clock(made: Compute) -> None:
    made.rate = 1
    made.group(size=1)
    seen = []
    for _ in range(4):
        group = made.get_group()
        creating = group["currentActions"]["creating"]
        seen.append((made.vm()["status"], group["status"]["isStable"], creating))
        made.now += 9
    coming = [("PROVISIONING", False, 1), ("PROVISIONING", False, 1), ("STAGING", False, 1)]
    assert seen == [*coming, ("RUNNING", True, 0)]


def test_a_clock_that_is_set_back_does_no_harm(made: Compute) -> None:
    made.rate = 1
    made.group(size=1)
    made.now -= 100
    assert made.vm()["status"] == "PROVISIONING"


def test_a_vm_is_what_its_template_says(wired: Compute) -> None:
    wired.of_one(
        machineType="n1-standard-8",
        guestAccelerators=[{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}],
        scheduling={"onHostMaintenance": "TERMINATE"},
        labels={"team": "ml"},
        metadata=metadata(startup_script="true"),
        networkInterfaces=[{"subnetwork": f"{SUBNETWORKS}/sub", "accessConfigs": [{}]}],
    )
    vm = wired.vm()
    assert vm["machineType"] == f"{ROOT}{ZONE}/machineTypes/n1-standard-8"
    gpu = f"{ROOT}{ZONE}/acceleratorTypes/nvidia-tesla-t4"
    assert vm["guestAccelerators"] == [{"acceleratorType": gpu, "acceleratorCount": 1}]
    assert vm["labels"] == {"team": "ml"}
    items = {item["key"]: item["value"] for item in vm["metadata"]["items"]}
    assert (items["startup-script"], items["created-by"]) == ("true", GROUP)
    (interface,) = vm["networkInterfaces"]
    assert interface["networkIP"] == "10.0.0.2"
    assert interface["accessConfigs"][0]["natIP"] == "203.0.113.1"
    disk = wired.get(f"{ZONE}/disks/{vm['name']}")
    assert disk["users"] == [vm["selfLink"]]
    assert disk["sourceImage"].endswith("debian-12")
    refused = wired.refused("DELETE", f"{ZONE}/disks/{vm['name']}")
    assert "already being used" in refused


def test_an_automatic_network_gives_vms_its_subnetwork(api: Compute) -> None:
    api.of_one(networkInterfaces=[{}])
    (interface,) = api.vm()["networkInterfaces"]
    assert interface["networkIP"] == "10.128.0.2"
    assert interface["subnetwork"].endswith("/regions/us-central1/subnetworks/default")


def test_growing_keeps_the_vms_and_their_addresses(made: Compute) -> None:
    made.group(size=2)
    before = _addresses(made)
    made.post(f"{GROUP}/resize", size="4")
    after = _addresses(made)
    assert after.items() > before.items()
    assert sorted(after.values()) == ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"]
    group = made.get_group()
    assert group["targetSize"] == 4
    assert group["versions"][0]["targetSize"] == {"calculated": 4}


def test_shrinking_deletes_vms_and_their_disks(made: Compute) -> None:
    made.group(size=3)
    made.rate = 1
    made.post(f"{GROUP}/resize", size="1")
    assert made.get_group()["currentActions"]["deleting"] == 2
    assert [vm["status"] for vm in made.vms()].count("STOPPING") == 2
    made.now += 30
    assert len(made.vms()) == len(made.names(f"{ZONE}/disks")) == 1
    assert made.get_group()["status"]["isStable"] is True


def test_a_deleted_group_is_gone_when_its_vms_are(made: Compute) -> None:
    made.group(size=2)
    made.rate = 1
    operation = f"{ZONE}/operations/{made.delete(GROUP)['name']}"
    assert made.get_group()["currentActions"]["deleting"] == 2
    made.now += 29
    assert made.get(operation)["status"] == "RUNNING"
    made.now += 1
    assert made.get(operation)["status"] == "DONE"
    assert made.gone(GROUP)
    assert not made.vms()
    assert made.delete(f"{TEMPLATES}/tpl")["status"] == "RUNNING"


REFUSED: dict[str, tuple[str, Json]] = {
    "targetSize": (ZONE, {"targetSize": -1}),
    "'resource.targetSize': '1001'": (ZONE, {"targetSize": 1001}),
    "Required field 'resource.targetSize' not specified": (ZONE, {"targetSize": None}),
    f"The resource '{TEMPLATES}/none' was not found": (
        ZONE,
        {"versions": [{"instanceTemplate": f"{TEMPLATES}/none"}]},
    ),
    "region us-central1": (f"{PROJECT}/zones/us-east4-a", {}),
    f"The resource '{PROJECT}/zones/africa-south1-a/machineTypes/a2-highgpu-1g' was not found": (
        f"{PROJECT}/zones/africa-south1-a",
        {"versions": [{"instanceTemplate": f"{TEMPLATES}/gpu"}]},
    ),
    "400 Invalid value for field 'zone': 'us-central1-q'. Unknown zone.": (
        f"{PROJECT}/zones/us-central1-q",
        {},
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_no_group_can_be_made_of_is_refused(made: Compute, words: str) -> None:
    made.template("gpu", machineType="a2-highgpu-1g", scheduling={"onHostMaintenance": "TERMINATE"})
    place, changes = REFUSED[words]
    body = {key: value for key, value in (group_body() | changes).items() if value is not None}
    assert words in made.refused("POST", f"{place}/instanceGroupManagers", body)


def test_a_template_may_be_named_by_its_id(made: Compute) -> None:
    number = made.get(f"{TEMPLATES}/tpl")["id"]
    made.group(template=number)
    assert made.get_group()["instanceTemplate"] == f"{ROOT}{TEMPLATES}/tpl"


def test_what_is_empty_does_not_come_back_and_a_stale_fingerprint_is_refused(made: Compute) -> None:
    made.group(resourcePolicies={"workloadPolicy": None}, statefulPolicy={"preservedState": {}})
    group = made.get_group()
    assert group.keys().isdisjoint({"resourcePolicies", "statefulPolicy"})
    change = {"fingerprint": group["fingerprint"], "description": "new"}
    made.patch(GROUP, change)
    error = made.refusal("PATCH", GROUP, change)
    assert (error["code"], error["errors"][0]["reason"]) == (412, "conditionNotMet")


def test_a_new_template_replaces_no_vm_by_itself(made: Compute) -> None:
    made.template("new")
    made.group(size=1)
    made.use("new")
    (managed,) = made.managed()
    assert managed["version"]["instanceTemplate"].endswith("/tpl")
    assert made.get_group()["status"]["versionTarget"]["isReached"] is False
    proactive = {"updatePolicy": {"type": "PROACTIVE"}}
    assert made.refusal("PATCH", GROUP, proactive)["code"] == 501


def test_managed_vms_tell_what_happens_to_them_and_keep_their_names(made: Compute) -> None:
    made.rate = 1
    made.group(size=1)
    (managed,) = made.managed()
    told = managed["currentAction"], managed["instanceStatus"]
    assert told == ("CREATING", "PROVISIONING")
    vm = made.vm()
    assert managed["instance"] == vm["selfLink"]
    made.now += 30
    (managed,) = made.managed()
    assert (managed["currentAction"], managed["instanceStatus"]) == ("NONE", "RUNNING")

    made.post(f"{GROUP}/recreateInstances", {"instances": [vm["selfLink"]]})
    assert made.get_group()["currentActions"]["recreating"] == 1
    assert made.vm()["status"] == "STOPPING"
    made.now += 55
    again = made.vm()
    assert (again["name"], again["status"]) == (vm["name"], "RUNNING")
    assert again["id"] != vm["id"]


def test_deleting_vms_of_a_group_lowers_its_size(made: Compute) -> None:
    made.group(size=3)
    doomed = {"instances": [made.vms()[0]["selfLink"]]}
    made.post(f"{GROUP}/deleteInstances", doomed)
    assert made.get_group()["targetSize"] == 2
    assert doomed["instances"][0] not in [vm["selfLink"] for vm in made.vms()]
    assert made.refusal("POST", f"{GROUP}/deleteInstances", doomed)["code"] == 400


@pytest.mark.parametrize(("action", "left"), [("REPAIR", 1), ("DO_NOTHING", 0)])
def test_a_group_repairs_a_deleted_vm_unless_told_otherwise(
    made: Compute, action: str, left: int
) -> None:
    made.group(size=1, instanceLifecyclePolicy={"defaultActionOnFailure": action})
    made.delete(f"{ZONE}/instances/{made.vm()['name']}")
    assert len(made.vms()) == left
    assert made.get_group()["status"]["isStable"] is True


def test_a_full_subnetwork_leaves_the_group_wanting(api: Compute) -> None:
    api.network()
    api.subnetwork(ipCidrRange="10.0.0.0/29")
    api.template()
    api.group(size=6)
    group = api.get_group()
    assert len(api.vms()) == 4
    assert (group["currentActions"]["creating"], group["status"]["isStable"]) == (2, False)
    (error,) = api.get(f"{GROUP}/listErrors")["items"]
    assert error["error"]["code"] == "IP_SPACE_EXHAUSTED"


def test_vms_are_listed_by_filter_and_in_pages(made: Compute) -> None:
    made.group("one", size=2)
    made.group("two", size=3)
    assert len(made.vms(filter="name eq two-vm-.*")) == 3
    first = made.get(f"{ZONE}/instances", maxResults="4")
    rest = made.get(f"{ZONE}/instances", maxResults="4", pageToken=first["nextPageToken"])
    assert (len(first["items"]), len(rest["items"])) == (4, 1)
    assert "nextPageToken" not in rest
    everywhere = made.get(f"{PROJECT}/aggregated/instances")["items"]
    assert len(everywhere["zones/us-central1-a"]["instances"]) == 5


def test_a_disk_that_outlives_its_vm_can_be_deleted(wired: Compute) -> None:
    (disk,) = boot()
    wired.of_one(disks=[disk | {"autoDelete": False}])
    path = f"{ZONE}/disks/{wired.vm()['name']}"
    wired.delete(GROUP)
    assert not wired.get(path).get("users")
    wired.delete(path)
    assert wired.gone(path)


def test_a_large_group_is_made_within_a_request(made: Compute) -> None:
    made.group(size=1000)
    assert made.get_group()["currentActions"]["none"] == 1000
    assert len(set(_addresses(made).values())) == 500  # of the first page


def test_a_group_gets_no_template_in_another_network(made: Compute) -> None:
    made.group(size=1)
    made.network("other")
    made.subnetwork("other-sub", network="other", ipCidrRange="10.1.0.0/16")
    made.template("same", labels={"team": "ml"})
    made.template("moved", networkInterfaces=[{"subnetwork": f"{SUBNETWORKS}/other-sub"}])

    made.use("same")
    body = {"versions": [{"instanceTemplate": f"{TEMPLATES}/moved"}]}
    refused = made.refused("PATCH", GROUP, body)
    assert "old network interfaces must be the same. Expected: projects/" in refused
    assert made.get_group()["instanceTemplate"].endswith("/same")
