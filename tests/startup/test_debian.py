"""The real start-up script on the real system of each Debian release: what stand-ins can't show."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.startup.debian_vm import DebianVM

# The first of them makes the roots, which takes minutes where none is kept.
pytestmark = pytest.mark.timeout(900)

BUCKET = {
    "server": "",
    "remote_path": "my-data",
    "local_mount": "/mnt/my data",
    "type": "gcsfuse",
    "options": "allow_other,implicit_dirs",
}
_TMPFS_FOR_EXT4 = """\
#!/bin/bash
if [[ "$1 $2" == "-t ext4" ]]; then exec /usr/bin/mount -t tmpfs ssd "$6"; fi
exec /usr/bin/mount "$@"
"""
# When systemd was done with it, in microseconds since the boot.
_SINCE = "ActiveEnterTimestampMonotonic"
# apt-get holds the lock on the lists while it runs what is to be run before an update.
SOMEBODY_ELSE = """\
[Unit]
Before=google-startup-scripts.service
[Service]
Type=exec
ExecStart=/usr/bin/apt-get -o "APT::Update::Pre-Invoke::=sleep 12" update
[Install]
WantedBy=multi-user.target
"""


def test_apt_is_waited_for_while_another_apt_get_holds_the_lists(debian: DebianVM) -> None:
    debian.write("etc/systemd/system/somebody-else.service", SOMEBODY_ELSE)
    wanted = debian.disk / "etc/systemd/system/multi-user.target.wants/somebody-else.service"
    wanted.symlink_to("/etc/systemd/system/somebody-else.service")
    debian.configure(mounts=[BUCKET])

    booted = debian.boot()

    assert booted.returncode == 0, booted.stderr
    assert "Could not get lock" in debian.read("var/log/aiinfra/step-mounts.log")
    assert debian.states()["mounts"] == "done"


def test_a_bucket_is_mounted_by_gcsfuse_and_no_source_is_left(debian: DebianVM) -> None:
    debian.configure(mounts=[BUCKET])

    booted = debian.boot()

    assert booted.returncode == 0, booted.stderr
    assert "/mnt/my data" in debian.run(
        "findmnt --noheadings --raw --output TARGET | sed 's/\\\\x20/ /'"
    )
    assert debian.run("ls /etc/apt/sources.list.d").split() == ["debian.list"]
    debian.run("apt-get --quiet update")

    debian.turn_off()
    assert debian.boot().returncode == 0
    assert debian.calls("mount.gcsfuse") == [
        "mount.gcsfuse my-data /mnt/my data -o rw,allow_other,implicit_dirs,_netdev"
    ]


def _until(debian: DebianVM, command: str) -> None:
    """Wait for a moment of a start-up, whose other steps don't matter."""
    deadline = time.monotonic() + 100
    while True:
        try:
            debian.run(f"systemctl is-system-running | grep -q . && {command}")
        except (RuntimeError, IndexError):  # not yet, or not even systemd
            assert time.monotonic() < deadline, command
            time.sleep(0.5)
        else:
            return


def test_local_ssds_come_before_what_keeps_its_cache_there(debian: DebianVM) -> None:
    # The disk is a file, which nobody can mount here without the host's root.
    disk = "/simulated/google-local-nvme-ssd-0"
    debian.write("etc/tmpfiles.d/disks.conf", f"L /dev/disk/by-id/{disk[11:]} - - - - {disk}\n")
    debian.write("usr/local/bin/mount", _TMPFS_FOR_EXT4, 0o755)
    debian.write("usr/local/sbin/mkfs.ext4", "#!/bin/bash\n", 0o755)  # no root has it
    with (debian.disk / disk[1:]).open("wb") as file:
        file.truncate(4 << 20)
    options = "allow_other,cache-dir=/mnt/localssd/gcsfuse"
    cached = {**BUCKET, "local_mount": "/mnt/data", "options": options}
    debian.configure(mounts=[cached], local_ssds=1)
    debian.turn_on()
    _until(debian, "test -e /var/log/aiinfra/files.log")
    assert debian.states()["local-ssd"] == "done", debian.detail("local-ssd")
    assert debian.states()["mounts"] == "done", debian.detail("mounts")

    debian.turn_off()
    debian.turn_on()
    _until(debian, "test -e /run/aiinfra-startup.lock && systemctl is-active mnt-data.mount")

    assert debian.calls("mount.gcsfuse") == [
        f"mount.gcsfuse my-data /mnt/data -o rw,{options},_netdev"
    ]
    began = {
        unit: int(debian.run(f"systemctl show --value --property {_SINCE} {unit}"))
        for unit in ("aiinfra-local-ssd.service", "mnt-data.mount")
    }
    assert 0 < began["aiinfra-local-ssd.service"] < began["mnt-data.mount"]
    assert "cycle" not in debian.run("journalctl --boot --no-pager --identifier systemd")
    assert "aiinfra-local-ssd.service" in debian.run(
        "systemctl show --value --property Requires mnt-data.mount"
    )


def test_updates_wait_until_start_up_is_over(debian: DebianVM) -> None:
    debian.configure("systemctl is-enabled apt-daily-upgrade.service >/out; true")

    assert debian.boot().returncode == 0

    assert debian.run("systemctl is-active apt-daily-upgrade.timer").strip() == "active"
    assert debian.run("systemctl is-enabled apt-daily-upgrade.service").strip() == "static"


def test_nvidias_packages_come_where_the_image_has_their_source_with_another_key(
    debian: DebianVM,
) -> None:
    key = "/usr/share/keyrings/cuda-archive-keyring.asc"
    number = debian.root.release.number
    url = f"https://developer.download.nvidia.com/compute/cuda/repos/debian{number}/x86_64/"
    debian.write(key, (debian.root.sources / "key.asc").read_text())
    debian.write("etc/apt/sources.list.d/cuda.list", f"deb [signed-by={key}] {url} /\n")
    debian.configure(ops_agent=True)

    booted = debian.boot()

    assert booted.returncode == 0, booted.stderr
    debian.run("apt-get --quiet update")
    assert debian.states()["ops-agent"] == "done", debian.detail("ops-agent")
