"""Real Slurm on VMs with real Debian 13: three of four GPUs each, which are loop devices.

What this machine can't have is replaced in what `aiinfra_vm.slurm_conf` says: control groups (those
of many machines that run tests are not of the second version alone), and how large a VM is.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from tests.startup import roots
from tests.startup.debian_vm import STAND_INS, DebianVM
from tests.startup.group import Group, Site
from tests.startup.sandbox import PAYLOAD

if str(PAYLOAD / "lib") not in sys.path:
    sys.path.append(str(PAYLOAD / "lib"))

from aiinfra_vm import slurm_state

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMES = ("train-vm-1", "train-vm-2", "train-vm-3")
GPUS = 4
SECONDS = 90
"""Most for what is waited for."""
PARTITION = "g2"

_HERE = f"""\
import sys
from aiinfra_vm import slurm_conf, slurm_node
slurm_conf.SETTINGS.update(
    ProctrackType="proctrack/linuxproc", TaskPlugin="task/none",
    SlurmdParameters="config_overrides", KillWait="5", AuthInfo="cred_expire=10",
    SchedulerParameters=slurm_conf.SETTINGS["SchedulerParameters"] + ",bf_interval=2",
)
slurm_conf.CGROUP = "CgroupPlugin=disabled\\n"
slurm_conf.machine = lambda _: slurm_conf.Machine(8, 4000, tuple(range({GPUS})), "a100")
told = slurm_conf.options
slurm_conf.options = lambda this: "CPUs=8 " + told(this)
slurm_node._TURN = 1.0
sys.argv[1:] = ["--renew=1", "--expiry=5"]
slurm_node.main()
"""
_UNIT = """\
[Service]
ExecStart=
ExecStart=/usr/bin/python3 -S /opt/slurm_here.py
"""
_NVIDIA_SMI = f"""
case $* in
  --query-gpu=*) cat /simulated/gpus 2>/dev/null ||
    for ((gpu = 0; gpu < {GPUS}; gpu++)); do echo "NVIDIA L4, 580.65.06, 0"; done ;;
  -L) echo "GPU 0: NVIDIA L4" ;;
esac
"""


class SlurmGroup:
    """A group of VMs with Slurm, which all end with the block.

    `vms`: by name, as they are now.
    """

    def __init__(self, folder: Callable[[str], Path], *, names: tuple[str, ...] = NAMES) -> None:
        self._folder = folder
        self._names = names
        self._stack = ExitStack()
        self.vms: dict[str, DebianVM] = {}

    def __enter__(self) -> Self:
        packages = ("slurmctld", "slurmd", "slurm-client")
        root = roots.with_packages(roots.root(roots.Release.DEBIAN_13), *packages)
        site = self._stack.enter_context(Site(self._folder("site"), root))
        self.group = self._stack.enter_context(Group(site, self._folder("group"), root))
        self.group.shared.chmod(0o777)
        self.group.set_size(len(self._names))
        for name in self._names:
            self.add(name)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, name: str) -> DebianVM:
        """A VM, turned on; of a name that there was, one that its group made again."""
        vm = self.group.vm(name)
        vm.gpus = GPUS
        vm.stubs = {**STAND_INS, "nvidia-smi": _NVIDIA_SMI}
        self._name(vm)
        vm.write("opt/slurm_here.py", _HERE)
        vm.write("etc/systemd/system/aiinfra-slurm.service.d/here.conf", _UNIT)
        vm.configure(
            slurm={"partition": PARTITION}, gpus={"count": GPUS, "accelerator": "nvidia-l4"}
        )
        vm.turn_on()
        self.vms[name] = vm
        return vm

    def _name(self, vm: DebianVM) -> None:
        """Lead the name of each VM to its address on all of them, as Google's DNS does."""
        hosts = self.group.shared / "hosts"
        before = hosts.read_text() if hosts.exists() else ""
        kept = [it for it in before.splitlines() if it.split()[1] != vm.name]
        own = [it for it in vm.read("etc/hosts").splitlines() if it not in kept]
        hosts.write_text("\n".join((*kept, *own, "")))
        (vm.disk / "etc/hosts").unlink()
        (vm.disk / "etc/hosts").symlink_to("/srv/shared/hosts")
        # Of other names there is nobody to ask: that is said at once.
        vm.write("etc/resolv.conf", "")

    def run(
        self, command: str, *, on: str = NAMES[0], user: str = "root", seconds: float = 90
    ) -> str:
        """Run a command in a login shell of a VM."""
        return self.vms[on].run(command, user=user, seconds=seconds)

    def head(self) -> str:
        """The VM that has the lease; "" for none."""
        text = self.group.read("vms/slurm/head.json")
        return str(json.loads(text)["vm"]) if text else ""

    def copied(self) -> dict[str, bytes]:
        """The files of slurmctld that a new head would begin with."""
        document = json.loads(self.group.read("vms/slurm/state.json") or b"{}")
        key = (self.vms[self.head()].disk / "etc/slurm/slurm.key").read_bytes()
        sealed = base64.b64decode(document.get("sealed", ""))
        return slurm_state.opened(key, document.get("life", 0), sealed) or {}

    def nodes(self, on: str = NAMES[0]) -> dict[str, str]:
        """The state of each node, as sinfo on a VM says it; none where nobody answers."""
        try:
            # A head that is gone is asked for half a minute.
            said = self.run(
                "timeout 3 sinfo --noheader --Node --partition=all --format='%N %T'", on=on
            )
        except RuntimeError:
            return {}
        return dict(line.split() for line in said.splitlines())

    def wait_for_nodes(self, state: str = "idle", *, names: tuple[str, ...] | None = None) -> None:
        """Wait until all nodes are of a state."""
        wanted = dict.fromkeys(names or self._names, state)
        on = next(name for name in wanted if name in self.vms)
        self.until(lambda: self.nodes(on) == wanted)

    def until(self, what: Callable[[], Any], seconds: float = SECONDS) -> None:
        """Wait for something; what the VMs say, if it does not come."""
        deadline = time.monotonic() + seconds
        while not what():
            if time.monotonic() > deadline:
                raise AssertionError("\n".join(map(self.told, self.vms)))
            time.sleep(0.3)

    def told(self, name: str) -> str:
        """What Slurm's units on a VM have said."""
        units = "--unit aiinfra-slurm --unit slurmd --unit google-startup-scripts"
        try:
            said = self.run(
                f"journalctl {units} --output cat --no-pager --lines 60; sinfo -N -l", on=name
            )
        except (RuntimeError, AssertionError, IndexError) as error:
            said = str(error)
        return f"{name}:\n{said}"
