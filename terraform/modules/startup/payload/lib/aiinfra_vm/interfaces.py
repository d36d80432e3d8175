"""This VM's network interfaces, and whether they are ready: up, and with an address.

On machines with many interfaces they come one after the other, for up to three minutes after the
boot (Cluster Toolkit v1.95.0, install_gpu_network_wait_online.yml).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from aiinfra_vm import configuration

_CLASS = Path("/sys/class/net")
_SECONDS = 30


class Interface(NamedTuple):
    """A network interface that has a device: no loopback, bridge or the like."""

    name: str  # its name, such as "ens4"
    state: str  # "UP", or another state by its name in iproute2
    mtu: int  # its MTU in bytes
    addresses: list[str]

    @property
    def fault(self) -> str:
        """Why it is not ready, in words; "" if it is."""
        if self.state != "UP":
            return f"{self.name} is {self.state.lower()}"
        return "" if self.addresses else f"{self.name} has no address"


def find() -> list[Interface]:
    """The interfaces, in the order of their names.

    Raises:
        OSError, subprocess.SubprocessError: iproute2 is not there, fails, or hangs.
    """
    answer = subprocess.run(
        ["ip", "-json", "address", "show"],  # noqa: S607 - where the image has it
        stdout=subprocess.PIPE,
        check=True,
        timeout=_SECONDS,
    )
    links = json.loads(answer.stdout or "[]")
    found = [_interface(it) for it in links if (_CLASS / it["ifname"] / "device").exists()]
    return sorted(found, key=lambda it: it.name)


def _interface(link: dict[str, Any]) -> Interface:
    addresses = [it["local"] for it in link.get("addr_info", []) if it.get("family") == "inet"]
    return Interface(
        name=str(link["ifname"]),
        state=str(link.get("operstate", "UNKNOWN")),
        mtu=int(link.get("mtu", 0)),
        addresses=addresses,
    )


def ready(found: list[Interface]) -> list[Interface]:
    """Those that are ready."""
    return [it for it in found if not it.fault]


def with_address(found: list[Interface], address: str) -> Interface | None:
    """The one that has an address; None if none has."""
    return next((it for it in found if address in it.addresses), None)


def main() -> int:
    """Say what is not ready.

    The exit code: 0 if as many interfaces are ready as the VM should have.
    """
    found = find()
    expected = configuration.load()["interfaces"]
    lines = [f"{len(ready(found))} of {expected} network interfaces are ready"]
    lines += [it.fault for it in found if it.fault]
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    return 0 if len(ready(found)) >= expected else 1


if __name__ == "__main__":
    sys.exit(main())
