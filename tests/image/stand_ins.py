"""What the Dockerfile is made of where no registry is reachable: stand-ins for bases and downloads.

Real are: Debian, Python, Terraform (the machine's own), the Python packages, the Dockerfile. The
google provider is the rehearsal's stand-in, installed under the real names and against the real
lock file. gcloud, kustomize, Kueue and JobSet are archives of the real layout with little inside.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import io
import platform
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rehearsal.provider import mirror
from tests import debian

if TYPE_CHECKING:
    from tests.image.engine import Engine

PYTHON = "aiinfra-test/python:{}.{}".format(*sys.version_info)
TERRAFORM = "aiinfra-test/terraform:1"
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
_HOST_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_LIBRARIES = (
    "ca-certificates", "libbz2-1.0", "libexpat1", "libffi8", "liblzma5", "libreadline8",
    "libsqlite3-0", "libssl3",
)  # fmt: skip
_NOT_NEEDED = ("./proc/*", "./sys/*", "./dev/*", "./var/cache/apt/*", "./var/lib/apt/lists/*")
_NOT_NEEDED_OF_PYTHON = ("__pycache__", "*/site-packages/*", "*/test/*", "*/config-3*", "*.a")

_GCLOUD = """\
#!/bin/sh
# Stands in for gcloud: its prompt, and where it keeps what it learns.
case "$*" in
  *--help) exit 0 ;;
  "auth application-default login"*)
    echo "Go to the following link in your browser:" >&2
    echo "    https://accounts.google.com/o/oauth2/auth?stand-in" >&2
    printf "Enter authorization code: " >&2
    read -r code
    [ -n "$code" ] || exit 1
    mkdir -p "$HOME/.config/gcloud"
    printf '%s' "$code" >"$HOME/.config/gcloud/application_default_credentials.json"
    ;;
esac
"""
_KUSTOMIZE = """\
#!/bin/sh
# Stands in for kustomize: `build FOLDER -o FILE` copies, `edit set image` notes.
case "$1" in
  edit) echo "$4" >>kustomization.yaml ;;
  build) cat "$2/kustomization.yaml" "$2/../components/manager/kustomization.yaml" >"$4" ;;
esac
"""


@dataclass(frozen=True)
class Archive:
    """A download: where the server has it, and its content."""

    path: str
    content: bytes

    @property
    def sha256(self) -> str:
        """Of the content."""
        return hashlib.sha256(self.content).hexdigest()


# ------------------------------------------------------------------ bases


def python_base(engine: Engine, cache: Path) -> None:
    """Debian with the Python that runs the tests in /usr/local, as Docker's official image has it.

    The image that is there is kept: another would let all that was built on it be built again.
    """
    if engine.run("image", "inspect", PYTHON).code == 0:
        return
    root = cache / "rootfs"
    if not (root / ".complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
        debian.bootstrap(root, suite, _LIBRARIES)
        shutil.copyfile(_HOST_CERTIFICATES, root / _HOST_CERTIFICATES.relative_to("/"))
        _add_python(root)
        (root / ".complete").touch()
    exclude = [f"--exclude={pattern}" for pattern in (*_NOT_NEEDED, "./.complete")]
    _import(engine, PYTHON, ["tar", "-C", str(root), "--numeric-owner", *exclude, "-c", "."])


def _add_python(root: Path) -> None:
    prefix, version = Path(sys.base_prefix), f"{sys.version_info.major}.{sys.version_info.minor}"
    exclude = [f"--exclude={pattern}" for pattern in _NOT_NEEDED_OF_PYTHON]
    parts = [f"bin/python{version}", f"lib/python{version}"]
    parts += [str(path.relative_to(prefix)) for path in prefix.glob(f"lib/libpython{version}*")]
    packed = subprocess.run(
        ["tar", "-C", str(prefix), *exclude, "-c", *parts],  # noqa: S607 - of PATH
        capture_output=True,
        check=True,
    )
    _run("tar", "-C", str(root / "usr/local"), "-x", stdin=packed.stdout)
    for name in ("python3", "python"):
        (root / "usr/local/bin" / name).unlink(missing_ok=True)
        (root / "usr/local/bin" / name).symlink_to(f"python{version}")
    site = root / f"usr/local/lib/python{version}/site-packages"
    site.mkdir(exist_ok=True)
    # Behind a proxy that ends TLS, the certificates that pip brings do not do.
    (root / "etc/pip.conf").write_text(f"[global]\ncert = {_HOST_CERTIFICATES}\n")
    _run("chroot", str(root), "ldconfig")
    _run("chroot", str(root), "/usr/local/bin/python3", "-m", "ensurepip")


def terraform_base(engine: Engine, folder: Path) -> None:
    """The stand-in for Debian with Terraform, and the stand-in provider as its only source."""
    terraform = shutil.which("terraform")
    assert terraform, "the image needs a Terraform binary: put one on PATH"
    (folder / "bin").mkdir(parents=True)
    shutil.copy2(terraform, folder / "bin" / "terraform")
    config = mirror.install(folder / "stand-in", "/opt/venv/bin/python")
    text = config.read_text().replace(str(folder.resolve()), "")
    (folder / "terraformrc").write_text(text)
    (folder / "LICENSE.txt").touch()
    (folder / "Dockerfile").write_text(
        f"FROM {PYTHON}\n"
        "COPY bin/terraform /bin/terraform\n"
        "COPY LICENSE.txt /usr/share/doc/terraform/LICENSE.txt\n"
        "COPY stand-in /stand-in\n"
        "COPY terraformrc /root/.terraformrc\n"
        'ENTRYPOINT ["/bin/terraform"]\n'
    )
    engine.must("build", "--quiet", "--tag", TERRAFORM, str(folder))


def _import(engine: Engine, name: str, command: list[str]) -> None:
    with subprocess.Popen(command, stdout=subprocess.PIPE) as packing:
        subprocess.run(
            [engine.client, "import", "--change", 'CMD ["python3"]', "-", name],
            env=engine.environ,
            stdin=packing.stdout,
            capture_output=True,
            check=True,
        )
    assert packing.returncode == 0


def _run(*command: str, stdin: bytes = b"") -> None:
    done = subprocess.run(command, input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout!r} {done.stderr!r}"


# ------------------------------------------------------------------ downloads


def gcloud() -> Archive:
    """What matters of gcloud's archive, and some of what the image must leave out."""
    top, apis = "google-cloud-sdk", "google-cloud-sdk/lib/googlecloudsdk/generated_clients/apis"
    files = {
        f"{top}/LICENSE": "",
        f"{top}/VERSION": "587.0.0\n",
        f"{top}/bin/gcloud": _GCLOUD,
        f"{top}/bin/bq": "",
        f"{top}/platform/bundledpythonunix/bin/python3": "",
        f"{top}/lib/gcloud.py": "",
        f"{top}/lib/surface/__init__.py": "",
        f"{top}/lib/surface/auth/login.py": "",
        f"{top}/lib/surface/compute/ssh.py": "",
        f"{top}/lib/third_party/botocore/loaders.py": "",
        f"{top}/lib/third_party/google/auth.py": "",
        f"{apis}/apis_map.py": "",
        f"{apis}/cloudresourcemanager/v1.py": "",
        f"{apis}/compute/v1.py": "",
    }
    name = {"amd64": "x86_64", "arm64": "arm"}[ARCHITECTURE]
    return Archive(f"gcloud/google-cloud-cli-587.0.0-linux-{name}.tar.gz", _tar(files))


