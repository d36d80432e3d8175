"""How this program and what it starts go to Google: by which proxy, trusting whom, and as whom."""

from __future__ import annotations

import atexit
import shutil
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from provision import endpoints
from provision.catalogue import limits
from provision.codes import Code
from provision.errors import SettingsError
from provision.spec.outbound import Outbound

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from provision.settings.model import Settings

_TRUST: Final = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE")
"""Where requests, Go and OpenSSL, and curl look; the first that is set says what counted before."""


def use(settings: Settings, environ: MutableMapping[str, str]) -> str | None:
    """Let all requests go out as the settings say.

    `environ`: the process's environment, which Terraform inherits: its variables are set.
    """
    if settings.impersonate is not None:
        environ[endpoints.IMPERSONATE] = settings.impersonate
    if settings.https_proxy:
        # In lower case it is no setting, but this program's own, and may be another than the VMs'.
        proxy = environ.get("https_proxy") or settings.https_proxy
        around = f"{environ.get('no_proxy', '')},{Outbound.of(settings).no_proxy}".split(",")
        environ["https_proxy"] = environ["HTTPS_PROXY"] = proxy
        environ["no_proxy"] = environ["NO_PROXY"] = ",".join(dict.fromkeys(filter(None, around)))
    if settings.ca_bundle is None:
        return None
    certificates = _certificates(settings.ca_bundle)
    folder = tempfile.mkdtemp(prefix="aiinfra-trust-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    trusted = Path(folder, "certificates.pem")
    trusted.write_text(f"{_trusted_before(environ)}\n{certificates}", "utf-8")
    environ.update(dict.fromkeys(_TRUST, str(trusted)))
    return certificates


def how(settings: Settings) -> str:
    """What of that the settings decide, for the first line of a run; "" for nothing.

    An env.list that somebody else wrote may send all requests, the token with them, another way.
    """
    said = (
        (settings.impersonate, "as {} (IMPERSONATE)"),
        (settings.https_proxy, "through {} (HTTPS_PROXY)"),
        (settings.ca_bundle, "trusting {} (CA_BUNDLE)"),
        (settings.team_defaults, "by the rules of {} (TEAM_DEFAULTS)"),
        (urlsplit(settings.notify or "").hostname, "telling {} (NOTIFY)"),
    )
    return "".join(f", {words.format(value)}" for value, words in said if value)


def _trusted_before(environ: MutableMapping[str, str]) -> str:
    """The certificates that count without CA_BUNDLE."""
    import certifi  # noqa: PLC0415 - with requests, which needs it

    named = next(filter(None, map(environ.get, _TRUST)), None)
    try:
        return Path(named or certifi.where()).read_text("utf-8")
    except (OSError, ValueError):
        return Path(certifi.where()).read_text("utf-8")


def _certificates(path: str) -> str:
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(limits.CERTIFICATES_BYTES + 1)
        why = _against(text)
    except OSError as error:
        why = error.strerror or str(error)
    except ValueError:
        why = "it is not a text file"
    if not why:
        return text
    raise SettingsError(
        f"{path} can't be used as certificates",
        code=Code.INVALID_VALUE,
        setting="CA_BUNDLE",
        why=why,
        fix="name a file in PEM with the certificates of those who sign for your proxy or mirrors,"
        "; a container needs it mounted (-v FILE:FILE:ro)",
    )


def _against(text: str) -> str:
    """What keeps a text from being used as certificates; "" for nothing."""
    if "PRIVATE KEY-----" in text:
        return "it has a private key, which is for nobody else, and would be in the VMs' metadata"
    if len(text) > limits.CERTIFICATES_BYTES:
        most = limits.CERTIFICATES_BYTES // 1024
        return f"it has more than {most} KiB, and VMs get it with their metadata"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        return "it has no certificates in PEM"
    return ""
