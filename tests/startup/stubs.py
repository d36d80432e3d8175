"""Stand-ins for the programs that start-up finds on a VM and that would change the world.

Each is a shell script that first writes its command line to /calls. Files under /simulated are
what they remember: installed units and packages outlive a boot, mounts in /run do not.
"""

import sys
from pathlib import Path

_PYTHON = str(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}")

_INSTALL = r"""
for argument; do
  case $argument in
    gcsfuse) printf '#!/bin/bash\n' >/stubs/gcsfuse; chmod +x /stubs/gcsfuse ;;
    mdadm) cp /simulated/mdadm /stubs/mdadm; chmod +x /stubs/mdadm ;;
    nfs-common) printf '#!/bin/bash\n' >/stubs/mount.nfs; chmod +x /stubs/mount.nfs ;;
    datacenter-gpu-manager-4-*) touch /simulated/"$argument" ;;
    --install-recommends) recommends=1 ;;
  esac
done
[[ -z ${recommends-} ]] || touch /simulated/datacenter-gpu-manager-4-proprietary
"""

# Only to the metadata server is there a way out; all else comes from here.
_CURL = r"""
url=${!#}
case $url in
  http://127.0.0.1:*) exec /usr/bin/curl "$@" ;;
esac
while (($#)); do [[ $1 == --output ]] && file=$2; shift; done
case $url in
  *add-google-cloud-ops-agent-repo.sh)
    echo 'echo "installer $*" >>/calls; touch /simulated/google-cloud-ops-agent.service' ;;
  *) echo 'a key' ;;
esac >"$file"
"""

_NVIDIA_SMI = r"""
case $* in
  --query-gpu=*) for gpu in 0 1; do echo "NVIDIA A100-SXM4-40GB, 580.65.06, 0"; done ;;
  -L) echo "GPU 0: NVIDIA A100-SXM4-40GB" ;;
  *) echo "| NVIDIA-SMI 580.65.06    Driver Version: 580.65.06    CUDA Version: 12.8 |" ;;
esac
"""

# Which package has what: DCGM cmake/packaging.cmake, 4.6.0.
_DCGMI = r"""
[[ -e /simulated/nvidia-dcgm.service ]] || exit 255
value=N/A
[[ ! -e /simulated/datacenter-gpu-manager-4-proprietary ]] || value=0.250
[[ $* != *203* ]] || value=7
printf '#Entity   GRACT\nID\nGPU 0     %s\nGPU 1     %s\n' "$value" "$value"
"""

_DPKG_QUERY = r"""
for pattern; do
  [[ ! -e /simulated/$pattern ]] || echo "ii  $pattern"
  while read -r state name; do
    [[ $name != $pattern ]] || echo "$state  $name"
  done < <(cat /simulated/packages 2>/dev/null)
done
"""

# NVIDIA's package is what the tests say; all else is as it is.
_SHA256SUM = r"""
read -r line
case $line in
  *cuda-keyring.deb) [[ ! -e /simulated/other-keyring ]] ;;
  *) /usr/bin/sha256sum "$@" <<<"$line" ;;
esac
"""

# The time since the boot goes on while somebody sleeps, and else as tests say: it is a file.
_SLEEP = r"""
read -r uptime _ </proc/uptime
echo "$((${uptime%.*} + ${1%.*})).00 0.00" >/proc/uptime
# Who sleeps while the VM goes down is ended.
[[ ! -e /simulated/rebooting ]] || kill -TERM 0
"""

# Only the unit of the command is really run, by tests/startup/systemd.py.
_SYSTEMCTL = rf"""
case $* in
  cat*) [[ -e /simulated/$2 ]] ;;
  is-system-running*) rm /simulated/rebooting 2>/dev/null && echo stopping ;;
  "enable --now"*) touch /simulated/"$3" ;;
  start*aiinfra-command.service) exec {_PYTHON} /stubs/systemd.py "$@" ;;
esac
"""
SETTLE = f"{_PYTHON} /stubs/systemd.py settle"
"""Waits for the units that were started."""

