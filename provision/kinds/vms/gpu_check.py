"""Test for VM groups: compare the GPUs that each VM found at start-up with its machine type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.catalogue import machines, names
from provision.codes import Code
from provision.documents.timeline import OnInterrupt, StageName
from provision.documents.vm_status import GpuCheck
from provision.errors import ClusterError, Problem, StillWaiting
from provision.google.resources import GROUP
from provision.kinds.vms import instances, out_of_date, status
from provision.kinds.vms.resize_requests import ResizeRequest
from provision.lifecycle import older_machines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.catalogue.machines import Gpu
    from provision.context import Cloud, Context
    from provision.kinds.vms.instances import Vm
    from provision.kinds.vms.startup import Startup
    from provision.state.record import Record

_MOST: Final = 5
"""The number of VMs that are reported one by one."""


def run(context: Context, cloud: Cloud, record: Record) -> str:
    """Read the VMs and what they found at start-up, and compare them.

    Args:
        context: The run; its report gets what the VMs found.
        cloud: Google.
        record: The deployment.

    Returns:
        The verdict, in one sentence.

    Raises:
        ClusterError: A VM found something else than it should have, or has not checked yet.
    """
    found = instances.find(cloud.api, record, context.clock)
    _require_all(cloud, record, found)
    older = out_of_date.find(cloud.api, record)
    older_machines.tell(context, older)
    if older:
        raise ClusterError.of([older_machines.note(older)])
    with context.progress.stage(StageName.TEST, OnInterrupt.NOTHING) as stage:
        stage.counts(f"{len(found)} VMs are asked what they found at start-up")
        # A request for each VM, and a quota for requests: a thousand take some minutes.
        told = status.startups(context, cloud, record, [vm.name for vm in found])
        stage.counts(f"{len(found)} VMs have said what they found at start-up")
    group = names.GROUP.of(record.name_prefix)
    context.report.checks = judge(
        found, told, f"{group} --zone {record.zone} --project {record.project_id}"
    )
    return f"{len(found)} VMs have all their GPUs and interfaces, and no memory errors"


def _require_all(cloud: Cloud, record: Record, found: Sequence[Vm]) -> None:
    """See that as many VMs run as Create was to make.

    Raises:
        StillWaiting: Google is still making them.
        ClusterError: There are others than those.
    """
    running = sum(vm.status == "RUNNING" for vm in found)
    wanted = _wanted(cloud, record)
    if running == wanted:
        return
    group = names.GROUP.of(record.name_prefix)
    have = f"{running} of {wanted} VMs of {group} run"
    if running < wanted and _are_coming(cloud, record, wanted):
        raise StillWaiting(
            f"{have}; Google has not given the rest yet",
            why="a test of a part of them would not say whether all are well",
            fix="run Create again to wait for them, then Test",
        )
    raise ClusterError(
        have,
        code=Code.MACHINES_GONE,
        why="somebody changed the size of the group, or deleted VMs, after the last Create",
        fix=f"run Create to have {wanted} again; or set INSTANCE_COUNT to what you want, and run"
        " Create",
        setting="INSTANCE_COUNT",
    )


def _wanted(cloud: Cloud, record: Record) -> int:
    """How many VMs the last Create was to make; 1 at least."""
    group = cloud.folder.outputs().get("group") or {}
    return int(group.get("size") or record.settings.get("INSTANCE_COUNT") or 1)


def _are_coming(cloud: Cloud, record: Record, wanted: int) -> bool:
    """Whether the group, or a request for flex start VMs, still asks for what is missing."""
    name = names.GROUP.of(record.name_prefix)
    path = GROUP.path(project=record.project_id, zone=record.zone, name=name)
    group = cloud.api.find(GROUP.look.service, path)
    if group is None:
        return False
    requests = map(ResizeRequest.of, cloud.api.resize_requests(path))
    return int(group.get("targetSize", 0)) >= wanted or any(it.is_open for it in requests)


def judge(vms: Sequence[Vm], startups: Mapping[str, Startup], group: str) -> dict[str, GpuCheck]:
    """Compare what the VMs found with what they should have.

    Args:
        vms: The VMs.
        startups: What they reported of their start-up, by name.
        group: Their group in gcloud's arguments: "NAME --zone Z --project P".

    Returns:
        Name of the VM -> what it found.

    Raises:
        ClusterError: A VM found something else than it should have, or has not checked yet.
    """
    problems = []
    found = {}
    for vm in vms:
        check = startups[vm.name].gpu_check
        found[vm.name] = _document(check or {})
        wrong = list(_wrong(vm, check)) if check else _unchecked(vm, startups[vm.name])
        if wrong:
            problems.append(
                Problem(
                    code=Code.TEST_FAILED,
                    what=f"{vm.name}: {'; '.join(wrong)}",
                    why=f"its machine type is {vm.machine_type}",
                    fix="let Google recreate it with: gcloud compute instance-groups managed"
                    f" recreate-instances {group} --instances={vm.name}",
                )
            )
    if problems:
        raise ClusterError.of(_shortened(problems))
    return found


def _document(check: Mapping[str, Any]) -> GpuCheck:
    """What a VM reported, which may be of another version of this program."""
    return GpuCheck(
        gpus=check.get("gpus"),
        names=tuple(check.get("names") or ()),
        driver=check.get("driver"),
        ecc_errors=check.get("ecc_errors"),
        interfaces=check.get("interfaces"),
    )


def _shortened(problems: Sequence[Problem]) -> list[Problem]:
    if len(problems) <= _MOST:
        return list(problems)
    rest = [problem.what.partition(":")[0] for problem in problems[_MOST:]]
    return [
        *problems[:_MOST],
        Problem(
            code=Code.TEST_FAILED,
            what=f"{len(rest)} more: {words.listed(rest)}",
            fix="Status has all of them",
        ),
    ]


def _unchecked(vm: Vm, startup: Startup) -> list[str]:
    gpus, _ = _due(vm)
    if gpus == 0:
        return []
    return [f"its GPUs have not been checked yet: it {startup.words}"]


def _due(vm: Vm) -> tuple[int | None, Gpu | None]:
    """The number and the type of the GPUs that a VM should have; None if not known."""
    if vm.attached:
        kind, count = next(iter(vm.attached.items()))
        return count, machines.GPUS.get(kind)
    machine = machines.lookup(vm.machine_type)
    if machine is None:
        return None, None
    return machine.gpus or 0, machine.family.gpu


def _wrong(vm: Vm, check: Mapping[str, Any]) -> Iterator[str]:
    count, kind = _due(vm)
    if count is not None and check.get("gpus") != count:
        yield f"{check.get('gpus')} GPUs instead of {count}"
    if kind is not None:
        # A part of an RTX PRO 6000 calls itself "RTX Pro 6000".
        named = kind.model.casefold()
        strange = sorted({it for it in check.get("names") or [] if named not in it.casefold()})
        if strange:
            yield f"{', '.join(strange)} instead of {kind.model}"
    if count and not check.get("driver"):
        yield "no driver"
    if check.get("ecc_errors"):
        yield f"{check['ecc_errors']} uncorrected memory (ECC) errors"
    if check.get("interfaces") != vm.interfaces:
        yield f"{check.get('interfaces')} network interfaces instead of {vm.interfaces}"
