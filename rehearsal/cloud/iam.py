"""IAM: service accounts and their policies."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from rehearsal.cloud import org_policies, paging, policies, projects
from rehearsal.cloud.projects import Project
from rehearsal.cloud.routes import Routes
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request, rfc3339

Account = dict[str, Any]

_DELETED = "iam/deleted"  # by unique id, for 30 days with Google, for good here
_PAGE = 100
_LIFETIME = 3600.0  # seconds
_SPREAD = 75.0  # seconds of cloud time; users have met 30 to over 60
_ACCOUNT_ID = re.compile(r"[a-z][-a-z0-9]*[a-z0-9]")
_SHORTEST, _LONGEST = 6, 30
_TEXTS = ("displayName", "description")
_MASKS = {"display_name": "displayName", "displayName": "displayName", "description": "description"}


def _create(request: Request, store: Store, project: str) -> Reply:
    found = projects.permitted(project, store)
    body = request.json()
    account_id = body.get("accountId") or ""
    _check_id(account_id)
    if org_policies.in_force(request.scenarios, org_policies.ACCOUNT_CREATION):
        raise org_policies.precondition(
            "Service account creation is not allowed on this project.",
            org_policies.ACCOUNT_CREATION,
            f"projects/{found.id}/serviceAccounts/?configvalue=",
        )
    wanted = _texts(body.get("serviceAccount") or {})
    email = f"{account_id}@{found.accounts_domain}"
    if store.get(policies.ACCOUNTS, email) is not None:
        raise GoogleError(
            409,
            f"Service account {account_id} already exists within project projects/{found.id}.",
            status=None,
        )
    # The same name gets another number each time: bindings of a deleted account don't come back.
    account = _account(found, email, f"{email}#{store.count(f'iam/{email}')}") | wanted
    store.put(policies.ACCOUNTS, email, account)
    if "young-account" in request.scenarios:
        store.put(policies.YOUNG, email, {"at": request.after(_SPREAD)})
    return Reply(body=account)


def _list(request: Request, store: Store, project: str) -> Reply:
    found = projects.permitted(project, store)
    find(store, found.id, found.compute_account)  # there from the start, if not deleted
    accounts = (
        (email, account)
        for email, account in store.list(policies.ACCOUNTS)
        if account["projectId"] == found.id
    )
    items, token = paging.page(accounts, request.query, size="pageSize", limit=_PAGE)
    return Reply(body={**({"accounts": items} if items else {}), **token})


def _get(_request: Request, store: Store, project: str, email: str) -> Reply:
    return Reply(body=_require(store, project, email))


def _delete(_request: Request, store: Store, project: str, email: str) -> Reply:
    account = _require(store, project, email)
    email, number = account["email"], account["uniqueId"]
    store.delete(policies.ACCOUNTS, email)
    store.put(_DELETED, number, account)
    policies.forget(store, account["name"])
    policies.rename_member(
        store, f"serviceAccount:{email}", f"deleted:serviceAccount:{email}?uid={number}"
    )
    return Reply(body={})


def _undelete(_request: Request, store: Store, project: str, email: str) -> Reply:
    # Only the number tells which of the deleted ones: the address is the number here.
    account = store.get(_DELETED, email)
    if account is None or project not in ("-", account["projectId"]):
        raise _unknown(project)
    address = account["email"]
    if store.get(policies.ACCOUNTS, address) is not None:
        raise GoogleError(
            400, f"Service account {address} exists and cannot be undeleted over.", status=None
        )
    store.delete(_DELETED, email)
    store.put(policies.ACCOUNTS, address, account)
    policies.rename_member(
        store, f"deleted:serviceAccount:{address}?uid={email}", f"serviceAccount:{address}"
    )
    return Reply(body={"restoredAccount": account})


def _patch(request: Request, store: Store, project: str, email: str) -> Reply:
    account = _require(store, project, email)
    body = request.json()
    wanted = _texts(body.get("serviceAccount") or {})
    for field in filter(None, (body.get("updateMask") or "").split(",")):
        account.pop(_MASKS[field], None)
        account |= {key: value for key, value in wanted.items() if key == _MASKS[field]}
    store.put(policies.ACCOUNTS, account["email"], account)
    return Reply(body=account)


def _disable(_request: Request, store: Store, project: str, email: str) -> Reply:
    account = _require(store, project, email) | {"disabled": True}
    store.put(policies.ACCOUNTS, account["email"], account)
    return Reply(body={})


def _enable(_request: Request, store: Store, project: str, email: str) -> Reply:
    account = _require(store, project, email)
    account.pop("disabled", None)
    store.put(policies.ACCOUNTS, account["email"], account)
    return Reply(body={})


def _create_key(request: Request, store: Store, project: str, email: str) -> Reply:
    account = _require(store, project, email)
    if org_policies.in_force(request.scenarios, org_policies.KEY_CREATION):
        raise org_policies.precondition(
            "Key creation is not allowed on this service account.",
            org_policies.KEY_CREATION,
            f"{account['name']}?configvalue=",
        )
    raise GoogleError(
        501, "iam.projects.serviceAccounts.keys.create is not part of the simulated cloud."
    )


def _get_policy(_request: Request, store: Store, project: str, email: str) -> Reply:
    account = _require(store, project, email)
    return Reply(body=policies.get(store, account["name"], {}))


def _set_policy(request: Request, store: Store, project: str, email: str) -> Reply:
    account = _require(store, project, email)
    policy = request.json().get("policy") or {}
    owner = projects.permitted(account["projectId"], store)
    policies.check_members(store, policy, owner.accounts_domain)
    return Reply(body=policies.replace(store, account["name"], policy, {}))


def _check_id(account_id: str) -> None:
    if not _SHORTEST <= len(account_id) <= _LONGEST:
        raise GoogleError(
            400,
            f'The account ID "{account_id}" does not have a length between {_SHORTEST} and'
            f" {_LONGEST}.",
            status=None,
        )
    if not _ACCOUNT_ID.fullmatch(account_id):
        raise GoogleError(
            400,
            f'The account ID "{account_id}" must match the regular expression'
            f" {_ACCOUNT_ID.pattern}.",
            status=None,
        )


def _texts(wanted: Mapping[str, Any]) -> Account:
    """The two fields that a caller may write; an empty one is as good as none."""
    return {key: wanted[key] for key in _TEXTS if wanted.get(key)}


def _account(project: Project, email: str, seed: str) -> Account:
    digest = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")
    unique_id = str(10**20 + digest)
    return {
        "name": f"projects/{project.id}/serviceAccounts/{email}",
        "projectId": project.id,
        "uniqueId": unique_id,
        "email": email,
        "etag": "MDEwMjE5MjA=",  # Google's own constant: the field is deprecated
        "oauth2ClientId": unique_id,
    }


def find(store: Store, project: str, address: str) -> Account | None:
    """The account of an email or unique id; project "-" is that of the account."""
    if address.isdecimal():
        every = store.list(policies.ACCOUNTS)
        return next((a for _, a in every if a["uniqueId"] == address), None)
    account = store.get(policies.ACCOUNTS, address)
    if account is None:
        account = _default_account(store, project, address)
    return account if account and project in ("-", account["projectId"]) else None


def number_of(store: Store, email: str) -> str:
    """The number of the account that has an address now; "" if none has it, or gets a token."""
    account = find(store, "-", email)
    return "" if account is None or account.get("disabled") else str(account.get("uniqueId", ""))


def _default_account(store: Store, project: str, address: str) -> Account | None:
    """Compute Engine's default account: made when first looked at, but not after its deletion."""
    if not address.endswith("-compute@developer.gserviceaccount.com"):
        return None
    found = projects.find(address.partition("-")[0] if project == "-" else project, store)
    if found is None or address != found.compute_account:
        return None
    account = _account(found, address, address)
    account["displayName"] = "Compute Engine default service account"
    if store.get(_DELETED, account["uniqueId"]) is not None:
        return None
    store.put(policies.ACCOUNTS, address, account)
    return account