def kustomize() -> Archive:
    """A script."""
    return Archive(
        "github/kubernetes-sigs/kustomize/releases/download/kustomize/v5.8.1/"
        f"kustomize_v5.8.1_linux_{ARCHITECTURE}.tar.gz",
        _tar({"kustomize": _KUSTOMIZE}),
    )


_KUEUE_FILES = {
    "config/components/manager/kustomization.yaml": "# manager\n",
    "config/default/kustomization.yaml": "# Kueue\n",
}


def kueue(commit: str) -> Archive:
    """GitHub's archive of a commit."""
    files = {f"kueue-{commit}/{name}": text for name, text in _KUEUE_FILES.items()}
    archive = _tar(files | {f"kueue-{commit}/main.go": ""})
    return Archive(f"github/kubernetes-sigs/kueue/archive/{commit}.tar.gz", archive)


def kueue_config_sha256() -> str:
    """As `sha256sum` says it of a list that `sha256sum` made of config/."""
    lines = [
        f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n"
        for name, text in sorted(_KUEUE_FILES.items())
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def jobset() -> Archive:
    """A manifest."""
    path = "github/kubernetes-sigs/jobset/releases/download/v0.12.0/manifests.yaml"
    return Archive(path, b"# JobSet\n")


def _tar(files: Mapping[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o755
            tar.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def served(folder: Path, archives: list[Archive]) -> Iterator[str]:
    """Serve downloads on loopback; gives the base URL."""
    for archive in archives:
        file = folder / archive.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(archive.content)
    handler = functools.partial(_Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def arguments(base_url: str, archives: Mapping[str, Archive]) -> dict[str, str]:
    """The build arguments that lead the Dockerfile to the stand-ins."""
    suffix = ARCHITECTURE.upper()
    return {
        "PYTHON_IMAGE": PYTHON,
        "TERRAFORM_IMAGE": TERRAFORM,
        "GCLOUD_DOWNLOADS": f"{base_url}/gcloud",
        "GITHUB": f"{base_url}/github",
        f"GCLOUD_SHA256_{suffix}": archives["gcloud"].sha256,
        f"KUSTOMIZE_SHA256_{suffix}": archives["kustomize"].sha256,
        "KUEUE_CONFIG_SHA256": kueue_config_sha256(),
        "JOBSET_SHA256": archives["jobset"].sha256,
    }
