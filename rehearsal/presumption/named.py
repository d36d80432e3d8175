"""Everything that an env.list names and the program does not make.

No setting names a key of a service account.
"""

import base64
import fnmatch
import re
from collections.abc import Iterator, Mapping
from typing import Final

from rehearsal.cloud import keys, projects
from rehearsal.cloud.facts import machines, offers, places
from rehearsal.presumption import networks, reservations, texts
from rehearsal.presumption.things import MARK, Ask, Grant, Thing

SETTINGS: Final = frozenset(
    {
        "ACCELERATOR_TYPE",
        "GCS_MOUNT_LIST",
        "GKE_MAX_NODE_COUNT",
        "GKE_NODE_POOLS",
        "GKE_NODE_POOL_COUNT",
        "GKE_PODS_RANGE",
        "GKE_SERVICES_RANGE",
        "GPU_COUNT",
        "GPU_SUBNETWORKS",
        "IMAGE_FAMILY_NAME",
        "IMAGE_NAME",
        "IMAGE_PROJECT",
        "IMPERSONATE",
        "INSTANCE_COUNT",
        "KMS_KEY",
        "NETWORK",
        "PROJECT_ID",
        "REGION",
        "RESERVATION_NAME",
        "SECRETS",
        "SERVICE_ACCOUNT",
        "SUBNETWORK",
        "TERRAFORM_GCS_PATH",
        "VM_TYPE",
        "ZONE",
    }
)
"""The settings that name something, or say how large it has to be; none of them is secret."""

_MOST_VERSIONS: Final = 100
_ACCOUNT: Final = re.compile(r"(?P<id>[^@]+)@(?P<project>[^@]+)\.iam\.gserviceaccount\.com")
_SECRET: Final = re.compile(
    r"projects/(?P<project>[^/]+)/secrets/(?P<secret>[^/:]+)(?::(?P<version>\w+))?"
)
_KEY: Final = re.compile(
    r"(?P<location>projects/[^/]+/locations/[^/]+)/keyRings/(?P<ring>[^/]+)/cryptoKeys/(?P<key>[^/]+)"
)
_READS_SECRETS: Final = "roles/secretmanager.secretAccessor"


def of(settings: Mapping[str, str]) -> list[Thing]:
    """The things that settings name, each once.

    `settings`: variable -> text, of those that are set. What is malformed names nothing: the
    program refuses it.
    """
    if not {"PROJECT_ID", "ZONE"} <= settings.keys():
        return []
    settings = {**settings, "ZONE": _zone(settings)}
    makers = (_buckets, networks.of, reservations.of, _accounts, _images, _secrets, _keys)
    things = [thing for maker in makers for thing in maker(settings)]
    found: dict[str, Thing] = {}
    for thing in things:
        found.setdefault(thing.look, thing)
    return list(found.values())


def _zone(settings: Mapping[str, str]) -> str:
    """Where things are made: of several zones in the first; of a pattern, in one with machines."""
    first = settings["ZONE"].partition(",")[0].strip()
    pattern = "*" if first.lower() in {"any", "cheapest"} else first
    if "*" not in pattern:
        return first
    machine = settings.get("VM_TYPE", "a2-highgpu-2g")
    fitting = fnmatch.filter(places.every_zone(frozenset()), pattern)
    having = (it for it in fitting if offers.has_machine(it, machine, frozenset()))
    return next(having, fitting[0] if fitting else first)


def _buckets(settings: Mapping[str, str]) -> Iterator[Thing]:
    """The bucket of the state, and those that are mounted; one that is set has to exist."""
    state = settings.get("TERRAFORM_GCS_PATH", "").removeprefix("gs://").partition("/")[0]
    mounts = texts.items(settings.get("GCS_MOUNT_LIST", ""))
    names = [state, *(mount.partition(":")[0].strip() for mount in mounts)]
    region = settings.get("REGION") or places.region_of(settings["ZONE"])
    for name in filter(None, names):
        body = {
            "name": name,
            "location": region,
            "labels": {MARK: "yes"},
            "versioning": {"enabled": True},
            "iamConfiguration": {
                "uniformBucketLevelAccess": {"enabled": True},
                "publicAccessPrevention": "enforced",
            },
        }
        query = {"project": settings["PROJECT_ID"]}
        path = f"/storage/v1/b/{name}"
        asks = [Ask("POST", "/storage/v1/b", query, body)]
        yield Thing(f"the bucket gs://{name}", path, asks, path)


def _accounts(settings: Mapping[str, str]) -> Iterator[Thing]:
    """The account of machines, not `dedicated` or `default`, which reads secrets; that of runs."""
    for name in ("SERVICE_ACCOUNT", "IMPERSONATE"):
        email = settings.get(name, "")
        match = _ACCOUNT.fullmatch(email)
        if match is not None:
            yield _account(email, match, settings if name == "SERVICE_ACCOUNT" else {})


