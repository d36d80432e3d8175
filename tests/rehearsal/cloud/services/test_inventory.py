from rehearsal import inventory
from tests.rehearsal.cloud.services.conftest import Api


def _lines(api: Api) -> list[str]:
    with api.database.transaction() as store:
        return list(inventory.resources(store, api.now))


def test_what_every_project_has_does_not_count(api: Api) -> None:
    api.json("iam", "GET", "projects/proj-a1/serviceAccounts")
    api.json("serviceusage", "POST", "projects/proj-a1/services/redis.googleapis.com:enable")
    policy = api.json("crm/v1", "POST", "projects/proj-a1:getIamPolicy")
    api.json("crm/v1", "POST", "projects/proj-a1:setIamPolicy", {"policy": policy})
    with api.database.transaction() as store:
        for name in ("global/networks/default", "global/firewalls/default-allow-ssh"):
            link = f"https://www.googleapis.com/compute/v1/projects/proj-a1/{name}"
            store.put("compute/x", name, {"selfLink": link})
    assert _lines(api) == []


def test_what_was_made_is_told_until_it_is_deleted(api: Api) -> None:
    api.bucket(versioning={"enabled": True})
    made = api.put("a%2Fb c").body
    assert isinstance(made, dict)
    api("storage", "DELETE", "b/loom/o/a%2Fb%20c")
    other = api.put("d").body
    assert isinstance(other, dict)
    account = {"accountId": "loom-nodes"}
    email = api.json("iam", "POST", "projects/proj-a1/serviceAccounts", account)["email"]
    binding = {"role": "roles/viewer", "members": [f"serviceAccount:{email}"]}
    body = {"policy": {"bindings": [binding]}}
    api.json("crm/v1", "POST", "projects/proj-a1:setIamPolicy", body)
    assert _lines(api) == [
        f"iam/accounts projects/proj-a1/serviceAccounts/{email}",
        "storage/buckets b/loom",
        "storage/objects b/loom/o/d",
        "storage/objects b/loom: 1 noncurrent version(s)",
        f"iam/bindings projects/proj-a1 roles/viewer serviceAccount:{email}",
    ]
    api.json("crm/v1", "POST", "projects/proj-a1:setIamPolicy", {"policy": {}})
    api("iam", "DELETE", f"projects/proj-a1/serviceAccounts/{email}")
    api("storage", "DELETE", f"b/loom/o/a%2Fb%20c?generation={made['generation']}")
    api("storage", "DELETE", f"b/loom/o/d?generation={other['generation']}")
    api("storage", "DELETE", "b/loom")
    assert _lines(api) == []


def test_what_is_being_deleted_counts_until_it_is_gone(api: Api) -> None:
    link = "https://www.googleapis.com/compute/v1/projects/proj-a1/global/networks/loom-net"
    with api.database.transaction() as store:
        store.put("compute/networks", "n", {"selfLink": link, "_gone": api.now + 10})
    assert _lines(api) == ["compute/networks projects/proj-a1/global/networks/loom-net"]
    api.now += 10
    assert _lines(api) == []
