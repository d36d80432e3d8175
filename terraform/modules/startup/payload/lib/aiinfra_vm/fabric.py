"""NCCL's environment on this VM, and whether the fabric between VMs is all there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from aiinfra_vm import configuration, counted, interfaces, metadata, report, tcpxo

ENVIRONMENT = Path("/etc/aiinfra/nccl.env")
"""KEY=VALUE lines without quotes, for systemd, `docker run --env-file` and shells alike."""

TCPXO_LIBRARIES = Path("/var/lib/tcpxo/lib64")
GIB = Path("/usr/local/gib")
_BY_INTERFACE = (
    "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME",
    # mpirun's processes, by Open MPI's own transports (as Cluster Toolkit sets them) or by UCX.
    "OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include", "UCX_NET_DEVICES",
)  # fmt: skip
"""What would else use every interface, also to VMs that only another one leads to."""
_INFINIBAND = Path("/sys/class/infiniband")
_HELPER = Path("/dev/dmabuf_import_helper")
_HEALTH = "http://127.0.0.1:7332/health"
_SECONDS = 60

# What a shell exports of its own accord, and what units have of their own.
_NOT_OURS = frozenset({"HOME", "OLDPWD", "PATH", "PWD", "SHLVL", "_"})
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# Nothing that a shell, systemd or docker would read in another way than the others.
_PLAIN = re.compile(r"[A-Za-z0-9_.,:/=+@%^-]*")
_OF_A_GPU = re.compile(r"gpu\d+rdma\d+")
_OF_GIB = ("NCCL_NET", "NCCL_TUNER_", "NCCL_IB_")
"""How variables begin that images set for gIB, also where it is not there."""


class UnusableError(Exception):
    """The environment of NCCL can't be had."""


