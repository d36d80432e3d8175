"""Local SSDs under a real systemd, and the storage that keeps its cache there."""

import time

import pytest

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
    _until(debian, "test -e /var/log/aiinfra/step-files.log")
    assert debian.states()["local-ssd"] == "done", debian.detail("local-ssd")
    assert debian.states()["mounts"] == "done", debian.detail("mounts")

    debian.turn_off()
    debian.turn_on()
    _until(debian, "test -e /run/aiinfra-startup.lock && systemctl is-active mnt-data.mount")

    (call,) = debian.calls("mount.gcsfuse")
    # Who mounts it first, systemd or `mount --all`, decides whether the helper hears of nofail.
    mounted = f"mount.gcsfuse my-data /mnt/data -o rw,{options},_netdev"
    assert call.removesuffix(",nofail") == mounted
    # On a slow machine the start-up script, which comes later, may be the first to mount both.
    _until(debian, "systemctl is-active aiinfra-local-ssd.service")
    table = debian.run("cat /proc/self/mountinfo").splitlines()  # in the order of mounting
    points = [entry.split()[4] for entry in table]
    assert points.index("/mnt/localssd") < points.index("/mnt/data")
    assert "cycle" not in debian.run("journalctl --boot --no-pager --identifier systemd")
    assert "aiinfra-local-ssd.service" in debian.run(
        "systemctl show --value --property Requires mnt-data.mount"
    )
