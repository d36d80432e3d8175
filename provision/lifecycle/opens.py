"""What a change opens: what can be reached, or may be done, after it and could not before.

Of a cluster that is there, the effective settings of the last Create are compared with those of
now. Of a new one the plan shows networks, addresses and accounts anyway; what is said here of it is
what hides in values: keys of metadata, and certificates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import gcsfuse
from provision.documents.plan import Opening
from provision.settings.choices import NetworkConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# Source: Compute Engine, "Set and remove custom metadata", read in 2026-11: in any case.
_YES: Final = frozenset({"true", "y", "yes", "1"})
_OS_LOGIN: Final = "enable-oslogin"
_SSH_KEYS: Final = "ssh-keys"
# Sources: Google's guest-agent, README at 0003c28f (without OS Login keys make administrators); the
# CIS benchmark of Google Cloud (no rule by address for the serial console); read in 2026-11.
_LOGINS: Final[Mapping[str, tuple[Callable[[str], bool], str]]] = {
    # The program's own value is TRUE, and any other takes its place.
    _OS_LOGIN: (lambda value: value not in _YES, "OS Login is off: keys in metadata let people in"),
    "serial-port-enable": (_YES.__contains__, "the serial console takes connections from anywhere"),
    _SSH_KEYS: (bool, "whoever has one of its keys may log in, as administrator"),
}
"""Key of metadata -> which values open something, and what."""


def found(
    before: Mapping[str, Any] | None, now: Mapping[str, Any], metadata: Mapping[str, str]
) -> Iterator[Opening]:
    """What a Create opens, what the world can reach first.

    `before`: the effective settings of the last Create; None for a new cluster. `now`: those of
    this one, both with metadata sealed. `metadata`: that of now in clear.
    """
    if before is not None:
        yield from _reached(before, now)
    sealed, sealed_now = ((it or {}).get("METADATA") or {} for it in (before, now))
    given = {key: value.strip().lower() for key, value in metadata.items()}
    by_keys = given.get(_OS_LOGIN, "true") not in _YES
    for key, (is_open, words) in _LOGINS.items():
        is_new = key in given and sealed.get(key) != sealed_now.get(key)
        # With OS Login keys in metadata let nobody in.
        if is_new and is_open(given[key]) and (key != _SSH_KEYS or by_keys):
            yield Opening(setting="METADATA", words=f"{key}: {words}", outside=True)
    if before is not None:
        yield from _allowed(before, now)
    for name, words in (
        ("CA_BUNDLE", "this program, Terraform and machines trust the certificates of {}"),
        ("HTTPS_PROXY", "this program, Terraform and VMs send what they ask through {}"),
    ):
        if now.get(name) and now[name] != (before or {}).get(name):
            yield Opening(setting=name, words=words.format(now[name]), outside=False)


def _reached(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Opening]:
    """What comes within reach of others."""
    whose = f"the network {now.get('NETWORK')}"
    match now.get("NETWORK_CONFIG"):
        case NetworkConfig.DEFAULT:
            whose = "the project's default network"
        case NetworkConfig.EXISTING:
            pass
        case _:
            whose = ""
    joined = [one.get("NETWORK_CONFIG") for one in (before, now)], before.get("NETWORK")
    if whose and joined != ([now["NETWORK_CONFIG"]] * 2, now.get("NETWORK")):
        words = f"machines join {whose}: firewall rules of others decide who reaches them"
        yield Opening(setting="NETWORK_CONFIG", words=words, outside=True)
    if now.get("ENABLE_EXTERNAL_IP") and not before.get("ENABLE_EXTERNAL_IP"):
        rules = f"what comes in is what the firewall rules of {whose} let in"
        words = f"VMs get public addresses: {rules if whose else 'ssh from IAP alone comes in'}"
        yield Opening(setting="ENABLE_EXTERNAL_IP", words=words, outside=True)
    if more := _more(before, now, "AUTHORIZED_CIDR"):
        words = f"the control plane takes connections from {', '.join(map(str, more))}"
        yield Opening(setting="AUTHORIZED_CIDR", words=words, outside=True)


def _allowed(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Opening]:
    """What machines may do beyond what they might."""
    account = now.get("SERVICE_ACCOUNT")
    if account not in {"dedicated", before.get("SERVICE_ACCOUNT")}:
        whose = "the project's default account" if account == "default" else account
        words = f"machines act as {whose}, with every role that it has"
        yield Opening(setting="SERVICE_ACCOUNT", words=words, outside=False)
    known, mounted = _mounted(before), _mounted(now)
    for bucket, writes in mounted.items():
        if bucket not in known or (writes and not known[bucket]):
            words = f"machines read {'and write ' if writes else ''}gs://{bucket}"
            setting = "GCS_OPTIONS" if bucket in known else "GCS_MOUNT_LIST"
            yield Opening(setting=setting, words=words, outside=False)
    for one in _more(before, now, "SECRETS"):
        words = f"machines read the secret {one['secret']} of {one['project']}"
        yield Opening(setting="SECRETS", words=words, outside=False)


def _mounted(settings: Mapping[str, Any]) -> dict[str, bool]:
    """The buckets that are mounted, and whether machines may write there."""
    writes = not gcsfuse.reads_only(settings.get("GCS_OPTIONS") or ())
    return {it["bucket"]: writes for it in settings.get("GCS_MOUNT_LIST") or ()}


def _more(before: Mapping[str, Any], now: Mapping[str, Any], name: str) -> list[Any]:
    known = before.get(name) or []
    return [it for it in now.get(name) or [] if it not in known]
