"""Which buckets hold no state: those that machines reach, or that keep or lose what is in them."""

from typing import Any

import pytest

from provision.codes import Code
from provision.errors import Problem, StateError
from provision.state import bucket_audit
from provision.state.location import StateLocation

LOCATION = StateLocation("states", "team/np-deployment", is_default=False)
NODES = "serviceAccount:other-nodes@my-project.iam.gserviceaccount.com"
PODS = "serviceAccount:np-workload@my-project.iam.gserviceaccount.com"
DEFAULT = "serviceAccount:123456-compute@developer.gserviceaccount.com"
USER = "roles/storage.objectUser"
ENDS = {"action": {"type": "Delete"}, "condition": {"daysSinceNoncurrentTime": 30}}
CLOSED = {"versioned": True, "uniform": True, "closed": True, "rules": [ENDS]}


def _audit(caller: str = "", meant: tuple[str, ...] = (), **more: Any) -> list[Problem]:
    bucket = bucket_audit.Bucket(**{**CLOSED, "bindings": [], **more})
    return bucket_audit.audit(bucket, LOCATION, caller=caller, needs_uniform=True, meant=meant)


def _refused(**more: Any) -> list[Problem]:
    with pytest.raises(StateError) as refused:
        _audit(**more)
    assert {it.code for it in refused.value.problems} == {Code.BUCKET_UNSAFE}
    return list(refused.value.problems)


def _binding(*members: str, role: str = USER, only: str | None = None) -> dict[str, Any]:
    condition = {} if only is None else {"condition": {"title": "t", "expression": only}}
    return {"role": role, "members": set(members), **condition}


def _named(path: str, bucket: str = "states") -> str:
    return f'resource.name.startsWith("projects/_/buckets/{bucket}/objects/{path}")'


def _listed(prefix: str, usual: str = "") -> str:
    get = f'api.getAttribute("storage.googleapis.com/objectListPrefix", "{usual}")'
    return f'{get}.startsWith("{prefix}")'


@pytest.mark.parametrize("member", [NODES, PODS, DEFAULT])
@pytest.mark.parametrize("role", [USER, "roles/storage.objectViewer", "projects/p/roles/mine"])
def test_an_account_of_machines_is_refused_with_the_command_that_takes_its_role_away(
    member: str, role: str
) -> None:
    (problem,) = _refused(bindings=[_binding(member, "user:ann@example.com", role=role)])

    assert member.removeprefix("serviceAccount:") in problem.what
    command = f"remove-iam-policy-binding gs://states --member={member} --role={role}"
    assert f"{command} --condition=None" in problem.fix


@pytest.mark.parametrize(
    "binding",
    [
        _binding("user:ann@example.com", "group:ml@example.com", "projectEditor:my-project"),
        _binding("serviceAccount:ci@my-project.iam.gserviceaccount.com"),
        _binding(f"deleted:{NODES}?uid=1"),
        _binding(NODES, role="roles/storage.legacyBucketReader"),
        # What the modules grant to machines and pods, of this deployment and of others.
        *(
            _binding(member, only=f"{_named(path)} || {_listed(path)}")
            for member in (NODES, DEFAULT)
            for path in ("team/np-deployment/vms/", "team/np-deployment/pods/")
        ),
        *(
            _binding(PODS, only=_named(path))
            for path in (
                "team/np-deployment/files/",
                "team/np-deployment/jobs/",
                "team/np-deployment/jobs/files/",
                "team/np-deployment/ray/",
                "team/other-deployment/vms/",
                "data/",
            )
        ),
    ],
)
def test_people_and_roles_on_what_machines_share_are_nobodys_business(
    binding: dict[str, Any],
) -> None:
    assert _audit(bindings=[binding]) == []


