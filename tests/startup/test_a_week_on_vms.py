"""A week of one job on a VM with a real system: what ends it, what it goes on from, what is told.

The VM is as Ubuntu 24.04 is where that matters: Ubuntu's packages can't be had here, so it has
needrestart of Debian, with Ubuntu's way to restart services without asking.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.startup import roots
from tests.startup.debian_vm import DebianVM
from tests.startup.group import Group, Site
from tests.startup.test_jobs import packed
from tests.startup.test_ranks import _wait

# The first of them makes the roots, which takes minutes where none is kept.
pytestmark = pytest.mark.timeout(900)

TRAIN = Path(__file__).with_name("saves_at_sigterm.py")
CHECKPOINTS = "/srv/shared/checkpoints"
# Canonical, "needrestart changes in Ubuntu 24.04: service restarts".
AS_UBUNTU = "$nrconf{restart} = 'a';\n"
# A library that each program has in use, replaced as an upgrade does it, and apt's hook after it.
UPGRADE = """\
library=$(readlink -f /lib/x86_64-linux-gnu/libc.so.6)
cp "$library" "$library.new" && mv "$library.new" "$library"
cp /usr/sbin/needrestart /srv/needrestart
DEBIAN_FRONTEND=noninteractive apt-get --yes install xfsprogs 2>&1
"""
WITNESS = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
XID = "NVRM: Xid (PCI:0000:04:00): 79, pid=4711, GPU has fallen off the bus."
# The kernel's log, which no VM of this machine can write to.
JOURNALCTL = """\
#!/bin/bash
case $* in *--dmesg*) cat /simulated/dmesg 2>/dev/null ;; *) exec /usr/bin/journalctl "$@" ;; esac
"""
JOB = "train-1"


class Week:
    """One VM of a group that is to have one, and the job on it."""

    def __init__(self, group: Group) -> None:
        self.group = group
        group.set_size(1)
        group.shared.chmod(0o777)
        self.goal(10**8)
        archive, sha256 = packed({"train.py": TRAIN.read_text()})
        group.write(f"jobs/files/{sha256}.tar.gz", archive)
        shell = f"exec python3 train.py --checkpoints {CHECKPOINTS} --steps $(cat /srv/shared/goal)"
        command = ["bash", "-c", shell]
        job = {"name": JOB, "command": command, "files": sha256, "restarts": 9}
        group.write(f"jobs/{JOB}.json", json.dumps(job).encode())
        group.write("jobs/index.json", json.dumps({"jobs": [{"name": JOB}]}).encode())

    def goal(self, steps: int) -> None:
        """Say how many steps the next attempt is to make in all."""
        (self.group.shared / "goal").write_text(str(steps))

    def new_vm(self, **config: Any) -> None:
        """A VM that its group has made, of the same name."""
        self.vm: DebianVM = self.group.vm("train-vm-a")
        self.vm.write("etc/needrestart/conf.d/ubuntu.conf", AS_UBUNTU)
        self.vm.write("etc/systemd/system/witness.service", WITNESS)
        self.vm.enable("witness.service")
        self.vm.write("usr/local/sbin/journalctl", JOURNALCTL, 0o755)
        self.vm.configure("", gpus=None, **config)
        self.vm.turn_on()

    def step(self) -> int:
        """That of the newest checkpoint."""
        found = sorted((self.group.shared / "checkpoints").glob("checkpoint-*.json"))
        return int(found[-1].stem.rpartition("-")[2]) if found else 0

    def wait(self, what: Any) -> None:
        """Wait until something is so."""
        _wait(what, [self.vm])

    def runs(self, attempt: int) -> None:
        """Wait until an attempt has gone on from the last checkpoint, and made new ones."""
        before = self.step()
        self.wait(lambda: "begins at step" in self.group.log(JOB, attempt))
        begun = int(self.group.log(JOB, attempt).partition("begins at step ")[2].split()[0])
        assert (begun > 0) == (attempt > 1)
        self.wait(lambda: self.step() >= before + 1000)


def _pids(vm: DebianVM) -> list[str]:
    show = "systemctl show --value --property MainPID"
    return vm.run(f"for it in job agent; do {show} aiinfra-$it; done; {show} witness").split()


def test_a_job_goes_on_from_its_checkpoint_and_each_stop_can_be_read_afterwards(
    tmp_path: Path,
) -> None:
    root = roots.with_packages(roots.root(roots.Release.DEBIAN_13), "needrestart")
    (tmp_path / "site").mkdir()
    with Site(tmp_path / "site", root) as site, Group(site, tmp_path, root) as group:
        week = Week(group)
        week.new_vm()
        week.runs(1)

        # Monday night: an upgrade. It restarts what uses the library, but not what is ours. On
        # Debian 13 systemd answers nobody for a moment then.
        before = _pids(week.vm)
        week.vm.run("apt-get --yes update && " + UPGRADE, seconds=300)
        after = _pids(week.vm)
        assert after[:2] == before[:2], "needrestart restarted the job or its agent"
        assert after[2] != before[2], "needrestart restarts nothing at all here"
        week.vm.run("systemctl start apt-daily-upgrade.service")
        result = week.vm.run("systemctl show --value --property Result apt-daily-upgrade")
        assert result.strip() == "exec-condition", "the image's updates go on beside a job"

        # Tuesday: a GPU falls off its bus.
        week.vm.run(f"echo '{XID}' >/simulated/dmesg; pkill -ABRT -x python3 -u aiinfra-job")
        week.runs(2)
        week.vm.run("rm /simulated/dmesg")

        # Wednesday: its owner restarts the VM.
        week.vm.turn_off()
        week.vm.turn_on()
        week.runs(3)

        # Thursday: preemption, and the group makes the VM again, whose run ends soon.
        week.vm.server.values["preempted"] = "TRUE"
        # Also if it is gone before the program has saved what it has.
        report = f"vms/jobs/{JOB}/nodes/{week.vm.name}.json"
        week.wait(lambda: b"(preemption)" in (group.read(report) or b""))
        week.vm.kill()
        up = int(float(Path("/proc/uptime").read_text().split()[0]))
        week.new_vm(max_run_seconds=up + 200, stop_notice=100)
        week.runs(4)

        # Friday: the run ends, and Create makes a VM again.
        week.wait(lambda: "stopped at step" in group.log(JOB, 4))
        week.vm.kill()
        week.goal(week.step() + 2000)
        week.new_vm()
        week.wait(lambda: group.read(f"vms/jobs/{JOB}/course.json"))

        course = json.loads(group.read(f"vms/jobs/{JOB}/course.json") or "")
        assert (course["state"], course["attempt"]) == ("succeeded", 5), course
        causes = [
            f"exit code 134: {XID}",
            "the VM goes down",
            "Google takes this VM back (preemption)",
            "its MAX_RUN_DURATION is over",
        ]
        assert len(course["events"]) == len(causes), course["events"]
        for event, cause in zip(course["events"], causes, strict=True):
            assert cause in event
        assert "through at step" in group.log(JOB, 5)
