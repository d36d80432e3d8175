"""Whether the bucket of a state is fit to hold one, and the commands that fix it."""

from __future__ import annotations

import dataclasses
import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import names
from provision.codes import Code
from provision.errors import Problem, StateError
from provision.state.location import RECORD, SHARED, STATE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from provision.state.location import StateLocation

_EVERYBODY: Final = frozenset({"allUsers", "allAuthenticatedUsers"})
_MACHINES: Final = re.compile(
    rf"serviceAccount:(?:[^@]+(?:{names.SERVICE_ACCOUNT.suffix}|{names.WORKLOAD_ACCOUNT.suffix})@.+"
    r"\.iam\.gserviceaccount\.com|\d+-compute@developer\.gserviceaccount\.com)"
)
"""The accounts of machines and pods that this tool makes, and the default one of VMs."""
_OF_BUCKETS: Final = frozenset({"roles/storage.legacyBucketReader", "roles/storage.bucketViewer"})
"""Roles that tell of a bucket and the names in it, and of no content."""
_READING: Final = frozenset(
    {*_OF_BUCKETS, "roles/storage.legacyObjectReader", "roles/storage.objectViewer"}
)
"""Roles that change no object. A role that is not known here may."""
_CALLED: Final = {
    "domain": "everybody of {}",
    "group": "the group {}",
    "projectEditor": "editors of {}",
    "projectOwner": "owners of {}",
    "projectViewer": "viewers of {}",
}
"""Kind of a principal -> what people call one; others by their name alone."""
_NAMED: Final = re.compile(
    r'resource\.name\.startsWith\("projects/_/buckets/([^/]+)/objects/([^"\\]*)"\)'
)
_LISTED: Final = re.compile(
    r'api\.getAttribute\("storage\.googleapis\.com/objectListPrefix", ""\)\.startsWith\("[^"\\]+"\)'
)
_NOT_LIVE: Final = frozenset(
    {
        "customTimeBefore",
        "daysSinceCustomTime",
        "daysSinceNoncurrentTime",
        "noncurrentTimeBefore",
    }
)
"""Conditions that hold for noncurrent versions alone, or for a time that no object here has.

Source: Cloud Storage, "Object Lifecycle Management", read in 2026-11.
"""
KEPT_DAYS: Final = 30
"""Days for which a bucket that is made keeps what was replaced or deleted in it."""
_OF_NONCURRENT: Final = frozenset(
    {"daysSinceNoncurrentTime", "noncurrentTimeBefore", "numNewerVersions"}
)
_UPDATE: Final = "gcloud storage buckets update"
_ELSEWHERE: Final = "set TERRAFORM_GCS_PATH to another bucket"

_problem = functools.partial(Problem, code=Code.BUCKET_UNSAFE, setting="TERRAFORM_GCS_PATH")


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """What Cloud Storage says of a bucket."""

    versioned: bool  # whether it keeps older versions of objects
    uniform: bool  # whether IAM alone decides who may do what (uniform bucket-level access)
    closed: bool  # whether no role in it can be everybody's (public access prevention)
    # who has which role in it, as IAM has them; None where nobody may tell
    bindings: Sequence[Mapping[str, Any]] | None
    # whether no object may be deleted or replaced for a while (a retention policy)
    keeps: bool = False
    locked: bool = False  # whether that can't be changed any more
    holds: bool = False  # whether each new object is held until somebody releases it
    # what happens to its objects (Object Lifecycle Management)
    rules: Sequence[Mapping[str, Any]] = ()


