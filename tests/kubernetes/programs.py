"""Building the control plane's programs: once, outside the tree."""

import functools
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from provision.kinds.gke.kubernetes.manifests import AddOn
from tests.running import ran

MODULES = Path(__file__).parent / "control_plane"
KUEUE = AddOn(
    name="Kueue",
    version="0.19.2",
    sha256="88881eb50734eb920b67486ebc2aa978ed325e1b12d99b22fc51a6d7e9e4d370",
)
"""The Kueue that is built here: the product's, or an earlier patch of it (ADR 69)."""

_KUBERNETES = "v1.36.1"
# Without it the API server calls itself v0.0.0, and clients draw conclusions from that.
_VERSION = f"-X k8s.io/component-base/version.gitVersion={_KUBERNETES}"


@dataclass(frozen=True)
class Program:
    """One program: its name, the module that pins it, its package, and flags of the linker."""

    name: str
    module: str
    package: str
    flags: str = ""


PROGRAMS = (
    Program("etcd", "programs", "go.etcd.io/etcd/server/v3"),
    *(
        Program(name, "programs", f"k8s.io/kubernetes/cmd/{name}", _VERSION)
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    ),
    Program("jobset", "programs", "sigs.k8s.io/jobset"),
    Program("kueue", "programs", "sigs.k8s.io/kueue/cmd/kueue"),
    Program("kuberay", "kuberay", "github.com/ray-project/kuberay/ray-operator"),
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    Program("kustomize", "kustomize", "sigs.k8s.io/kustomize/kustomize/v5"),
)


def go() -> str | None:
    """The Go command; None where there is none."""
    usual = Path("/usr/local/go/bin/go")
    return shutil.which("go") or (str(usual) if usual.exists() else None)


def cache(environ: Mapping[str, str]) -> Path:
    """Where what was built is kept."""
    root = environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "aiinfra-cluster" / "control-plane"


def build(command: str) -> dict[str, Path]:
    """Program -> its file; built unless that was done for the same pins."""
    folder = cache(os.environ)
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for program in PROGRAMS:
        path = folder / f"{program.name}-{_digest(program)}"
        if not path.exists():
            # A name of its own first: a build that is broken off leaves no program behind.
            unfinished = path.with_suffix(f".{os.getpid()}")
            # Nobody debugs them: without what debuggers read, less is written.
            flags = f"-s -w {program.flags}"
            arguments = ["build", "-ldflags", flags, "-o", str(unfinished), program.package]
            _run(command, program.module, *arguments)
            unfinished.rename(path)
        made[program.name] = path
    return made


@functools.cache
def source(command: str, module: str, path: str) -> Path:
    """The folder of a Go module's sources, as one of the modules here pins it."""
    found: dict[str, str] = json.loads(_run(command, module, "mod", "download", "-json", path))
    return Path(found["Dir"])


def _run(command: str, module: str, *arguments: str) -> str:
    flags = {"GOFLAGS": "-mod=mod -trimpath -buildvcs=false"}
    done = ran([command, *arguments], cwd=MODULES / module, env=os.environ | flags)
    if done.returncode:
        raise RuntimeError(f"go {' '.join(arguments)} in {module}:\n{done.stderr[-4000:]}")
    return done.stdout


def _digest(program: Program) -> str:
    """Of all that decides what is built."""
    pins = [(MODULES / program.module / name).read_bytes() for name in ("go.mod", "go.sum")]
    return hashlib.sha256(b"".join([*pins, repr(program).encode()])).hexdigest()[:12]