def _account(email: str, match: re.Match[str], settings: Mapping[str, str]) -> Thing:
    # A project of a domain turns around: name@p.example.com.iam.gserviceaccount.com.
    name, _, domain = match["project"].partition(".")
    project = f"{domain}:{name}" if domain else name
    body = {"accountId": match["id"], "serviceAccount": {"description": MARK}}
    path = f"/iam/v1/projects/{project}/serviceAccounts"
    owners = dict.fromkeys(match["project"] for match in _references(settings))
    return Thing(
        f"the service account {email}",
        f"{path}/{email}",
        [Ask("POST", path, body=body)],
        f"{path}/{email}",
        grants=[Grant(owner, _READS_SECRETS, email) for owner in owners],
    )


def _images(settings: Mapping[str, str]) -> Iterator[Thing]:
    """The image or the family of a project of one's own; nobody makes one in Google's."""
    project = settings.get("IMAGE_PROJECT", "")
    family, name = settings.get("IMAGE_FAMILY_NAME", ""), settings.get("IMAGE_NAME", "")
    if not project or not (family or name):
        return
    path = f"/compute/v1/projects/{project}/global/images"
    zone = f"projects/{project}/zones/{settings['ZONE']}"
    called = name or f"{family[:58]}-v1"
    disk = f"{called[:54]}-presumed"
    arm = machines.is_arm(settings.get("VM_TYPE") or texts.USUAL_MACHINE)
    body = {
        "name": called,
        "description": MARK,
        "sourceDisk": f"{zone}/disks/{disk}",
        "architecture": "ARM64" if arm else "X86_64",
        **({"family": family} if family else {}),
    }
    yield Thing(
        f"the image {name or f'family {family}'} of {project}",
        f"{path}/{name}" if name else f"{path}/family/{family}",
        [
            # Of a disk that somebody has set up: nobody knows what is on it.
            Ask("POST", f"/compute/v1/{zone}/disks", body={"name": disk, "sizeGb": "10"}),
            Ask("POST", path, body=body),
            Ask("DELETE", f"/compute/v1/{zone}/disks/{disk}"),
        ],
        f"{path}/{called}",
    )


def _secrets(settings: Mapping[str, str]) -> Iterator[Thing]:
    """The secrets, each with as many versions as the newest that is wanted."""
    wanted: dict[tuple[str, str], int] = {}
    for match in _references(settings):
        key = (match["project"], match["secret"])
        wanted[key] = max(texts.number(match["version"] or ""), wanted.get(key, 1))
    for (project, name), versions in wanted.items():
        if versions <= _MOST_VERSIONS:
            yield _secret(project, name, versions)


def _references(settings: Mapping[str, str]) -> Iterator[re.Match[str]]:
    for item in texts.items(settings.get("SECRETS", "")):
        match = _SECRET.fullmatch(item.partition("=")[2].strip())
        if match is not None:
            yield match


def _secret(project: str, name: str, versions: int) -> Thing:
    path = f"/secretmanager/v1/projects/{project}/secrets"
    own = f"{path}/{name}"
    secret = {"replication": {"automatic": {}}, "labels": {MARK: str(versions)}}
    payload = {"payload": {"data": base64.b64encode(b"presumed").decode()}}
    thing = Thing(
        f"the secret {name} of {project}",
        own,
        [
            Ask("POST", path, {"secretId": name}, secret),
            *(Ask("POST", f"{own}:addVersion", body=payload) for _ in range(versions)),
        ],
        own,
        lambda found: () if found["labels"][MARK] == str(versions) else thing.anew,
    )
    return thing


def _keys(settings: Mapping[str, str]) -> Iterator[Thing]:
    """The key of Cloud KMS, which Google's service agents may use."""
    match = _KEY.fullmatch(settings.get("KMS_KEY", ""))
    if match is None:
        return
    number = projects.number(settings["PROJECT_ID"])
    agents = (keys.COMPUTE, keys.GKE, keys.FILESTORE, keys.STORAGE)
    members = [f"serviceAccount:service-{number}@{it}.iam.gserviceaccount.com" for it in agents]
    binding = {"role": "roles/cloudkms.cryptoKeyEncrypterDecrypter", "members": members}
    rings = f"/cloudkms/v1/{match['location']}/keyRings"
    path = f"{rings}/{match['ring']}/cryptoKeys/{match['key']}"
    asks = [
        Ask("POST", rings, {"keyRingId": match["ring"]}),
        Ask(
            "POST",
            f"{rings}/{match['ring']}/cryptoKeys",
            {"cryptoKeyId": match["key"]},
            {"purpose": "ENCRYPT_DECRYPT", "labels": {MARK: "yes"}},
        ),
        Ask("POST", f"{path}:setIamPolicy", body={"policy": {"bindings": [binding]}}),
    ]
    yield Thing(f"the key {match['key']}", path, asks, path)