@pytest.mark.parametrize(
    "only",
    [
        'resource.name.startsWith("projects/_/buckets/states")',
        f"!{_named('team/other-deployment/')}",
        _named(""),
        _named("team/"),
        _named("team/np-deployment/"),
        _named("team/np-deployment/terraform/"),
        _named("team/np-deployment/v"),
        _named("data/", bucket="others"),
        f"{_named('data/')} || {_named('team/')}",
        f"{_named('data/')} || {_listed('data/', usual='data/x')}",
        f"{_named('data/')} || true",
        f"{_named('data/')} ? true : {_named('data/')}",
        "",
    ],
)
def test_a_condition_that_does_not_leave_the_state_out_is_as_good_as_none(only: str) -> None:
    (problem,) = _refused(bindings=[_binding(NODES, only=only)])
    assert f"--role={USER} --all" in problem.fix


def test_the_caller_needs_no_state_to_have_its_own_rights() -> None:
    assert _audit(DEFAULT.partition(":")[2], bindings=[_binding(DEFAULT)]) == []


def test_everybody_is_refused_where_public_access_is_not_prevented() -> None:
    everybody = [_binding("allUsers", "allAuthenticatedUsers")]
    assert _audit(bindings=everybody) == []
    (problem,) = _refused(bindings=everybody, closed=False)
    assert "open to allAuthenticatedUsers and allUsers" in problem.what


def test_roles_that_nobody_may_read_are_called_not_checked() -> None:
    (note,) = _audit(bindings=None)
    assert note.code is Code.NOT_CHECKED
    assert "storage.buckets.getIamPolicy" in note.fix


@pytest.mark.parametrize(
    ("fields", "fix"),
    [
        ({"keeps": True}, "run: gcloud storage buckets update gs://states --clear-retention"),
        ({"keeps": True, "locked": True}, "set TERRAFORM_GCS_PATH to another bucket: the policy"),
        ({"holds": True}, "update gs://states --no-default-event-based-hold"),
        ({"rules": [{"action": {"type": "Delete"}, "condition": {"age": 30}}]}, "lifecycle-file"),
    ],
)
def test_a_bucket_that_keeps_or_loses_states_is_refused_with_what_helps(
    fields: dict[str, Any], fix: str
) -> None:
    (problem,) = _refused(**fields)
    assert fix in problem.fix


LOSES: list[dict[str, Any]] = [
    *({"age": 30}, {}, {"isLive": True}, {"age": 30, "numNewerVersions": 0}),
    *({"age": 30, "matchesPrefix": ["team/"]}, {"age": 30, "matchesSuffix": [".json"]}),
    {"age": 30, "matchesPrefix": ["data/", "team/np-deployment/terraform"]},
]
LEAVES: list[dict[str, Any]] = [
    *({"isLive": False}, {"isLive": False, "age": 30}, {"numNewerVersions": 3}),
    *({"daysSinceNoncurrentTime": 0}, {"daysSinceCustomTime": 1}),
    {"age": 30, "matchesPrefix": ["data/", "team/np-deployment/logs/"]},
    {"age": 30, "matchesSuffix": [".log", ".html"]},
]


@pytest.mark.parametrize("condition", [*LOSES, *LEAVES])
def test_a_rule_that_deletes_what_is_live_is_refused_where_it_is_for_states(
    condition: dict[str, Any],
) -> None:
    rule = {"action": {"type": "Delete"}, "condition": condition}
    if condition in LOSES:
        assert "deletes live objects" in _refused(rules=[rule])[0].what
    else:
        assert _audit(rules=[rule, ENDS]) == []
    # One that deletes nothing is fine.
    for action in ("SetStorageClass", "AbortIncompleteMultipartUpload"):
        assert _audit(rules=[rule | {"action": {"type": action}}, ENDS]) == []