def audit(
    bucket: Bucket,
    location: StateLocation,
    *,
    caller: str,
    needs_uniform: bool,
    meant: Collection[str] = (),
) -> list[Problem]:
    """What is worth knowing of the bucket of a state.

    `caller`: the email address of the account that asks, where it is one; "" where not known.
    `meant`: principals that may change states on purpose, as IAM has them.
    """
    judged = dataclasses.replace(bucket, bindings=_without(bucket.bindings, meant))
    url = f"gs://{location.bucket}"
    refused = [
        *_open(bucket, url),
        *_machines(judged, location, url, caller),
        *_domains(judged, location, url),
        *_lasting(bucket, location, url),
    ]
    plain = _problem(
        what=f"the bucket {url} has no uniform bucket-level access",
        why="access lists of single objects can open the state to others",
        fix=f"run: {_UPDATE} {url} --uniform-bucket-level-access",
    )
    notes = []
    if not bucket.uniform and needs_uniform:
        why = (
            "VMs and pods get roles on parts of its folder, and Cloud Storage takes roles with"
            " conditions only with it"
        )
        refused.append(_problem(what=plain.what, why=why, fix=plain.fix))
    elif not bucket.uniform:
        notes.append(plain)
    if refused:
        raise StateError.of(refused)
    if not bucket.versioned:
        notes.append(
            _problem(
                what=f"the bucket {url} keeps no older versions",
                why="a state that is damaged or deleted can't be restored",
                fix=f"run: {_UPDATE} {url} --versioning",
            )
        )
    elif not any(map(_ends_noncurrent, bucket.rules)):
        condition = f'{{"daysSinceNoncurrentTime": {KEPT_DAYS}}}'
        rule = f'{{"rule": [{{"action": {{"type": "Delete"}}, "condition": {condition}}}]}}'
        notes.append(
            _problem(
                what=f"the bucket {url} keeps for ever what is deleted in it",
                why="with object versioning a deleted object stays as a noncurrent version, such as"
                " old parts of jobs' logs, and is billed and readable after Destroy, too",
                fix=f"put {rule}, with the rules that it has, into a file, and run: {_UPDATE} {url}"
                " --lifecycle-file=FILE",
            )
        )
    if bucket.bindings is None:
        notes.append(
            Problem(
                code=Code.NOT_CHECKED,
                what=f"could not check who may read or change the state in {url}",
                why="these credentials may not read the roles in it",
                fix="get storage.buckets.getIamPolicy on the bucket to have it checked",
            )
        )
    return notes


def shares(
    bindings: Sequence[Mapping[str, Any]], location: StateLocation, member: str, part: str
) -> bool | None:
    """Whether the bucket's own roles let somebody write into a part of the folder.

    None where one of that name was deleted: a role that it had is another matter.
    """
    if any(it.startswith(f"deleted:{member}?") for one in bindings for it in one["members"]):
        return None
    place = f"{location.folder}/{part}"
    for binding in bindings:
        if member not in binding["members"] or binding["role"] in _READING:
            continue
        terms = str((binding.get("condition") or {}).get("expression", "")).split("||")
        named = [found for term in terms if (found := _NAMED.fullmatch(term.strip()))]
        if not binding.get("condition") or any(place.startswith(it[2]) for it in named):
            return True
    return False


def _without(
    bindings: Sequence[Mapping[str, Any]] | None, meant: Collection[str]
) -> Sequence[Mapping[str, Any]] | None:
    if bindings is None:
        return None
    return [
        {**it, "members": [one for one in it["members"] if one not in meant]} for it in bindings
    ]


def writers(bucket: Bucket, location: StateLocation, caller: str) -> tuple[str, ...]:
    """Whom the bucket's roles let change the state, beside the caller; each in words."""
    found = (
        member
        for binding in bucket.bindings or ()
        if _may_write(binding, location)
        for member in sorted(binding["members"])
    )
    return tuple(
        dict.fromkeys(it for member in found if (it := _called(member)) not in {"", caller})
    )


def _meant(member: str) -> str:
    return f'if it is meant to, write in the file of TEAM_DEFAULTS: state_writers = ["{member}"]'


def _may_write(binding: Mapping[str, Any], location: StateLocation) -> bool:
    condition = binding.get("condition")
    return binding["role"] not in _READING and not (condition and _leaves_out(condition, location))


def _called(member: str) -> str:
    """What people call a principal; "" for one that was deleted."""
    kind, _, name = member.partition(":")
    if kind == "deleted":
        return ""
    return _CALLED.get(kind, "{}").format(name or kind)


def _domains(bucket: Bucket, location: StateLocation, url: str) -> Iterator[Problem]:
    """Whole domains that may change the state: whoever joins one decides what a run does."""
    for binding in bucket.bindings or ():
        for member in sorted(it for it in binding["members"] if it.startswith("domain:")):
            if _may_write(binding, location):
                one = "--all" if binding.get("condition") else "--condition=None"
                yield _problem(
                    what=f"{_called(member)} may change the state in {url}",
                    why=f"the domain has {binding['role']} there; whoever changes a state decides"
                    " what the next run does, with the rights of whoever starts it",
                    fix="grant it to a group of those who run this program, and run: gcloud storage"
                    f" buckets remove-iam-policy-binding {url} --member={member}"
                    f" --role={binding['role']} {one}; or {_ELSEWHERE}; or {_meant(member)}",
                )


