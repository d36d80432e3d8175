"""Stand-ins for the programs that start-up finds on a VM and that would change the world.

Each is a shell script that first writes its command line to /calls. Files under /simulated are
what they remember: installed units and packages outlive a boot, mounts in /run do not.
"""

from __future__ import annotations

import sys
from pathlib import Path

NVIDIA_KEY = "EB693B3035CD5710E231E123A4B469963BF863CC"

_PYTHON = str(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}")

_INSTALL = r"""
for argument; do
  case $argument in
    gcsfuse) printf '#!/bin/bash\n' >/stubs/gcsfuse; chmod +x /stubs/gcsfuse ;;
    nfs-common) printf '#!/bin/bash\n' >/stubs/mount.nfs; chmod +x /stubs/mount.nfs ;;
    datacenter-gpu-manager-4-cuda12)
      printf '#!/bin/bash\n' >/stubs/nv-hostengine; chmod +x /stubs/nv-hostengine ;;
  esac
done
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

# The time since the boot goes on while somebody sleeps, and else as tests say: it is a file.
_SLEEP = r"""
read -r uptime _ </proc/uptime
echo "$((${uptime%.*} + ${1%.*})).00 0.00" >/proc/uptime
"""

_SYSTEMCTL = r"""
case $1 in
  cat) [[ -e /simulated/$2 ]] ;;
esac
"""

# venv and pip are simulated, the rest of Python is real.
_PYTHON3 = rf"""
if [[ "$*" == "-c import torch" ]]; then exit 1; fi
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

STUBS = {
    "apt-get": _INSTALL,
    "curl": _CURL,
    "dmesg": "",
    "gcloud": 'cp /simulated/archive.tar.gz "${!#}"',
    "id": "[[ $1 != aiinfra-ray || -e /simulated/aiinfra-ray ]]",
    "gpg": f"echo 'fpr:::::::::{NVIDIA_KEY}:'",
    "ip": "cat /simulated/links.json",
    "mount": 'grep -qF " ${2// /\\\\040} " /etc/fstab && echo "$2" >>/run/mounted',
    "mountpoint": 'grep -qxF -- "${!#}" /run/mounted 2>/dev/null',
    "nvidia-smi": _NVIDIA_SMI,
    "python3": _PYTHON3,
    "sleep": _SLEEP,
    "systemctl": _SYSTEMCTL,
    "useradd": 'touch "/simulated/${!#}"',
}
