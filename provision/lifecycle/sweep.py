"""How Destroy removes resources that interrupted runs left in the cloud.

They are found by the marker of the deployment; resources of others are never touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.deployment.deployment import NOTHING_HELD
from provision.errors import TerraformError
from provision.google import resources
from provision.google.api import GoogleApiError, Service
from provision.state import terraform_state

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from provision.deployment.deployment import Held
    from provision.google.api import GoogleApi
    from provision.google.owner import Owner
    from provision.google.resources import Resource

_IN_USE: Final = 400
"""Compute Engine's code for "is already being used by"."""


def sweep(  # noqa: PLR0913 - one of them is a choice between two ways
    project: str,
    owner: Owner,
    known: Collection[str],
    api: GoogleApi,
    tell: Callable[[str], None],
    *,
    last: bool,
    buckets: Collection[str] = (),
    hosts: Collection[str] = (),
    rows: Sequence[Resource] = resources.SWEPT,
    held: Held = NOTHING_HELD,
    why: str = "an earlier run was interrupted and left it",
) -> int:
    """Remove the resources that carry the marker and are not in the state; returns their number.

    `known`: paths ("projects/..."), email addresses and IDs of what is in the state, which
    Terraform removes. `last`: whether this is the last sweep. Earlier ones skip resources that are
    in use; by the last one nothing is in use any more.

    Raises:
        TerraformError: Something can't be removed.
    """
    count = 0
    accounts = api.marked(resources.SERVICE_ACCOUNT.look, project, owner)
    for bucket in buckets:
        _leave(bucket, {one["email"] for one in accounts}, owner, known, held, api)
    for path, service in _marked(project, owner, api, rows, hosts):
        if service is Service.IAM:
            email = path.rpartition("/")[2]
            if email in held.accounts:
                continue
            kept = _roles_in_state(project, email, known)
            api.revoke(project, email, kept)
            # The roles of a deleted account can't be revoked any more, so it has to stay.
            if kept or email in known:
                continue
        if path in held.paths or _is_known(path, known):
            continue
        if _delete(api, service, path, in_use_is_fine=not last):
            tell(f"Removed {path}: {why}")
            count += 1
    return count


def _is_known(path: str, known: Collection[str]) -> bool:
    """Whether the state has a path.

    A dashboard's path in the state has the project's number, or once imported the project's ID, so
    only its name is compared.
    """
    _, is_dashboard, name = path.partition("/dashboards/")
    if not is_dashboard:
        return path in known
    return any(one.endswith(f"/dashboards/{name}") for one in known)


def _leave(  # noqa: PLR0913, PLR0917 - each is a fact of its own
    bucket: str,
    emails: Collection[str],
    owner: Owner,
    known: Collection[str],
    held: Held,
    api: GoogleApi,
) -> None:
    """Revoke our roles on a bucket, recognized by their member or by the marker in the condition.

    A service account that the user provided keeps roles without a condition: its owner may have
    granted them.
    """
    ours = {f"serviceAccount:{email}" for email in emails}

    def is_left_behind(binding: Mapping[str, Any], member: str) -> bool:
        condition = binding.get("condition", {})
        found = terraform_state.grant(f"b/{bucket}", binding["role"], member, condition)
        stays = found in known or member.partition(":")[2] in held.accounts
        return not stays and (member in ours or condition.get("description") == owner.text)

    api.revoke_in_bucket(bucket, is_left_behind)


def _roles_in_state(project: str, email: str, known: Collection[str]) -> set[str]:
    """The roles of an account in the project that Terraform revokes, conditional ones too."""
    prefix, member = f"{project}/", f"/serviceAccount:{email}"
    own = (one.removeprefix(prefix) for one in known if one.startswith(prefix))
    return {role for role, is_its, _ in (one.partition(member) for one in own) if is_its}


def _marked(
    project: str,
    owner: Owner,
    api: GoogleApi,
    rows: Sequence[Resource],
    hosts: Collection[str] = (),
) -> Iterator[tuple[str, Service]]:
    """The marked resources, ordered so that each is unused by the time it is removed."""
    for row, where in resources.places(rows, project, hosts):
        for document in api.marked(row.look, where, owner):
            yield resources.path_in_document(document), row.look.service


def _delete(api: GoogleApi, service: Service, path: str, *, in_use_is_fine: bool) -> bool:
    try:
        api.delete(service, path)
    except GoogleApiError as error:
        if in_use_is_fine and error.code == _IN_USE:
            return False
        raise TerraformError(
            f"{path} could not be removed",
            code=error.code_or(Code.NOT_REMOVED),
            why=error.message,
            fix=error.problems[0].fix or "fix what Google names and run Destroy again",
        ) from error
    return True
