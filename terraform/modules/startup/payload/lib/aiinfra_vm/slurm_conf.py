"""The files of Slurm on a VM: they follow from who is the head, and from what this VM has.

Nodes are dynamic (`slurmd -Z`), so no file lists them. All files but the head's `FirstJobId` are
the same on equal VMs.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import NamedTuple

# Beside lib/, in which this package is; the firewall's rules are made from it, too.
_PORTS = Path(__file__).parents[2] / "slurm-ports.json"
FOLDER = "etc/slurm"
"""Where the files are, below the root."""
STATE = Path("/var/lib/slurm/slurmctld")
"""Where slurmctld has its jobs and nodes."""
OURS = "aiinfra: "
"""How the reason begins for which the Prolog drains a node."""

_EVERY_LIFE = 10_000
"""How many numbers of jobs lie between the first ones of two lives of a head."""
_LIVES = 6_000
"""After so many lives their numbers begin again: MaxJobId is 67,043,328."""
_HEAD = re.compile(r"[-a-z0-9]+\([0-9.]+\)")
_GPU = re.compile(r"nvidia([0-9]+)")
_MODEL = re.compile(r"nvidia-(?:tesla-)?([a-z]+[0-9]+|rtx-pro-[0-9]+)")
"""In Compute Engine's names of GPUs: what scripts ask for, such as `--gres=gpu:h100:8`."""
_SYSTEM = 1024
"""MB of memory that are the system's own: agent, slurmd, page tables of the driver."""
SETTINGS = {
    "AuthType": "auth/slurm",
    "CredType": "cred/slurm",
    # Also how long a job waits that begins again; the Prolog asks the driver meanwhile.
    "AuthInfo": "cred_expire=60",
    "SlurmUser": "slurm",
    "StateSaveLocation": str(STATE),
    "SlurmdSpoolDir": "/var/lib/slurm/slurmd",
    "SlurmctldPidFile": "/run/slurmctld/slurmctld.pid",
    "SlurmdPidFile": "/run/slurmd.pid",
    # A VM of the same name brings its new address; from 24.11 on it does so without being told.
    "SlurmctldParameters": "cloud_reg_addrs",
    "ProctrackType": "proctrack/cgroup",
    "TaskPlugin": "task/cgroup,task/affinity",
    "JobAcctGatherType": "jobacct_gather/none",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core_Memory",
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "bf_interval=10,bf_continue,nohold_on_prolog_fail",
    "GresTypes": "gpu",
    "MpiDefault": "none",
    # Of a shell that came by ssh, with little locked memory, which RDMA needs.
    "PropagateResourceLimits": "NONE",
    "LaunchParameters": "use_interactive_step",
    "JobSubmitPlugins": "lua",
    "Prolog": f"/{FOLDER}/aiinfra-prolog",
    "PrologFlags": "Alloc",
    "TaskProlog": f"/{FOLDER}/aiinfra-task-prolog",
    "BatchStartTimeout": "180",
    "ReturnToService": "2",
    # Longer than a change of the head takes, else the new head requeues jobs that are well.
    "SlurmdTimeout": "300",
    "MessageTimeout": "30",
    "UnkillableStepTimeout": "300",
    "KillWait": "120",
    "MinJobAge": "3600",
    "JobRequeue": "1",
    "MaxNodeCount": "1100",
    "TreeWidth": "65533",
    # The head alone has FirstJobId.
    "DebugFlags": "NO_CONF_HASH",
}
CGROUP = """\
ConstrainCores=yes
ConstrainDevices=yes
ConstrainRAMSpace=yes
"""
_SUBMIT = """\
local ends = ENDS
-- By such a comment a job of Run's is known, and gets its folder: root's alone. A control character
-- could make another line of what squeue says, and blanks could stand before it.
local function refused(job, by)
  local comment, said = job.comment or "", ""
  for _, it in ipairs({"comment", "name", "tres_per_job", "tres_per_node"}) do
    said = said .. (job[it] or "")
  end
  if by == 0 or not (comment:find("aiinfra:", 1, true) or said:find("%c")) then
    return slurm.SUCCESS
  end
  slurm.log_user("the comment may not have aiinfra: in it, and no option control characters")
  return slurm.ERROR
end
function slurm_job_submit(job, partitions, by)
  local endless = job.time_limit == slurm.NO_VAL or job.time_limit == slurm.INFINITE
  if ends and by ~= 0 and endless and job.time_min == slurm.NO_VAL then
    slurm.log_user("these VMs end some day (MAX_RUN_DURATION, flex start), and what might not be"
      .. " over by then does not begin: scancel it, and send it again with --time")
  end
  return refused(job, by)
end
function slurm_job_modify(job, record, partitions, by) return refused(job, by) end
"""
_PROLOG = """\
#!/bin/sh
# Before a job's first process on this VM, as root.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
PYTHONPATH=/opt/aiinfra/lib exec /usr/bin/python3 -S -m aiinfra_vm.slurm_prolog
"""
# What a user has set already stays: as a person who logs in, who has the same from /etc/profile.d.
_TASK_PROLOG = """\
#!/bin/sh
# NCCL's settings on this VM for each task: what this prints, its environment gets.
while IFS= read -r line; do
  name=${line%%=*}
  case $line in
    LD_LIBRARY_PATH=*)
      case ":${LD_LIBRARY_PATH-}:" in
        *":${line#*=}:"*) ;;
        *) echo "export $line${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ;;
      esac ;;
    [A-Z]*=*) printenv "$name" >/dev/null || echo "export $line" ;;
  esac
done 2>/dev/null </etc/aiinfra/nccl.env
exit 0
"""