def _require(store: Store, project: str, address: str) -> Account:
    if project != "-":
        project = projects.permitted(project, store).id
    account = find(store, project, address)
    if account is None:
        raise _unknown(project)
    return account


def _unknown(project: str) -> GoogleError:
    """Who names no project is not told that there is no such account.

    Source: IAM's API, "-" in place of the project: "an HTTP 403 Forbidden error instead of a 404
    Not Found error". The words are those of most of its methods.
    """
    if project == "-":
        return GoogleError(
            403,
            "Permission 'iam.serviceAccounts.get' denied on resource (or it may not exist).",
            status="PERMISSION_DENIED",
        )
    return GoogleError(404, "Unknown service account", status=None)


_ONE = "projects/{project}/serviceAccounts/{email}"

service = Routes(
    {
        "POST projects/{project}/serviceAccounts": _create,
        "GET projects/{project}/serviceAccounts": _list,
        f"POST {_ONE}:getIamPolicy": _get_policy,
        f"POST {_ONE}:setIamPolicy": _set_policy,
        f"POST {_ONE}:undelete": _undelete,
        f"POST {_ONE}:disable": _disable,
        f"POST {_ONE}:enable": _enable,
        f"POST {_ONE}/keys": _create_key,
        f"GET {_ONE}": _get,
        f"DELETE {_ONE}": _delete,
        f"PATCH {_ONE}": _patch,
    },
    api="iam.v1",
)


def _generate_token(request: Request, store: Store, email: str) -> Reply:
    """A token with which the caller acts as an account; of none there is no right to either."""
    if find(store, "-", email) is None:
        raise GoogleError(
            403,
            "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not"
            " exist).",
            status="PERMISSION_DENIED",
        )
    # Whole seconds: Google's library for Python reads no others.
    expires = rfc3339(request.now + _LIFETIME).partition(".")[0] + "Z"
    return Reply(body={"accessToken": f"ya29.as:{email}", "expireTime": expires})


tokens = Routes({f"POST {_ONE.replace('{project}', '-')}:generateAccessToken": _generate_token})
"""The IAM Credentials API, of which the rehearsal has no discovery document."""