# venv and pip are simulated, the rest of Python is real.
_PYTHON3 = rf"""
if [[ "$*" == "-c import torch" ]]; then exit 1; fi
if [[ $1 == *cuda_installer.pyz ]]; then
  # As Google's does: a newer kernel and a reboot first, the driver when it is called again.
  [[ ! -e /simulated/no-driver ]] || exit 1
  if [[ -e /simulated/newer-kernel ]]; then exec cp /simulated/nvidia-smi /stubs/nvidia-smi; fi
  exec touch /simulated/newer-kernel /simulated/rebooting
fi
if [[ "$1 $2" == "-m venv" ]]; then
  folder=${{!#}}
  mkdir -p "$folder/bin"
  printf '#!/bin/bash\necho "pip $*" >>/calls; [[ ! -e /simulated/no-index ]]\n' \
    >"$folder/bin/python"
  chmod +x "$folder/bin/python"
  exit
fi
exec {_PYTHON} "$@"
"""

# Arrays are files, by the UUID in the superblocks of their disks (version 1.2, 4 KiB into each).
MDADM = rf"""
{_PYTHON} - "$@" <<'PYTHON'
import os
import pathlib
import struct
import sys
import uuid

action, array, *rest = sys.argv[1:]
options = dict(it[2:].split("=") for it in rest if it.startswith("--"))
disks = [it for it in rest if not it.startswith("--")]


def superblock(number, count, name, of):
    # struct mdp_superblock_1 of the kernel's include/uapi/linux/raid/md_p.h.
    block = bytearray(256)
    struct.pack_into("<4I16s32s", block, 0, 0xA92B4EFC, 1, 0, 0, of.bytes, name.encode())
    struct.pack_into("<2IQ2I", block, 72, 0, 0, 8192, 1024, count)
    struct.pack_into("<3QI", block, 128, 2048, 8192, 8, number)
    struct.pack_into("<Q2I", block, 208, 0, 0, 0)
    total = sum(struct.unpack("<64I", block))
    struct.pack_into("<I", block, 216, (total & 0xFFFFFFFF) + (total >> 32))
    return bytes(block)


if action == "--stop":
    sys.exit(pathlib.Path(array).unlink())
if action == "--create":
    this = uuid.uuid4()
    assert int(options["raid-devices"]) == len(disks)
    for number, disk in enumerate(disks):
        with open(disk, "r+b") as file:
            file.seek(4096)
            name = options["homehost"] + ":" + options["name"]
            file.write(superblock(number, len(disks), name, this))
else:
    found = set()
    for disk in disks:
        with open(disk, "rb") as file:
            file.seek(4096)
            block = file.read(256)
        found.add((uuid.UUID(bytes=block[16:32]), *struct.unpack_from("<I", block, 92)))
    ((this, count),) = found
    if count != len(disks):
        sys.exit(f"mdadm: {{array}} assembled from {{len(disks)}} drives - not enough to start it")
if array != "-":
    content = pathlib.Path(f"/simulated/arrays/{{this}}")
    content.parent.mkdir(exist_ok=True)
    if not content.exists():
        content.touch()
        os.truncate(content, sum(os.stat(it).st_size for it in disks))
    pathlib.Path(array).symlink_to(content)
PYTHON
"""

# What is mounted by fstab is remembered by name; a file system's content is a folder.
_MOUNT = r"""
if [[ $1 == -t ]]; then
  content=/simulated/filesystems/$(blkid --probe --match-tag UUID --output value "$5") || exit 32
  mkdir -p "$content" && exec /usr/bin/mount --bind "$content" "$6"
fi
grep -qF " ${2// /\\040} " /etc/fstab && echo "$2" >>/run/mounted
"""

_ID = r"""
case $1 in
  aiinfra-ray | aiinfra-job) [[ -e /simulated/$1 ]] ;;
  jupyter) exit 1 ;;
  *) exec /usr/bin/id "$@" ;;
esac
"""

STUBS = {
    "apt-get": _INSTALL,
    "curl": _CURL,
    "apt-mark": "",
    "chage": "",
    "dcgmi": _DCGMI,
    "dmesg": "",
    "dpkg-query": _DPKG_QUERY,
    "id": _ID,
    "ip": "cat /simulated/links.json",
    "ldconfig": "",
    "mdadm": MDADM,
    "modinfo": "exit 1",
    "mount": _MOUNT,
    "mountpoint": 'grep -qxF -- "${!#}" /run/mounted 2>/dev/null',
    "nvidia-smi": _NVIDIA_SMI,
    "python3": _PYTHON3,
    "sha256sum": _SHA256SUM,
    "sleep": _SLEEP,
    "systemctl": _SYSTEMCTL,
    "useradd": 'touch "/simulated/${!#}"',
}