def exported(script: Path, given: dict[str, str]) -> dict[str, str]:
    """The variables that a vendor's shell script exports.

    Raises:
        UnusableError: It is not there, or fails.
    """
    before = {"PATH": _PATH, "HOME": "/root", **given}
    try:
        answer = subprocess.run(  # noqa: S603 - a constant
            ["bash", "-c", 'source "$0" >&2 && exec env -0', str(script)],  # noqa: S607
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=before,
            check=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UnusableError(f"{script} fails: {error}") from error
    pairs = [it.partition("=")[::2] for it in answer.stdout.decode().split("\0") if it]
    return {
        name: value for name, value in pairs if name not in _NOT_OURS and before.get(name) != value
    }


def environment(kind: str, first: str) -> dict[str, str]:
    """NCCL's variables on this VM.

    `kind`: the fabric: "tcp", "tcpxo" or "gib". `first`: the first interface: the only one by which
    a VM reaches all others and the outside.

    Raises:
        UnusableError: The vendor's script fails.
    """
    found: dict[str, str] = {}
    if kind == "tcpxo":
        # The script ends the shell where this variable is missing.
        given = {"NCCL_LIB_DIR": str(TCPXO_LIBRARIES)}
        found = exported(TCPXO_LIBRARIES / "nccl-env-profile.sh", given)
        found["NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY"] = str(tcpxo.APERTURES)
        found["LD_LIBRARY_PATH"] = _joined(TCPXO_LIBRARIES, found.get("LD_LIBRARY_PATH", ""))
    elif kind == "gib":
        found = exported(GIB / "scripts/set_nccl_env.sh", {})
        # Else NCCL would fall back to TCP, and say so in its log alone.
        found.setdefault("NCCL_NET", "gIB")
        found["LD_LIBRARY_PATH"] = _joined(GIB / "lib64", found.get("LD_LIBRARY_PATH", ""))
        # Google's own runs set interfaces after the script (Cluster Toolkit v1.95.0, A3 Ultra).
        found.update(dict.fromkeys(_BY_INTERFACE, first))
    for name in _BY_INTERFACE:
        found.setdefault(name, first)
    return found


def _joined(first: Path, others: str) -> str:
    """A path of libraries without empty parts, which would mean the current folder."""
    parts = [str(first), *others.split(":")]
    return ":".join(dict.fromkeys(part for part in parts if part))


def text_of(variables: dict[str, str]) -> str:
    """The variables as a file.

    Raises:
        UnusableError: A value would need quotes, which docker takes for a part of it.
    """
    for name, value in variables.items():
        if not _PLAIN.fullmatch(value):
            raise UnusableError(
                f"{name} has characters that no environment file can hold: {value!r}"
            )
    lines = [f"{name}={value}" for name, value in sorted(variables.items())]
    return "\n".join(["# NCCL's settings on this VM, written at each boot.", *lines, ""])


def read(text: str) -> dict[str, str]:
    """The variables of such a file."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def write() -> None:
    """Write the file for this VM.

    Raises:
        UnusableError: The vendor's script fails, or no interface has the VM's address.
    """
    address = metadata.get("instance/network-interfaces/0/ip").strip()
    first = interfaces.with_address(interfaces.find(), address)
    if first is None:
        raise UnusableError(f"no network interface has {address}, which is this VM's first address")
    text = text_of(environment(configuration.value("fabric.kind"), first.name))
    ENVIRONMENT.parent.mkdir(parents=True, exist_ok=True)
    ENVIRONMENT.write_text(text, "utf-8")


def faults(fabric: dict[str, Any], variables: dict[str, str]) -> list[str]:
    """What is wrong with a fabric, in words."""
    kind, wanted = fabric["kind"], fabric["interfaces"]
    if kind == "tcpxo":
        return [*_faults_of_tcpxo(wanted), *_faults_of_variables(wanted, variables)]
    if kind == "gib":
        return _faults_of_gib(wanted)
    return []


def login_faults(variables: dict[str, str]) -> list[str]:
    """What a login shell, as people and tmux open it, has otherwise than units and jobs here.

    Raises:
        OSError: There is no bash.
        subprocess.SubprocessError: A file of /etc/profile.d fails, or hangs.
    """
    answer = subprocess.run(
        # What those files print ends with the first NUL.
        ["bash", "--login", "-c", r"printf '\0'; exec env -0"],  # noqa: S607 - as people do
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PATH": _PATH, "HOME": "/root"},
        check=True,
        timeout=_SECONDS,
    )
    shell = dict(it.partition("=")[::2] for it in answer.stdout.decode().split("\0")[1:] if it)
    ours, path = (it.get("LD_LIBRARY_PATH", "") for it in (variables, shell))
    # On RDMA that start-up does not set up (A4X), gIB is what somebody brings on purpose.
    is_theirs = "NCCL_NET" not in variables and _any(_INFINIBAND, "*")
    # It may have more libraries, behind ours.
    if f"{path}:".startswith(f"{ours}:") if ours else is_theirs or str(GIB) not in path:
        shell["LD_LIBRARY_PATH"] = ours
    here = {name: text for name, text in shell.items() if text}
    more = () if is_theirs else (it for it in here if it.startswith(_OF_GIB))
    named = {"LD_LIBRARY_PATH", *variables, *more}
    return [
        f"{name}={here.get(name, 'nothing')} instead of {variables.get(name, 'nothing')}"
        for name in sorted(named)
        if here.get(name) != variables.get(name)
    ]


def _missing(files: list[Path]) -> list[str]:
    return [f"{file} is missing" for file in files if not file.exists()]


def _faults_of_tcpxo(wanted: int) -> list[str]:
    names = ("libnccl.so.2", "libnccl-net.so", "libnccl-tuner.so", "nccl-env-profile.sh")
    result = _missing([*(TCPXO_LIBRARIES / name for name in names), _HELPER])
    seen = len([it for it in tcpxo.apertures() if (tcpxo.APERTURES / it.name).is_dir()])
    if seen != wanted:
        result.append(f"{counted(seen, 'aperture device')} in {tcpxo.APERTURES}, not {wanted}")
    health = daemon_health()
    if health:
        result.append(f"the receive-datapath manager (aiinfra-rxdm) {health}")
    return result


def daemon_health() -> str:
    """What the daemon of TCPXO says against itself; "" for nothing."""
    command = ["curl", "--silent", "--show-error", "--fail", "--noproxy", "*", "--max-time", "10"]
    answer = subprocess.run(  # noqa: S603 - a constant
        [*command, _HEALTH],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
        timeout=_SECONDS,
    )
    said = answer.stderr.decode("utf-8", "replace").strip()
    return f"is not healthy: {said}" if answer.returncode else ""


def _faults_of_variables(wanted: int, variables: dict[str, str]) -> list[str]:
    """Whether the vendor's script has found the interfaces, which it knows by their places."""
    used = [it for it in variables.get("NCCL_FASTRAK_IFNAME", "").split(",") if it]
    here = {it.name for it in interfaces.ready(interfaces.find())}
    strange = sorted(set(used) - here)
    if len(used) == wanted and not strange:
        return []
    unknown = f", of which {', '.join(strange)} is none that is ready" if strange else ""
    return [f"NCCL_FASTRAK_IFNAME names {counted(len(used), 'interface')}, not {wanted}{unknown}"]


def _any(folder: Path, pattern: str) -> bool:
    return next(folder.glob(pattern), None) is not None


def _faults_of_gib(wanted: int) -> list[str]:
    wanted_files = ("libnccl.so*", "libnccl-net*.so*")
    result = [f"{GIB}/lib64/{it} is missing" for it in wanted_files if not _any(GIB / "lib64", it)]
    ports = sorted(_INFINIBAND.glob("*/ports/1/state"))
    active = [it for it in ports if "ACTIVE" in it.read_text("utf-8")]
    if len(active) < wanted:
        result.append(
            f"{counted(len(active), 'RDMA device')} active, not {wanted}: an image without their"
            " driver (mlx5, DOCA-OFED) has none"
        )
    return result


def remarks(
    fabric: dict[str, Any], found: list[interfaces.Interface], mtus: list[int]
) -> list[str]:
    """What may cost bandwidth, and breaks nothing."""
    result = []
    here = sorted(it.mtu for it in found)
    if mtus and sorted(mtus) != here:
        result.append(f"the interfaces have the MTUs {here}, the networks {sorted(mtus)}")
    named = [it for it in found if _OF_A_GPU.fullmatch(it.name)]
    if fabric["kind"] == "gib" and len(named) != fabric["interfaces"]:
        result.append(
            f"{counted(len(named), 'interface')} named as gpu0rdma0 is: guest-configs is old"
        )
    return result


def _mtus() -> list[int]:
    """The MTUs of the VM's networks; none where the metadata server does not tell."""
    try:
        told = json.loads(metadata.get("instance/network-interfaces/?recursive=true"))
    except (OSError, ValueError):
        return []
    return [int(it["mtu"]) for it in told if it.get("mtu")]


def check() -> int:
    """Check the fabric, report it, and say what is wrong."""
    fabric = configuration.value("fabric")
    wrong = faults(fabric, read(ENVIRONMENT.read_text("utf-8")))
    noted = remarks(fabric, interfaces.find(), _mtus())
    document = {"kind": fabric["kind"], "plugin": fabric["plugin"], "faults": wrong, "notes": noted}
    report.tell("fabric", document)
    sys.stderr.write("".join(f"{line}\n" for line in [json.dumps(document), *noted, *wrong]))
    return 1 if wrong else 0


def main() -> int:
    """`write`, `check`, or `daemon`, whose exit code says whether the daemon is healthy."""
    (what,) = sys.argv[1:]
    if what == "check":
        return check()
    if what == "daemon":
        health = daemon_health()
        sys.stderr.write(f"{health}\n" if health else "")
        return 1 if health else 0
    try:
        write()
    except UnusableError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
