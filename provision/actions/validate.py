"""Validate: check the settings offline, and also with Google if there are credentials."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from provision.actions import copied_folder
from provision.catalogue import accounts
from provision.codes import Code
from provision.context import connect
from provision.deployment import deployment
from provision.deployment.deployment import RunInputs
from provision.errors import CheckError, CredentialsError, Problem, SettingsError
from provision.kinds import registry
from provision.lifecycle import pricing
from provision.settings.pairs import Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from provision.catalogue.names import DerivedName
    from provision.context import Context
    from provision.deployment.deployment import Deployment
    from provision.deployment.kind import Kind
    from provision.settings.model import Settings
    from provision.settings.storage import JobMount, Mount
    from provision.spec.cluster import ClusterSpec

_OFFLINE: Final = "or run Validate --offline, which asks nothing of Google"


def show_role(context: Context, *, looks: bool = False) -> None:
    """Print a custom role with the permissions that the actions of this env.list need."""
    from provision.preflight import table  # noqa: PLC0415 - only needed here

    kind = registry.of(context.settings)
    spec = kind.spec(context.settings)
    of_kind = kind.preflight(spec)
    every = table.used(spec, of_kind)
    every = table.reading(every) if looks else [*every, *table.of_bake(of_kind, every)]
    context.report.role = sorted(every)
    context.console.result(table.role_as_yaml(spec, of_kind, looks=looks))


def validate(context: Context) -> None:
    """Check the settings and the folder to copy, then run the online checks."""
    kind = registry.of(context.settings)
    if context.role:
        show_role(context)
        return
    tell_of_secrets(context)
    with copied_folder.packed(context, takes_files=kind.takes_files) as archive:
        inputs = RunInputs(files=archive, certificates=context.certificates)
        target = deployment.show(context, registry.deployment(context, inputs))
        if context.offline:
            # Another machine may be the one that creates the cluster.
            context.note(kind.missing(target.spec, context.environ))
            pricing.tell(context, target.spec, pricing.offline(context))
            _show_cost(context)
            context.console.result("The settings are valid. Google was not asked (--offline).")
            return
        _online(context, kind, target)


def _online(context: Context, kind: Kind[Any], target: Deployment[Any]) -> None:
    """Run the online checks; without credentials, a person is told that nobody asked Google."""
    # Imported here: offline, half of the run time would go into loading Google's libraries.
    from provision.deployment import workspace  # noqa: PLC0415 - as just said
    from provision.lifecycle import apply  # noqa: PLC0415 - as just said

    context.look_for_terraform()
    try:
        cloud = connect(context)
    except CredentialsError as error:
        _unasked(context, kind, target, error)
        return
    archive = target.inputs.files
    target = apply.settle(context, cloud, kind, archive, bucket=cloud.has_bucket(), is_gate=True)
    # Nothing is planned.
    context.report.plan = None
    with context.log(None, "validate") as log, workspace.run_folder(target, backend=False) as root:
        tool = context.terraform(root, log)
        tool.init(backend=False)
        tool.validate()
    _show_cost(context)
    context.console.result(f"The settings are valid, and the online checks passed{_but(context)}.")


def _show_cost(context: Context) -> None:
    from provision.screens import plan  # noqa: PLC0415 - only what passed has a price to show

    cost = context.report.cost
    if cost is not None:
        context.console.show(plan.of_settings(cost, context.console.width), as_result=True)


def _unasked(
    context: Context, kind: Kind[Any], target: Deployment[Any], error: CredentialsError
) -> None:
    (problem,) = error.problems
    pricing.tell(context, target.spec, pricing.offline(context))
    context.note([*kind.missing(target.spec, context.environ), *context.guesses])
    if not context.console.is_terminal:
        fix = "\n".join(filter(None, [problem.fix, _OFFLINE]))
        raise CredentialsError.of([dataclasses.replace(problem, fix=fix)])
    not_asked = dataclasses.replace(problem, what=f"Google was not asked: {problem.what}")
    context.note([not_asked])
    _show_cost(context)
    context.console.result("The settings are valid. Google was not asked: no credentials.")


def _but(context: Context) -> str:
    from provision.documents.checks import CheckState  # noqa: PLC0415 - of online checks alone

    states = context.report.online_checks or {}
    partly, skipped = (
        ", ".join(name for name, it in states.items() if it is state)
        for state in (CheckState.PARTLY, CheckState.SKIPPED)
    )
    return (f", as far as they could look ({partly})" if partly else "") + (
        f"; SKIP_CHECKS left out {skipped}" if skipped else ""
    )


_SECRETS_ROLE: Final = "roles/secretmanager.secretAccessor"


def require_meant(context: Context) -> None:
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
        + _grants(abroad, _account(context.settings))
        + "\nand run Create with --yes",
        setting="SECRETS",
    )


def tell_of_secrets(context: Context) -> None:
    """Note the commands by which owners give access that this tool does not give."""
    granted = _granted_by_owners(context.settings)
    if granted:
        note = Problem(
            code=Code.SECRETS_UNREADABLE,
            setting="SECRETS",
            what="the cluster can read these secrets only once their owner has granted it",
            why="this tool gives access to secrets of its own project alone, and only to"
            " an account that it makes (SERVICE_ACCOUNT=dedicated)",
            fix=_grants(granted, _account(context.settings)),
        )
        context.note([note])


class _Row(NamedTuple):
    """A kind of thing that a job has of its own."""

    option: str
    uses: str
    setting: str  # by which Create grants it
    code: Code
    things: Sequence[Secret | JobMount]
    denied: Callable[..., tuple[Code, str] | None]


def require_granted(
    context: Context, secrets: Sequence[Secret], mounts: Sequence[JobMount], *, makes: bool
) -> None:
    """See that a job's own secrets and buckets are there, and say how its machines get at them.

    `makes`: whether the cluster, and with it their account, is yet to be made.
    """
    if not (secrets or mounts):
        return
    from provision.preflight import named  # noqa: PLC0415 - of jobs that have such things alone
    from provision.preflight.check import Answers  # noqa: PLC0415 - as just said

    cloud, settings = connect(context), context.settings
    answers, account = Answers(cloud.api), _account(settings, cloud.project_number)
    mine = _reader(settings) is not None
    granted = {_name(it) for it in settings.secrets or ()} if makes and mine else set()
    granted |= {_name(it) for it in settings.gcs_mount_list or ()} if makes and mine else set()
    code = Code.SECRETS_UNREADABLE
    for row in (
        _Row("--secret", "read the secret of", "SECRETS", code, secrets, named.denied),
        _Row("--mount", "mount", "GCS_MOUNT_LIST", Code.NOTE, mounts, named.closed),
    ):
        why_not = {it: row.denied(answers, it, account) for it in row.things}
        for it, found in why_not.items():
            if found and found[0] is Code.RESOURCE_NOT_FOUND:
                raise CheckError.of([_missing(it, settings, row.option)])
        left = [it for it, found in why_not.items() if found and _name(it) not in granted]
        if not left:
            continue
        told = next((words for _, words in filter(None, why_not.values()) if words), "")
        names = ", ".join(it.name if isinstance(it, Secret) else _name(it) for it in left)
        # An account that is made now has nothing that its owners could have granted.
        is_vain = makes and mine and not told
        problem = Problem(
            code=Code.GOOGLE_REFUSED if is_vain else row.code,
            setting=row.option,
            what=f"could not see whether the job's machines may {row.uses} {names}: {told}"
            if told
            else f"nothing lets the job's machines {row.uses} {names}, as far as can be seen",
            why="Run grants nothing, and without that a job does not begin",
            fix=(f"name it in {row.setting}, which Create grants; or Create, and then\n" * makes)
            + _grants(left, account),
        )
        if is_vain:
            raise CheckError.of([problem])
        context.note([problem])


def _name(it: Secret | Mount | JobMount) -> str:
    return it.path if isinstance(it, Secret) else f"gs://{it.bucket}"


def _missing(it: Secret | JobMount, settings: Settings, option: str) -> Problem:
    if isinstance(it, Secret):
        what, why = it.path, f"{it.name} of the job is to have its value, and Run makes no secrets"
        make = f"secrets create {it.secret} --project {it.project} --data-file -"
    else:
        what, why = f"bucket {it.bucket}", f"the job is to have it at {it.path}, and Run makes none"
        make = f"storage buckets create gs://{it.bucket} --project {settings.project_id}"
        make += f" --location {settings.region} --uniform-bucket-level-access"
    return Problem(
        code=Code.RESOURCE_NOT_FOUND,
        what=f"there is no {what}",
        why=why,
        fix=f"check its spelling, or make it with: gcloud {make}",
        setting=option,
    )


def _granted_by_owners(settings: Settings) -> list[Secret]:
    own = settings.project_id if _reader(settings) is not None else None
    return list({it.path: it for it in settings.secrets or () if it.project != own}.values())


def _grants(things: Sequence[Secret | JobMount], account: str) -> str:
    from provision.preflight import named  # noqa: PLC0415 - of what is not granted alone

    member = f"--member serviceAccount:{account}"
    return "\n".join(
        f"gcloud secrets add-iam-policy-binding {it.secret} --project {it.project}"
        f" --role {_SECRETS_ROLE} {member}"
        if isinstance(it, Secret)
        else f"gcloud storage buckets add-iam-policy-binding gs://{it.bucket} {member}"
        f" --role {named.role_of(read_only=it.read_only)}"
        for it in things
    )


def _reader(settings: Settings) -> DerivedName | None:
    """The account that reads the secrets, if this tool makes it."""
    spec: ClusterSpec = registry.of(settings).spec(settings)
    return spec.reader


def _account(settings: Settings, number: str = "") -> str:
    """`number`: the project's; "" for what has a shell find it."""
    reader = _reader(settings)
    if reader is not None:
        return accounts.of_project(reader.of(settings.name_prefix), settings.project_id)
    if settings.service_account == "default":
        described = f"gcloud projects describe {settings.project_id}"
        return accounts.default(number or f"$({described} --format 'value(projectNumber)')")
    return settings.service_account
