"""Makes this VM one of which an image can be made: what was installed stays, what is its own goes.

It brings first what VMs install only when a job or a mount wants it. Then it removes what is this
VM's or its cluster's: keys, identities, records of its start-up, logs, files of people. Each VM of
the image gets its own again at its first boot, as any new VM does. The VM is good for nothing else
from then on, so only one that was made to be baked does it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from aiinfra_vm import blocks, configuration, containers, outbound

SYSTEM = Path("/")
"""Where this VM's file system begins."""

_MADE_FOR_IT = "-bake"
"""How the name of a cluster ends that is made for an image."""
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,499}")
_PROGRAMS = ("docker", "jupyter", "mpirun", "nvcc", "torchrun")
"""What commands begin with, and not every image has."""
_PATH = "/opt/aiinfra/ray/bin:/opt/conda/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin"
_PATH += ":/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin"
_UNITS = ("agent", "command", "job", "ray", "rxdm", "slurm")
# Docker may have its data on the Local SSDs, so that they are mounted before it starts.
_KEPT_UNIT = "aiinfra-local-ssd.service"
_INSTALLED = ("ray.version", "tcpxo.plugin", outbound.APT_ORIGINALS)
"""What the start-up knows by these that it has installed, or changed."""
_TASKS = "tasks"
_OWN = (
    "etc/aiinfra", "etc/slurm/slurm.conf", "etc/slurm/slurm.key*",
    "etc/ssh/ssh_host_*", "etc/ssh/sshd_config.d/50-aiinfra.conf",
    "etc/profile.d/*aiinfra*.sh", "home/*/.ssh", "home/*/.*_history", "home/*/.docker",
    "home/*/.config/gcloud", "opt/aiinfra/*.log", "opt/aiinfra/payload",
    "opt/aiinfra/startup-command",
    "root/.ssh", "root/.*_history", "root/.docker", "root/.config/gcloud",
    "root/.cache", "root/.local", "usr/aiinfra", "var/lib/aiinfra-job", "var/lib/aiinfra-ray",
    "var/lib/cloud/instance", "var/lib/cloud/instances", "var/lib/dbus/machine-id",
    "var/lib/dhcp/*", "var/lib/slurm/*/*", "var/lib/systemd/random-seed", "var/log/aiinfra",
    "var/log/journal/*", "var/tmp/*",
)  # fmt: skip
"""What is this VM's, its cluster's or its users', as patterns below the root."""


def run(arguments: dict[str, Any]) -> dict[str, Any]:
    """Bring what is missing, and remove what is this VM's own.

    `installed`: a digest of all packages and images; `programs`: those of a few that people call
    which this VM has; `driver`: NVIDIA's, "" for none.

    Raises:
        ValueError: The arguments are others, or this VM was made for something else.
        containers.Unusable: Something can't be installed.
        OSError: Something can't be removed.
    """
    image = arguments.get("image")
    if set(arguments) != {"image"} or not isinstance(image, str):
        raise ValueError("it takes an image")
    if image and not _IMAGE.fullmatch(image):
        raise ValueError("that is not the name of an image")
    config = configuration.load()
    if not str(config["name_prefix"]).endswith(_MADE_FOR_IT):
        raise ValueError(f"only the VM of a cluster that ends with {_MADE_FOR_IT} may be sealed")
    containers.prepare(image, step="image")
    found = contents()
    _stop()
    clean(SYSTEM, config)
    os.sync()
    return found


def contents() -> dict[str, Any]:
    """What is installed, as `run` returns it."""
    lists = [
        ["dpkg-query", "--show"],
        ["docker", "image", "ls", "--quiet", "--no-trunc", "--all"],
        [str(SYSTEM / "opt/aiinfra/ray/bin/python"), "-m", "pip", "freeze", "--all"],
    ]
    said = "\n".join(sorted("\n".join(map(_said, lists)).splitlines()))
    driver = _said(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
    return {
        "installed": hashlib.sha256(said.encode()).hexdigest()[:12],
        "programs": [name for name in _PROGRAMS if shutil.which(name, path=_PATH)],
        "driver": driver.split("\n", 1)[0].strip(),
    }


def clean(root: Path, config: dict[str, Any]) -> None:
    """Remove what is this VM's own from a file system.

    `config`: the configuration of this VM, of which stays how many Local SSDs it has: they are
    mounted before the next start-up writes it again.

    Raises:
        OSError: Something can't be removed.
    """
    own = {path for pattern in _OWN for path in root.glob(pattern)}
    kept = root / "var/lib/aiinfra"
    own |= {it for it in kept.glob("*") if it.name not in (*_INSTALLED, _TASKS)}
    # What this task itself says is read when it is over.
    here = Path(os.readlink("/proc/self/fd/1")).parent
    own |= {it for it in (kept / _TASKS).glob("*") if it != here}
    for path in sorted(own):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    for log in (root / "var/log").rglob("*"):
        if log.is_file() and not log.is_symlink():
            os.truncate(log, 0)
    # systemd makes one at the first boot where the file is there and empty.
    (root / "etc/machine-id").write_text("")
    (root / "opt/aiinfra/config.json").write_text(
        json.dumps({"local_ssds": config.get("local_ssds") or 0, "mounts": []})
    )
    fstab = root / "etc/fstab"
    if fstab.exists():
        blocks.rewrite(fstab, ())
    outbound.forget(root)


def _stop() -> None:
    """Stop what writes, and let nothing of the tool's start before a new VM's own start-up."""
    units = [f"aiinfra-{name}.service" for name in _UNITS]
    # The agent runs this, and tells what came of it.
    for verb, names in (("stop", units[1:]), ("disable", units)):
        for name in names:
            _said(["systemctl", verb, name])
    for name in ("slurmd.service", "jupyter.service", "google-cloud-ops-agent.service"):
        _said(["systemctl", "stop", name])
    # Before its files go: what it writes until the VM is off is of nobody.
    _said(["journalctl", "--rotate"])


def _said(command: list[str]) -> str:
    """What a program prints; "" where there is none, or it fails."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(  # noqa: S603 - constants
            command,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            check=True, timeout=300,
        )  # fmt: skip
        return done.stdout.decode("utf-8", "replace")
    return ""
