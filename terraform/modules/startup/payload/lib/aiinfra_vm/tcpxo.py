"""What GPUDirect-TCPXO's daemon and plugin need of this VM, at each boot and before each start.

On GKE an installer does this on each node, on Container-Optimized OS the image: devices that the
plugin writes to past the kernel (apertures), and the driver's libraries in a folder of their own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PCI = Path("/sys/bus/pci/devices")
APERTURES = Path("/dev/aperture_devices")
"""Where the plugin looks for them, by its variable NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY."""
LIBRARIES = Path("/var/lib/aiinfra/nvidia")
"""The driver's libraries, as the daemon's container sees them."""

_APERTURE = ("0x1ae0", "0x0084")  # vendor and device: Google's, beside each GPU interface
_DRIVER = ("libcuda.so", "libnvidia-")
_SECONDS = 60


def apertures() -> list[Path]:
    """The PCI devices that the plugin writes to, in the order of their addresses."""
    return [
        device
        for device in sorted(PCI.glob("*"))
        if _read(device / "vendor") == _APERTURE[0] and _read(device / "device") == _APERTURE[1]
    ]


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except OSError:
        return ""


def show_apertures() -> None:
    """Show each aperture in a folder of /dev that everybody may write in: sysfs is root's.

    Raises:
        OSError, subprocess.SubprocessError: It can't be mounted there.
    """
    for device in apertures():
        folder = APERTURES / device.name
        folder.mkdir(parents=True, exist_ok=True)
        if not os.path.ismount(str(folder)):
            subprocess.run(  # noqa: S603 - names of devices
                ["mount", "--bind", str(device.resolve()), str(folder)],  # noqa: S607
                check=True,
                timeout=_SECONDS,
            )
        for resource in device.glob("resource*"):
            resource.chmod(0o666)


def link_libraries() -> int:
    """Put links to the driver's libraries into a folder that has nothing else.

    A container can't use the system's folder: the C library in it is another one.

    Raises:
        OSError, subprocess.SubprocessError: ldconfig fails, or the folder can't be written.
    """
    known = subprocess.run(
        ["ldconfig", "-p"],  # noqa: S607 - where the image has it
        stdout=subprocess.PIPE,
        check=True,
        timeout=_SECONDS,
    )
    shutil.rmtree(str(LIBRARIES), ignore_errors=True)
    LIBRARIES.mkdir(parents=True)
    count = 0
    for line in known.stdout.decode().splitlines():
        name, _, path = line.strip().partition(" ")
        if name.startswith(_DRIVER) and "x86-64" in path:
            _link(name, Path(path.rpartition("=> ")[2]).resolve())
            count += 1
    return count


def _link(name: str, file: Path) -> None:
    """A file under its own name, and under the one that programs know it by."""
    target = LIBRARIES / file.name
    if not target.exists():
        try:
            os.link(str(file), str(target))
        except OSError:  # another file system
            shutil.copy2(str(file), str(target))
    if name != file.name and not (LIBRARIES / name).exists():
        (LIBRARIES / name).symlink_to(file.name)


def main() -> int:
    """Prepare all of it."""
    for module in ("import-helper", "nvidia-uvm"):
        subprocess.run(["modprobe", module], check=True, timeout=_SECONDS)  # noqa: S603, S607
    show_apertures()
    if link_libraries() == 0:
        sys.stderr.write("the loader knows no libraries of NVIDIA's driver\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
