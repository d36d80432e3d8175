"""How this VM goes out: its proxy, whose certificates count here, and where packages are.

Each boot makes it so before anything is fetched, and takes away what an earlier boot, or the VM
that an image was made of, has left.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterable, Mapping
from urllib.parse import urlsplit

from aiinfra_vm import blocks, configuration

SYSTEM = Path("/")
"""Where this VM's file system begins."""

APT_ORIGINALS = "apt-originals.json"
"""What package sources were before this rewrote them: path -> text, in /var/lib/aiinfra."""

BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
"""Where Debian and Ubuntu have all certificates that count, ours among them."""

_PROXIES = ("http_proxy", "https_proxy", "HTTPS_PROXY")
_AROUND = ("no_proxy", "NO_PROXY")
_NAMES_OF_BUNDLE = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE")
"""By these, programs with certificates of their own, such as pip's, find the VM's."""
_CERTIFICATES = "usr/local/share/ca-certificates"
_SYSTEMD = "etc/systemd/system.conf.d/aiinfra.conf"
_ENVIRONMENT = "etc/environment"
_OF_STEPS = "opt/aiinfra/outbound.env"
# Google's, which Private Google Access reaches, and which take no other name.
_GOOGLES = re.compile(r"(.*\.)?(google\.com|googleapis\.com|pkg\.dev|gcr\.io|google\.internal)")
# The mirrors that Google has of Ubuntu in each region, with the paths of archive.ubuntu.com.
_UBUNTU_ON_GOOGLE = re.compile(r"[a-z0-9-]+\.gce\.(archive\.ubuntu\.com)")
_PEM = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", re.DOTALL)
_URL = re.compile(r"https?://([A-Za-z0-9.:-]+)(?=[/\s]|$)")


def variables(config: Mapping[str, Any]) -> dict[str, str]:
    """The environment of programs that go out."""
    found = {}
    if config.get("proxy"):
        found.update(dict.fromkeys(_PROXIES, config["proxy"]))
        found.update(dict.fromkeys(_AROUND, config["no_proxy"]))
    if config.get("certificates"):
        found.update(dict.fromkeys(_NAMES_OF_BUNDLE, BUNDLE))
    return found


def mirrored(url: str, mirror: str | None) -> str:
    """A URL, below the mirror if its host is not Google's."""
    parts = urlsplit(url)
    host = parts.netloc
    if not mirror or _GOOGLES.fullmatch(host) or url.startswith(f"{mirror}/"):
        return url
    ubuntu = _UBUNTU_ON_GOOGLE.fullmatch(host)
    return f"{mirror}/{ubuntu[1] if ubuntu else host}{parts.path}"


def set_up(root: Path, config: Mapping[str, Any]) -> None:
    """Make it so.

    Raises:
        OSError, subprocess.SubprocessError: A file can't be written, or a program fails.
    """
    trust_changed = _trust(root, config.get("certificates") or "")
    values = variables(config)
    quoted = [f'{name}="{value}"' for name, value in values.items()]
    blocks.rewrite(root / _ENVIRONMENT, quoted)
    blocks.rewrite(root / _OF_STEPS, quoted)
    _rewrite_sources(root, config.get("apt_mirror"))
    manager = root / _SYSTEMD
    default = f"[Manager]\nDefaultEnvironment={' '.join(quoted)}\n" if quoted else ""
    has_changed = default != _text(manager)
    if default:
        manager.parent.mkdir(parents=True, exist_ok=True)
        blocks.replace(manager, _text(manager), default)
    elif has_changed:
        manager.unlink()
    if has_changed:
        # Until the next boot systemd has what it read at this one. A daemon-reexec would read
        # it again, and cut off whoever waits for systemd's answer just then.
        now = {**dict.fromkeys(_PROXIES, ""), **dict.fromkeys(_NAMES_OF_BUNDLE, BUNDLE), **values}
        _run("systemctl", "set-environment", *(f"{name}={it}" for name, it in now.items()))
    if (has_changed or trust_changed) and shutil.which("docker"):
        # It begins before this, and reads neither again. Nothing runs in it yet.
        _run("systemctl", "try-restart", "docker.service")


def forget(root: Path) -> None:
    """Take all of it away, for an image whose VMs may go out otherwise."""
    _trust(root, "")
    for name in (_SYSTEMD, _OF_STEPS):
        with contextlib.suppress(FileNotFoundError):
            (root / name).unlink()
    blocks.rewrite(root / _ENVIRONMENT, ())
    _rewrite_sources(root, None)


def _trust(root: Path, certificates: str) -> bool:
    """Let exactly these count beside the public ones; returns whether that is new."""
    folder = root / _CERTIFICATES
    # One in each file: update-ca-certificates gives a file with several no name by its hash.
    wanted = {f"aiinfra-{at}.crt": text for at, text in enumerate(_PEM.findall(certificates))}
    found = {file.name: file.read_text("utf-8") for file in folder.glob("aiinfra-*.crt")}
    if found == wanted:
        return False
    program = shutil.which("update-ca-certificates", path="/usr/sbin:/sbin:/usr/bin")
    if program is None:
        raise FileNotFoundError("this image has no update-ca-certificates, which CA_BUNDLE needs")
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(found.keys() | wanted.keys()):
        if name in wanted:
            (folder / name).write_text(wanted[name], "utf-8")
        else:
            (folder / name).unlink()
    if root == SYSTEM:
        _run(program)
    return True


def _rewrite_sources(root: Path, mirror: str | None) -> None:
    kept = root / "var/lib/aiinfra" / APT_ORIGINALS
    originals = json.loads(_text(kept) or "{}")
    for name, text in originals.items():
        file = root / name
        if file.exists():
            blocks.replace(file, _text(file), text)
    changed = {}
    for file in _sources(root) if mirror else ():
        before = _text(file)
        after = _URL.sub(lambda it: mirrored(it[0], mirror), before)
        if after != before:
            changed[str(file.relative_to(root))] = before
            # First: whoever is cut off between the two still knows what it was.
            blocks.replace(kept, "", json.dumps(changed))
            blocks.replace(file, before, after)
    if originals and not changed:
        kept.unlink()


def _sources(root: Path) -> Iterable[Path]:
    """Where apt has URLs of packages; Debian's images in a list that a source names."""
    apt = root / "etc/apt"
    yield from (it for it in (apt / "sources.list",) if it.exists())
    for pattern in ("sources.list.d/*.list", "sources.list.d/*.sources", "mirrors/*.list"):
        yield from sorted(apt.glob(pattern))


def _text(file: Path) -> str:
    return file.read_text("utf-8") if file.exists() else ""


def _run(*words: str) -> None:
    subprocess.run(  # noqa: S603 - programs of the system
        words, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=True, timeout=300
    )


def main() -> None:
    """`up` makes it so; `mirrored URL` prints where that is."""
    config = configuration.load().get("outbound") or {}
    if sys.argv[1] == "up":
        os.umask(0o022)
        try:
            set_up(SYSTEM, config)
        except (OSError, subprocess.SubprocessError) as error:
            settings = "HTTPS_PROXY, CA_BUNDLE, APT_MIRROR"
            sys.exit(f"the way out could not be set up ({settings}): {error}")
    else:
        sys.stdout.write(mirrored(sys.argv[2], config.get("apt_mirror")))


if __name__ == "__main__":
    main()
