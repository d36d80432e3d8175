"""What a group of VMs that exists costs."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Final

from provision.catalogue import names
from provision.documents import json_object
from provision.documents.status import PoolMode
from provision.kinds import spending
from provision.settings.choices import NetworkConfig
from provision.spec import capacity
from provision.spec.capacity import Mode
from provision.spec.pools import Pool, Size

if TYPE_CHECKING:
    from provision.kinds.spending import Existing
    from provision.kinds.vms.instances import Seen
    from provision.kinds.vms.trouble import Case
    from provision.state.record import Record

_UNBILLED: Final = frozenset({"STOPPED", "SUSPENDED", "TERMINATED"})
"""States in which a VM itself is not billed; its disk is, which is not counted here."""


def existing(case: Case, record: Record, seen: Seen) -> Existing | None:
    """The group as far as its cost goes; None if its record is lost."""
    asked, how = record.settings, mode(record)
    disk, disk_type = json_object.whole(asked.get("DISK_SIZE_GB")), asked.get("DISK_TYPE")
    if how is None or disk is None or not disk_type:
        return None
    by_type: dict[str, list[float]] = collections.defaultdict(list)
    by_type[case.group.machine_type] = []
    for vm in case.vms:
        age = spending.hours(vm.created, case.clock)
        if vm.status not in _UNBILLED and age is not None:
            by_type[vm.machine_type].append(age)
    other = sum(len(ages) for name, ages in by_type.items() if name != case.group.machine_type)
    pools = {
        # Older VMs may be of another type than new ones get.
        machine_type: Pool(
            name=f"{case.group.name} {machine_type}",
            machine_type=machine_type,
            zone=record.zone,
            gpu_type=asked.get("ACCELERATOR_TYPE"),
            gpu_count=json_object.whole(asked.get("GPU_COUNT")),
            mode=Mode(how.value),
            size=Size(
                count=max(0, case.group.size - other)
                if machine_type == case.group.machine_type
                else len(ages)
            ),
            disk_size_gb=disk,
            disk_type=str(disk_type),
            external_ip=bool(asked.get("ENABLE_EXTERNAL_IP")),
        )
        for machine_type, ages in by_type.items()
    }
    return spending.Existing(
        project_id=record.project_id,
        name_prefix=record.name_prefix,
        region=record.region,
        zone=record.zone,
        shares=spending.shares(record),
        machines=tuple(pools.values()),
        network_is_made=asked.get("NETWORK_CONFIG")
        not in {NetworkConfig.DEFAULT, NetworkConfig.EXISTING},
        ages={pool.name: by_type[machine_type] for machine_type, pool in pools.items()},
        age=spending.hours((seen.group or {}).get("creationTimestamp"), case.clock),
    )


def mode(record: Record) -> PoolMode | None:
    """How the VMs are got; None if the record does not say, as one that was made again."""
    if not record.settings:
        return None
    asked = {name: record.settings.get(name.upper()) for name in capacity.ASKING}
    asks = Mode.asked(asked)
    kept = record.reservations.get(names.GROUP.of(record.name_prefix))
    return PoolMode.RESERVATION_BOUND if kept and kept.bound else PoolMode(asks.value)