@pytest.mark.parametrize(
    ("rules", "is_told"),
    [
        ([], True),
        ([{"action": {"type": "SetStorageClass"}, "condition": ENDS["condition"]}], True),
        ([{"action": ENDS["action"], "condition": {"daysSinceNoncurrentTime": 9}}], False),
        ([{"action": ENDS["action"], "condition": {"isLive": False, "age": 90}}], False),
        ([{"action": ENDS["action"], "condition": {"numNewerVersions": 20}}], False),
    ],
)
def test_a_bucket_that_never_ends_what_was_deleted_is_told_with_the_rule(
    rules: list[dict[str, Any]], *, is_told: bool
) -> None:
    told = _audit(rules=rules)

    assert [it.what for it in told] == (
        ["the bucket gs://states keeps for ever what is deleted in it"] if is_told else []
    )
    assert all('"daysSinceNoncurrentTime": 30' in it.fix for it in told)
    assert len(_audit(rules=[], versioned=False)) == 1, "without versions nothing stays"


def test_all_that_is_wrong_is_told_at_once() -> None:
    found = _refused(uniform=False, keeps=True, holds=True, bindings=[_binding(NODES)])
    assert len(found) == 4


def test_who_may_change_a_state_is_named_beside_the_caller() -> None:
    bindings = [
        _binding("projectEditor:my-project", "projectOwner:my-project", role="roles/owner"),
        _binding("group:ml@example.com", "user:me@example.com", role="projects/p/roles/mine"),
        _binding("user:reader@example.com", role="roles/storage.objectViewer"),
        _binding("user:names@example.com", role="roles/storage.legacyBucketReader"),
        _binding("user:there@example.com", only=_named("other/")),
        _binding("deleted:user:gone@example.com?uid=1"),
        _binding("user:here@example.com", only=_named("team/np-deployment/")),
    ]
    bucket = bucket_audit.Bucket(**CLOSED, bindings=bindings)  # type: ignore[arg-type]  # as above

    assert bucket_audit.writers(bucket, LOCATION, "me@example.com") == (
        "editors of my-project",
        "owners of my-project",
        "the group ml@example.com",
        "here@example.com",
    )


def test_a_whole_domain_may_not_change_a_state() -> None:
    (problem,) = _refused(bindings=[_binding("domain:example.com")])
    assert problem.what == "everybody of example.com may change the state in gs://states"
    assert "--member=domain:example.com --role=roles/storage.objectUser" in problem.fix
    assert (
        _audit(bindings=[_binding("domain:example.com", role="roles/storage.objectViewer")]) == []
    )


@pytest.mark.parametrize("member", ["domain:example.com", DEFAULT])
def test_who_may_change_a_state_on_purpose_is_named_and_not_refused(member: str) -> None:
    bindings = [_binding(member)]
    (problem,) = _refused(bindings=bindings)
    assert f'TEAM_DEFAULTS: state_writers = ["{member}"]' in problem.fix

    assert _audit(meant=(member,), bindings=bindings) == []
    assert len(_refused(meant=(member,), bindings=[_binding(member, NODES)])) == 1
    bucket = bucket_audit.Bucket(**CLOSED, bindings=bindings)  # type: ignore[arg-type]  # as above
    assert len(bucket_audit.writers(bucket, LOCATION, "")) == 1, "the plan still says so"


def test_nobody_can_mean_a_state_to_be_everybodys() -> None:
    (problem,) = _refused(closed=False, meant=("allUsers",), bindings=[_binding("allUsers")])
    assert "open to allUsers" in problem.what


@pytest.mark.parametrize(
    ("binding", "shared"),
    [
        (_binding(NODES, only=_named("team/np-deployment/vms/")), True),
        (_binding(NODES, only=f"{_named('team/np-deployment/vms/')} || {_listed('x')}"), True),
        (_binding(NODES, only=_named("team/np-deployment/")), True),
        (_binding(NODES), True),
        (_binding(NODES, role="roles/storage.objectViewer"), False),
        (_binding(NODES, only=_named("team/np-deployment/ray/")), False),
        (_binding(NODES, only=_named("team/other-deployment/vms/")), False),
        (_binding(PODS), False),
        (_binding(f"deleted:{NODES}?uid=1"), None),
    ],
)
def test_whether_an_account_may_write_what_machines_share_is_read_from_the_buckets_own_roles(
    binding: dict[str, Any], *, shared: bool | None
) -> None:
    assert bucket_audit.shares([binding], LOCATION, NODES, "vms/") is shared
