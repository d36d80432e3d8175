"""What the owners of secrets have to grant themselves, and whether that is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import accounts
from provision.codes import Code
from provision.errors import Problem, SettingsError
from provision.kinds import registry

if TYPE_CHECKING:
    from provision.catalogue.names import DerivedName
    from provision.context import Context
    from provision.settings.model import Settings
    from provision.settings.pairs import Secret
    from provision.spec.cluster import ClusterSpec

_ROLE: Final = "roles/secretmanager.secretAccessor"


def require(context: Context) -> None:
    """Make sure that secrets of another project are meant; `--yes` is a yes."""
    own = context.settings.project_id
    abroad = [it for it in _granted_by_owners(context.settings) if it.project != own]
    if not abroad or context.agreed:
        return
    raise SettingsError(
        f"secrets of another project ({', '.join(sorted({it.project for it in abroad}))}) would be"
        " readable in this cluster",
        code=Code.APPROVAL_NEEDED,
        why="whoever may log in on a VM, change its command, or run a pod can then read them",
        fix="if that is meant, let their owner run\n"
        + _commands(context.settings, abroad)
        + "\nand run Create with --yes",
        setting="SECRETS",
    )


def tell(context: Context) -> None:
    """Note the commands by which owners give access that this tool does not give."""
    granted = _granted_by_owners(context.settings)
    if granted:
        note = Problem(
            code=Code.SECRETS_UNREADABLE,
            setting="SECRETS",
            what="the cluster can read these secrets only once their owner has granted it",
            why="this tool gives access to secrets of its own project alone, and only to"
            " an account that it makes (SERVICE_ACCOUNT=dedicated)",
            fix=_commands(context.settings, granted),
        )
        context.note([note])


def _granted_by_owners(settings: Settings) -> list[Secret]:
    own = settings.project_id if _reader(settings) is not None else None
    return list({it.path: it for it in settings.secrets or () if it.project != own}.values())


def _commands(settings: Settings, secrets: list[Secret]) -> str:
    return "\n".join(
        f"gcloud secrets add-iam-policy-binding {secret.secret} --project {secret.project}"
        f" --role {_ROLE} --member serviceAccount:{_account(settings)}"
        for secret in secrets
    )


def _reader(settings: Settings) -> DerivedName | None:
    """The account that reads the secrets, if this tool makes it."""
    spec: ClusterSpec = registry.of(settings).spec(settings)
    return spec.reader


def _account(settings: Settings) -> str:
    reader = _reader(settings)
    if reader is not None:
        return accounts.of_project(reader.of(settings.name_prefix), settings.project_id)
    if settings.service_account == "default":
        described = f"gcloud projects describe {settings.project_id}"
        return accounts.default(f"$({described} --format 'value(projectNumber)')")
    return settings.service_account
