"""Shared storage in /etc/fstab, so that systemd mounts it at each boot.

A mount is `{server, remote_path, local_mount, type, options}`; which product serves it, nobody
here knows.
"""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from aiinfra_vm import blocks, configuration, localssd

if TYPE_CHECKING:
    from collections.abc import Mapping

# The VM boots, and can be reached, also when the storage cannot; it waits for the network.
_ALWAYS = ("_netdev", "nofail")
# Else a cache would fill the boot disk at a boot at which the Local SSDs come later, or not at all.
_AFTER_LOCAL_SSDS = "x-systemd.requires=aiinfra-local-ssd.service"


def line(mount: Mapping[str, str]) -> str:
    """The line of fstab for one mount."""
    server = mount["server"]
    source = f"{server}:{mount['remote_path']}" if server else mount["remote_path"]
    given = [option for option in mount["options"].split(",") if option]
    always = [*_ALWAYS, _AFTER_LOCAL_SSDS] if has_cache(mount) else _ALWAYS
    options = ",".join(given + [option for option in always if option not in given])
    return f"{_escaped(source)} {_escaped(mount['local_mount'])} {mount['type']} {options} 0 0"


def has_cache(mount: Mapping[str, str]) -> bool:
    """Whether what is read is kept on the Local SSDs."""
    return f"cache-dir={localssd.MOUNT_POINT}/" in mount["options"]


def _escaped(field: str) -> str:
    # fstab has its own escapes, as blanks part its fields.
    for character in "\\ \t":
        field = field.replace(character, f"\\{ord(character):03o}")
    return field


def open_share(point: Path) -> bool:
    """Let everybody write to a share that nobody has used yet; others keep what was chosen.

    A new Filestore share belongs to root, with the permissions 755 (Filestore, "Access control").
    """
    found = point.stat()
    is_new = (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (0, 0, 0o755)
    if not is_new or any(it.name != "lost+found" for it in point.iterdir()):
        return False
    point.chmod(0o1777)
    return True


def main() -> None:
    """What the step mounts asks for.

    `types` prints each mount's type, `points` where it goes, `cached` where those with a cache go;
    `fstab FILE` writes the file; `open` lets everybody write to new shares.
    """
    mounts = configuration.load()["mounts"]
    action = sys.argv[1]
    if action == "fstab":
        blocks.rewrite(Path(sys.argv[2]), list(map(line, mounts)))
    elif action == "open":
        for mount in mounts:
            if mount["type"] == "nfs" and open_share(Path(mount["local_mount"])):
                sys.stderr.write(f"everybody may write to {mount['local_mount']} now\n")
    else:
        key = "type" if action == "types" else "local_mount"
        wanted = [mount for mount in mounts if action != "cached" or has_cache(mount)]
        sys.stdout.write("".join(f"{mount[key]}\n" for mount in wanted))


if __name__ == "__main__":
    main()
