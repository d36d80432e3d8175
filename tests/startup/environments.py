"""Python environments that take minutes to make and are kept between runs, outside the tree.

Ray comes from the package index, at the versions that VMs get, and launchers do. PyTorch for CPUs
comes from Debian or Ubuntu where that is the system: its wheels for Linux carry gigabytes of CUDA.
Elsewhere its wheel is taken all the same.
"""

import dataclasses
import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from provision.settings.model import Settings
from tests.debian import made_once, run_in
from tests.startup import roots
from tests.startup.roots import Root
from tests.startup.sandbox import PAYLOAD

_SYSTEM_PYTHON = "/usr/bin/python3"
# What Ray Train needs beside Ray, for the numpy that Debian's PyTorch was built with.
_TRAIN = ("fsspec==2025.12.0", "numpy==1.26.4", "pandas==2.3.3", "pyarrow==22.0.0")
_LAUNCHERS = Path(__file__).with_name("launchers.txt")
# What each process would else do for itself.
_COMPILE = "python3 -m compileall -q -j 0 /mnt >/dev/null || true"
# Its own wheels have the libuv that torchrun's rendezvous asks for, and Debian's build has not.
_NO_LIBUV = """
cd /usr/lib/python3/dist-packages/torch/distributed
sed -i 's/multi_tenant=True,$/& use_libuv=False,/' elastic/rendezvous/static_tcp_rendezvous.py
sed -i 's/is_master=False,$/& use_libuv=False,/' rendezvous.py
"""


@dataclass(frozen=True)
class Environment:
    """A Python that has Ray and PyTorch."""

    python: Path
    variables: dict[str, str]  # what its processes need in their environment


def ray_and_torch() -> Environment:
    """The environment, made when it is not there yet."""
    version = Settings.model_fields["ray_version"].default
    debian = _has_debian_torch()
    with made_once(f"ray-train-{version}-{'debian' if debian else 'wheels'}") as (folder, missing):
        if missing:
            _make(folder, version, debian=debian)
    return Environment(folder / "venv/bin/python", _variables(folder) if debian else {})


def launchers() -> Root:
    """Debian 13 with its PyTorch 2.6, and in /opt/launchers those that a page has a line for.

    Raises:
        NoDebianError: This takes root, and Debian's packages.
    """
    plain = roots.root(roots.Release.DEBIAN_13)
    root = roots.with_packages(plain, "python3-torch", then=_NO_LIBUV)
    digest = hashlib.sha256(_COMPILE.encode() + _LAUNCHERS.read_bytes()).hexdigest()[:12]
    with made_once(f"launchers-{digest}") as (folder, missing):
        if missing:
            target = folder / "disk/opt/launchers"
            uv = Path(sys.executable).with_name("uv")
            where = ("--python-version=3.13", "--python-platform=x86_64-manylinux_2_28")
            what = ("--target", target, "--no-deps", "--requirement", _LAUNCHERS)
            _run(uv, "pip", "install", "--quiet", *where, *what)
            for script in (target / "bin").iterdir():
                if script.read_bytes().startswith(b"#!"):
                    _, _, rest = script.read_bytes().partition(b"\n")
                    script.write_bytes(b"#!/usr/bin/python3\n" + rest)
            run_in(root.layers[0], _COMPILE, target)
    return dataclasses.replace(root, layers=(*root.layers, folder / "disk"))


def _make(folder: Path, version: str, *, debian: bool) -> None:
    uv = Path(sys.executable).with_name("uv")
    python = _SYSTEM_PYTHON if debian else sys.executable
    wanted = [f"ray[default]=={version}", *_TRAIN, *([] if debian else ["torch"])]
    pins = ["--constraint", str(PAYLOAD / f"ray-{version}.txt")]
    _run(uv, "venv", "--quiet", "--python", python, folder / "venv")
    _run(uv, "pip", "install", "--quiet", "--python", folder / "venv/bin/python", *pins, *wanted)
    if debian:
        _unpack_debian_torch(folder)


def _has_debian_torch() -> bool:
    if shutil.which("apt-cache") is None or not Path(_SYSTEM_PYTHON).exists():
        return False
    show = ["apt-cache", "show", "--no-all-versions", "python3-torch"]
    return subprocess.run(show, capture_output=True, check=False).returncode == 0


def _unpack_debian_torch(folder: Path) -> None:
    """Fetch the packages as anybody may, and unpack them beside the system, not into it."""
    packages = folder / "packages"
    (packages / "partial").mkdir(parents=True)
    plan = ["apt-get", "--yes", "--no-install-recommends", "--print-uris", "install"]
    listed = subprocess.run([*plan, "python3-torch"], capture_output=True, text=True, check=True)
    names = [line.split()[1] for line in listed.stdout.splitlines() if line.startswith("'")]
    wanted = [name.split("_")[0] for name in names]
    fetch = ["apt-get", "--quiet", "download", *wanted]
    subprocess.run(fetch, cwd=packages, stdout=subprocess.DEVNULL, check=True)
    for package in packages.glob("*.deb"):
        _run("dpkg-deb", "--extract", package, folder / "system")
    shutil.rmtree(packages)
    # Last on the path, so that Ray has its own versions of what both need.
    (site,) = (folder / "venv/lib").glob("python3*/site-packages")
    (site / "debian.pth").write_text(f"{folder / 'system/usr/lib/python3/dist-packages'}\n")


def _variables(folder: Path) -> dict[str, str]:
    libraries = {file.parent for file in (folder / "system").rglob("*.so*")}
    shallow = [path for path in libraries if "python3" not in path.parts]
    return {"LD_LIBRARY_PATH": ":".join(sorted(map(str, shallow)))}


def _run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True)