class Machine(NamedTuple):
    """What this VM has."""

    cpus: int
    memory: int  # MB, for jobs
    gpus: tuple[int, ...]  # the numbers of their devices
    model: str = ""  # which GPUs they are, such as "h100"; "" for no name


class File(NamedTuple):
    """A file of Slurm's."""

    text: str
    mode: int = 0o644


def ports() -> dict[str, int]:
    """The port of each part of Slurm: all that listen for other VMs."""
    found: dict[str, int] = json.loads(_PORTS.read_text("utf-8"))
    return found


def machine(
    accelerator: str, devices: Path = Path("/dev"), meminfo: Path = Path("/proc/meminfo")
) -> Machine:
    """This VM, whose GPUs Compute Engine calls so; "" for none.

    Its memory is told in whole GiB, less what is the system's: it varies a little from boot to
    boot, and a node with less than it had is drained.
    """
    found = (_GPU.fullmatch(it.name) for it in devices.iterdir())
    (total,) = re.findall(r"^MemTotal: +([0-9]+) kB$", meminfo.read_text("utf-8"), re.MULTILINE)
    whole = (int(total) // 1024 * 98 // 100 - _SYSTEM) // 1024 * 1024
    gpus = tuple(sorted(int(match[1]) for match in found if match))
    named = _MODEL.match(accelerator)
    model = named[1] if named and gpus else ""
    return Machine(os.cpu_count() or 1, max(whole, 512), gpus, model)


def options(this: Machine) -> str:
    """What slurmd says of this VM; its processors it finds itself."""
    typed = f"{this.model}:" if this.model else ""
    gpus = f" Gres=gpu:{typed}{len(this.gpus)}" if this.gpus else ""
    feature = f" Feature={this.model}" if this.model else ""
    return f"RealMemory={this.memory}{gpus}{feature}"


def files(  # noqa: PLR0913 - all that they follow from
    cluster: str, partition: str, head: str, this: Machine, life: int = 0, *, ends: bool = False
) -> dict[str, File]:
    """Path below the root -> file.

    `head`: NAME(ADDRESS) of it. `life`: which of a head's lives this is; 0 where this VM is none.
    `ends`: whether Google ends this VM some day.

    Raises:
        ValueError: The head is none, and might bring lines of its own, which root would follow.
    """
    if not _HEAD.fullmatch(head):
        raise ValueError(f"no head of Slurm: {head!r}")
    number = ports()
    # Who asks for a GPU and says no more gets its part of the processors, and of the memory.
    of_gpu = max(this.cpus // len(this.gpus), 1) if this.gpus else 0
    typed = f" Type={this.model}" if this.model else ""
    lines = {
        "ClusterName": cluster[:40],
        "SlurmctldHost": head,
        **({"FirstJobId": str(_EVERY_LIFE * (1 + life % _LIVES))} if life else {}),
        "SlurmctldPort": str(number["slurmctld"]),
        "SlurmdPort": str(number["slurmd"]),
        "SrunPortRange": f"{number['first_step']}-{number['last_step']}",
        **SETTINGS,
        "DefMemPerCPU": str(this.memory // this.cpus),
        **({"DefCpuPerGPU": str(of_gpu)} if of_gpu else {}),
    }
    text = "# Written by aiinfra-slurm.service; a change is lost with the next head.\n"
    text += "".join(f"{name}={value}\n" for name, value in lines.items())
    for name, more in ((partition, ""), ("all", " Default=YES")):
        text += f"PartitionName={name} Nodes=ALL{more} MaxTime=INFINITE State=UP\n"
    return {
        f"{FOLDER}/slurm.conf": File(text),
        f"{FOLDER}/gres.conf": File(
            "".join(f"Name=gpu{typed} File=/dev/nvidia{number}\n" for number in this.gpus)
        ),
        f"{FOLDER}/cgroup.conf": File(CGROUP),
        f"{FOLDER}/job_submit.lua": File(_SUBMIT.replace("ENDS", str(ends).lower())),
        f"{FOLDER}/aiinfra-prolog": File(_PROLOG, 0o755),
        f"{FOLDER}/aiinfra-task-prolog": File(_TASK_PROLOG, 0o755),
        "etc/default/slurmd": File(f"SLURMD_OPTIONS='-Z --conf \"{options(this)}\"'\n"),
    }


def write(root: Path, wanted: dict[str, File]) -> bool:
    """Write what is another, each file whole or not at all; whether something was.

    Raises:
        OSError: Something can't be written.
    """
    changed = False
    for name, file in wanted.items():
        path = root / name
        if path.exists() and path.read_text("utf-8") == file.text:
            continue
        draft = path.with_name(f"{path.name}.new")
        draft.write_text(file.text, "utf-8")
        draft.chmod(file.mode)
        draft.replace(path)
        changed = True
    return changed
