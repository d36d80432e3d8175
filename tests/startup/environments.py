"""Python environments that take minutes to make and are kept between runs, outside the tree.

Ray comes from the package index, at the versions that VMs get, and JAX, too. PyTorch for CPUs comes
from Debian or Ubuntu where that is the system: its wheels for Linux carry gigabytes of CUDA.
Elsewhere its wheel is taken all the same.
"""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from provision.settings.model import Settings
from tests.debian import made_once
from tests.startup.sandbox import PAYLOAD

_SYSTEM_PYTHON = "/usr/bin/python3"
# What Ray Train needs beside Ray, for the numpy that Debian's PyTorch was built with.
_TRAIN = ("fsspec==2025.12.0", "numpy==1.26.4", "pandas==2.3.3", "pyarrow==22.0.0")
_JAX = (
    "jax==0.5.3", "jaxlib==0.5.3", "ml-dtypes==0.5.3", "numpy==1.26.4", "opt-einsum==3.4.0",
    "scipy==1.15.3",
)  # fmt: skip

# The newest that know Debian's PyTorch 1.13, with what they import that Ray does not bring.
_LAUNCHERS = (
    "transformers==4.37.2", "accelerate==0.25.0", "huggingface-hub==0.20.3", "regex==2023.12.25",
    "safetensors==0.4.5", "tokenizers==0.15.2", "tqdm==4.67.1",
)  # fmt: skip


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


def launchers() -> Environment:
    """PyTorch as above, with the launchers that a page has a line for."""
    found = ray_and_torch()
    with made_once(f"{_LAUNCHERS[0]}-{found.python.parents[2].name}") as (folder, missing):
        if missing:
            shutil.copytree(found.python.parents[1], folder / "venv", symlinks=True)
            uv = Path(sys.executable).with_name("uv")
            python = folder / "venv/bin/python"
            _run(uv, "pip", "install", "--quiet", "--no-deps", "--python", python, *_LAUNCHERS)
            torchrun = python.with_name("torchrun")
            torchrun.write_text(f"#!{python}\nfrom torch.distributed.run import main\nmain()\n")
            torchrun.chmod(0o755)
    # PyTorch 1.13 on Python 3.11 knows no others than 1 and 2.
    odd = {"PET_REDIRECTS": "1", "PET_TEE": "1"} if found.variables else {}
    return Environment(folder / "venv/bin/python", {**found.variables, **odd})


def jax(python: str) -> Path:
    """A folder for PYTHONPATH that has JAX for CPUs, made when it is not there yet.

    `python`: the version of Python that it is for, such as 3.11.
    """
    with made_once(f"{_JAX[0]}-{python}") as (folder, missing):
        if missing:
            uv = Path(sys.executable).with_name("uv")
            # Bytecode, as its users may not write there.
            how = ["--python-version", python, "--only-binary=:all:", "--compile-bytecode"]
            how += ["--no-deps", *_JAX]
            _run(uv, "pip", "install", "--quiet", "--target", folder / "jax", *how)
    return folder / "jax"


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