def _open(bucket: Bucket, url: str) -> Iterator[Problem]:
    """Everybody, where everybody may have a role."""
    there = {member for binding in bucket.bindings or () for member in binding["members"]}
    everybody = sorted(_EVERYBODY & there)
    if everybody and not bucket.closed:
        yield _problem(
            what=f"the bucket {url} is open to {' and '.join(everybody)}",
            why="the Terraform state has everything that the settings hold, secrets too",
            fix=f"run: {_UPDATE} {url} --public-access-prevention; or {_ELSEWHERE}",
        )


def _machines(bucket: Bucket, location: StateLocation, url: str, caller: str) -> Iterator[Problem]:
    """Accounts of machines that may read or change more than what machines share.

    The caller is none of them: whoever acts as it has its rights without a state.
    """
    for binding in bucket.bindings or ():
        role, condition = binding["role"], binding.get("condition")
        if role in _OF_BUCKETS or (condition and _leaves_out(condition, location)):
            continue
        for member in sorted(filter(_MACHINES.fullmatch, binding["members"])):
            email = member.partition(":")[2]
            if email == caller:
                continue
            one = "--all" if condition else "--condition=None"
            yield _problem(
                what=f"machines that act as {email} may read or change the state in {url}",
                why=f"the account has {role} there; whoever changes a state decides what the next"
                " run does, with the rights of whoever starts it",
                fix=f"run: gcloud storage buckets remove-iam-policy-binding {url} --member={member}"
                f" --role={role} {one}; or, if they need that, {_ELSEWHERE}; or {_meant(member)}",
            )


def _leaves_out(condition: Mapping[str, Any], location: StateLocation) -> bool:
    """Whether a condition keeps somebody to other folders, or to what machines share in this one.

    One that is not understood does not.
    """
    terms = (term.strip() for term in str(condition.get("expression")).split("||"))
    return all(_LISTED.fullmatch(term) or _is_elsewhere(term, location) for term in terms)


def _is_elsewhere(term: str, location: StateLocation) -> bool:
    named, own = _NAMED.fullmatch(term), f"{location.folder}/"
    if named is None or named[1] != location.bucket:
        return False
    if named[2].startswith(own):
        return named[2].removeprefix(own).startswith(SHARED)
    return not own.startswith(named[2])


def _lasting(bucket: Bucket, location: StateLocation, url: str) -> Iterator[Problem]:
    """What lets no run change or remove a state, or removes the state of a cluster that runs."""
    stuck = (
        "each run replaces the state and removes its lock, so a Destroy would not get far enough"
        " to delete the machines"
    )
    if bucket.keeps:
        clear = f"run: {_UPDATE} {url} --clear-retention-period; or {_ELSEWHERE}"
        yield _problem(
            what=f"the bucket {url} has a retention policy",
            why=f"its objects can't be replaced or deleted for a while; {stuck}",
            fix=f"{_ELSEWHERE}: the policy is locked" if bucket.locked else clear,
        )
    if bucket.holds:
        yield _problem(
            what=f"the bucket {url} holds each new object (default event-based hold)",
            why=f"an object that is held can't be replaced or deleted; {stuck}",
            fix=f"run: {_UPDATE} {url} --no-default-event-based-hold; or {_ELSEWHERE}",
        )
    if any(_deletes(rule, location) for rule in bucket.rules):
        yield _problem(
            what=f"a lifecycle rule of the bucket {url} deletes live objects",
            why="it would delete the state of a cluster that still runs",
            fix='add "isLive": false to the condition of each such rule, or name other folders in'
            f" its matchesPrefix, and run: {_UPDATE} {url} --lifecycle-file=FILE; or {_ELSEWHERE}",
        )


def _ends_noncurrent(rule: Mapping[str, Any]) -> bool:
    """Whether a rule deletes what was replaced or deleted, some time later."""
    condition = rule.get("condition", {})
    if rule["action"]["type"] != "Delete" or condition.get("isLive"):
        return False
    return condition.get("isLive") is False or not _OF_NONCURRENT.isdisjoint(condition)


def _deletes(rule: Mapping[str, Any], location: StateLocation) -> bool:
    """Whether a rule deletes a state, or the record beside it, that is in use."""
    condition = rule.get("condition", {})
    if rule["action"]["type"] != "Delete":
        return False
    if condition.get("isLive") is False or condition.get("numNewerVersions"):
        return False
    if any(condition.get(name) is not None for name in _NOT_LIVE):
        return False
    begins, ends = (tuple(condition.get(f"matches{it}", ("",))) for it in ("Prefix", "Suffix"))
    paths = (f"{location.folder}/{name}" for name in (RECORD, STATE))
    return any(path.startswith(begins) and path.endswith(ends) for path in paths)
