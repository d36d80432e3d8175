"""The types of the settings' values, each with the rule for a single value."""

from __future__ import annotations

import functools
import ipaddress
import re
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from provision.catalogue import limits, machines, names, suggestions, zones
from provision.settings import candidates, parsing
from provision.settings.choices import (
    ACTIONS_BY_OTHER_NAMES,
    ORCHESTRATORS_BY_OTHER_NAMES,
    Action,
    DiskType,
    DriverVersion,
    NetworkConfig,
    OnlineCheck,
    Orchestrator,
    PriceList,
    Priority,
    ReleaseChannel,
    Restart,
    RestartOn,
    Way,
)
from provision.settings.parsing import InvalidValueError, shorten
from provision.settings.resource_paths import (
    ALLOWED,
    PROJECT,
    NetworkPath,
    ReservationPath,
    SubnetworkPath,
    expanded,
    without_zone,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def _matching(
    pattern: str | re.Pattern[str], what: str, why: str, fix: Callable[[str], str] = str
) -> Callable[[str], str]:
    """A check that a text matches a pattern; a correction that does is suggested."""
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            fixed = fix(text)
            raise InvalidValueError(what, why, fix=fixed if compiled.fullmatch(fixed) else "")
        return text

    return check


def _project_id(text: str) -> str:
    domain, colon, short = text.rpartition(":")
    if colon and not re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\.[a-z]{2,}", domain):
        raise InvalidValueError(
            "has no domain before the colon",
            "domain-scoped projects have IDs such as example.com:my-project",
        )
    if not re.fullmatch(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", short):
        raise InvalidValueError(
            "is not a project ID",
            "6 to 30 lower-case letters, digits and hyphens, a letter first and no hyphen last;"
            " use neither the project's name nor its number",
            fix="<an ID that gcloud projects list shows>",
        )
    return text


def _name_prefix(text: str) -> str:
    tightest = names.TIGHTEST
    limit = tightest.longest_prefix
    slug = re.sub(r"[^a-z0-9]+", "-", text[:500].lower()).lstrip("-0123456789")[:limit].rstrip("-")
    if not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", text):
        raise InvalidValueError(
            "can't be a prefix of resource names",
            "lower-case letters, digits and hyphens, a letter first and no hyphen last (RFC 1035);"
            f" at most {limit} characters",
            fix=slug,
        )
    if len(text) > limit:
        raise InvalidValueError(
            f"has {len(text)} characters",
            f"at most {limit}, because the {tightest.kind} is named <NAME_PREFIX>{tightest.suffix}"
            f" and Google allows at most {tightest.limit} characters there",
            fix=slug,
        )
    return text


def _region(text: str) -> str:
    if not zones.has_region_form(text):
        known = zones.did_you_mean_region(text)
        raise InvalidValueError(
            "is not a region",
            f"did you mean {known}?" if known else "such as us-central1 or europe-west4",
            fix=known,
        )
    return text


def _duration(alone_from: int) -> BeforeValidator:
    """Read a duration; a record, which comes as context, has small numbers of seconds, too."""
    return BeforeValidator(
        lambda text, info: parsing.duration(text, 0 if info.context else alone_from)
    )


def _some(seconds: int) -> int:
    if seconds < 1:
        raise InvalidValueError("is too short", "at least 1s")
    return seconds


def _idle(seconds: int) -> int:
    if not limits.SHORTEST_IDLE <= seconds <= limits.LONGEST_IDLE:
        raise InvalidValueError("is too short or too long", "10m to 30d", fix="2h")
    return seconds


def _run(seconds: int) -> int:
    if seconds < 1:
        raise InvalidValueError("is too short", "at least 1s, and 10m for VM groups", fix="10m")
    if seconds > limits.LONGEST_RUN:
        most = f"{limits.LONGEST_RUN // 86400}d"
        raise InvalidValueError("is too long", f"at most {most}", fix=most)
    return seconds


def _disk_type(text: str) -> DiskType:
    if text.lower() == "local-ssd":
        raise InvalidValueError(
            "can't be a boot disk",
            "local SSDs lose their data when the VM stops, so VMs can't boot from them; use one of"
            f" {', '.join(DiskType)}",
            fix=DiskType.PD_SSD.value,
        )
    return DiskType(parsing.choice(DiskType)(text))


_bucket = _matching(
    r"(?=[a-z0-9].{1,220}[a-z0-9]\Z)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*",
    "is not a bucket name",
    "3 to 63 lower-case letters, digits, hyphens, underscores and dots, with a letter or digit"
    " first and last",
)


def _gcs_path(text: str) -> str:
    if not text.startswith("gs://"):
        raise InvalidValueError(
            "is not a Cloud Storage path", "gs://<bucket> or gs://<bucket>/<folder>"
        )
    if text.endswith("/") and text.strip("/") != "gs:":
        raise InvalidValueError(
            "ends with a slash", "gs://<bucket> or gs://<bucket>/<folder>", fix=text.rstrip("/")
        )
    bucket, _, folder = text.removeprefix("gs://").partition("/")
    try:
        _bucket(bucket)
    except InvalidValueError as error:
        raise InvalidValueError("has no bucket name after gs://", error.why) from None
    parts = folder.split("/") if folder else []
    fits = all(re.fullmatch(r"[^\x00-\x20\x7f#?*\[\]\"'\\$`;&|<>(){}!]+", part) for part in parts)
    if not fits or {".", ".."} & set(parts):
        raise InvalidValueError(
            "has an invalid folder",
            "names between single slashes, without blanks, quotes, wildcards, what a shell reads as"
            " its own, . and ..",
        )
    return text


_absolute_path = _matching(
    r"(/(?!\.{1,2}(/|\Z))[A-Za-z0-9._@+~-]+)+",
    "is not a valid path",
    "an absolute path, such as /mnt/data: letters, digits, . _ @ + ~ and - between single slashes,"
    " no slash at the end",
)


def _one_line(text: str) -> str:
    if re.search(r"[\n\r\0]", text):
        raise InvalidValueError(
            "has more than one line", "one line of shell; put a script into the copied folder"
        )
    if not parsing.is_utf8(text):
        raise InvalidValueError("is not UTF-8 text", "text in UTF-8")
    size = len(text.encode())
    if size > limits.COMMAND_BYTES:
        raise InvalidValueError(
            f"has {size} bytes",
            f"at most {limits.COMMAND_BYTES // 1024} KiB ({limits.COMMAND_BYTES} bytes), as it"
            " travels in the VM's metadata; put it into a file, copy its folder to the VMs with"
            " --copy, and let the command run that file",
            fix="bash /usr/aiinfra/copy/startup.sh",
        )
    return text


def _range(item: str, called: str, such_as: str) -> str:
    """One IP range of a list."""
    try:
        return str(ipaddress.ip_network(item))
    except ValueError:
        raise InvalidValueError(
            f"has {shorten(item)}, which is not {called}", f"such as {such_as}"
        ) from None


def _networks(items: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_range(item, "a CIDR block", "203.0.113.0/24") for item in items)


def _cidr(text: str) -> str:
    unfit = InvalidValueError(
        "is not an IP range", "an IPv4 network address with its prefix length, as 10.64.0.0/22"
    )
    if "/" not in text:
        raise unfit
    try:
        found = ipaddress.IPv4Network(text)
    except ValueError:
        raise unfit from None
    if not any(found.subnet_of(one) for one in ALLOWED):
        raise InvalidValueError(
            "is not a private IP range",
            f"it would hide what others have there; private are {', '.join(map(str, ALLOWED))}",
        )
    return str(found)


def _secondary(text: str) -> str:
    if "/" in text:
        return _cidr(text)
    if not re.fullmatch(_IMAGE, text):
        raise InvalidValueError(
            "is neither an IP range nor the name of one",
            "such as 10.65.0.0/17; a name has lower-case letters, digits and hyphens",
        )
    return text


_EMAIL: Final = re.compile(
    r"(?:[a-z](?:[a-z0-9-]{0,28}[a-z0-9])?@[a-z0-9][a-z0-9.-]{0,180}\.iam"
    r"|[a-z0-9](?:[a-z0-9.-]{0,92}[a-z0-9])?@[a-z]{1,30})\.gserviceaccount\.com"
)
"""Of an account that somebody made, or in one of Google's own domains, as developer. and appspot.
(IAM, "Types of service accounts" and "Create service accounts", undated)."""


def _service_account(text: str) -> str:
    if text.lower() in {"dedicated", "default"}:
        return text.lower()
    if not _EMAIL.fullmatch(text):
        raise InvalidValueError(
            "is not a service account",
            "dedicated (created with the least roles), default (the Compute Engine default service"
            " account), or the email address of an existing one, which ends with"
            " gserviceaccount.com",
        )
    return text


_subnetwork = _matching(
    SubnetworkPath.form,
    "is not a subnetwork",
    "its name; for another project's, projects/<project>/regions/<region>/subnetworks/<name>",
)


def _subnetworks(items: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_subnetwork(name) for item in items for name in expanded(item))


_KEY: Final = re.compile(
    rf"projects/{PROJECT}/locations/[a-z0-9-]{{1,63}}"
    r"/keyRings/[A-Za-z0-9_-]{1,63}/cryptoKeys/[A-Za-z0-9_-]{1,63}"
)


def _url(text: str, what: str, such_as: str, instead: str = "") -> SplitResult:
    """The parts of the URL of a host; no password, as these settings are stored and shown."""
    scheme = such_as.partition("//")[0]
    whole = f"{scheme}//{text}" if _PLACE.fullmatch(text) else ""
    bad = InvalidValueError(f"is not the URL of {what}", f"such as {such_as}", fix=whole)
    try:
        found = urlsplit(text)
        is_host = found.scheme in {"http", "https"} and _HOST.fullmatch(found.hostname or "")
        is_whole = found.port != 0 and not (found.query or found.fragment)
    except ValueError:
        raise bad from None
    if not (is_host and is_whole and _URL_PATH.fullmatch(found.path) and _PRINTED.fullmatch(text)):
        raise bad
    if "@" in found.netloc:
        raise InvalidValueError(
            "has a name or a password",
            "it would be in the metadata of VMs and in the state: let that host know machines by"
            f" their address or their account{instead}",
        )
    return found


def _proxy(text: str) -> str:
    own = "; https_proxy, in lower case, is for this program alone, and may have one"
    found = _url(text, "a proxy", "http://proxy.example.com:3128", own)
    if found.path.strip("/"):
        raise InvalidValueError("has a path", "a proxy is a host and a port")
    return f"{found.scheme}://{found.netloc}"


def _mirror(text: str) -> str:
    _url(text, "a mirror", "https://mirror.example.com/apt")
    return text.rstrip("/")


def _index(text: str) -> str:
    found = _mirror(text)
    if not found.startswith("https:"):
        raise InvalidValueError(
            "is reached without encryption",
            "pip takes no packages that anybody on the way can change, and VMs would send an access"
            " token there in clear",
            fix=f"https:{found.partition(':')[2]}",
        )
    return found


def _notified(text: str) -> str:
    """A URL that may hold a secret anywhere: no message has any of it."""
    bad = InvalidValueError(
        "is no URL to tell",
        "https, or http to this very machine; no name and password, no blanks",
        fix="<its https URL>",
    )
    try:
        found = urlsplit(text)
        is_near = found.hostname in {"127.0.0.1", "::1", "localhost"}
        is_host = is_near or _HOST.fullmatch(found.hostname or "") is not None
        is_whole = found.port != 0 and "@" not in found.netloc
    except ValueError:
        raise bad from None
    is_safe = found.scheme == "https" or (found.scheme == "http" and is_near)
    if not (is_safe and is_host and is_whole and _PRINTED.fullmatch(text)):
        raise bad
    return text


def _around(items: tuple[str, ...]) -> tuple[str, ...]:
    for item in items:
        if re.fullmatch(r"[0-9.]+/[0-9]+|[0-9a-fA-F:]+(/[0-9]+)?", item):
            _range(item, "an IP range", "10.0.0.0/8")
        elif not _HOST.fullmatch(item.removeprefix(".")):
            raise InvalidValueError(
                f"has {shorten(item)}, which is no host",
                "a host, a domain with a dot before it, or an IP range; no wildcard, no port",
                fix=".example.com",
            )
    return items


def _image_mirrors(items: tuple[str, ...]) -> tuple[str, ...]:
    froms = []
    for item in items:
        registry, equals, place = item.rpartition("=")
        if equals and not _REGISTRY.fullmatch(registry):
            raise InvalidValueError(
                f"has {shorten(registry)}, which is no registry", "such as nvcr.io"
            )
        if not _PLACE.fullmatch(place):
            raise InvalidValueError(
                f"has {shorten(place)}, where no images can be",
                "<registry>/<path>, such as us-docker.pkg.dev/my-project/mirror",
            )
        froms.append(registry)
    if len(set(froms)) < len(froms):
        raise InvalidValueError(
            "has two places for the same images", "one for all, and one for each registry"
        )
    return items


_IMAGE = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
_LABEL: Final = r"[A-Za-z0-9][A-Za-z0-9-]{0,62}"
_HOST: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*|[0-9a-fA-F:]+")
_PRINTED: Final = re.compile(r"[!-~]{1,500}")
_URL_PATH: Final = re.compile(r"[A-Za-z0-9._~%+@:,=/-]*")
_REGISTRY: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,200}(:[0-9]{1,5})?")
_PLACE: Final = re.compile(rf"{_REGISTRY.pattern}(/[a-z0-9][a-z0-9._-]{{0,100}}){{0,9}}")

# As their selfLinks have it (compute v1, images.get and images.getFromFamily).
_IMAGE_PATH: Final = re.compile(
    rf"(?:https://[a-z0-9./-]{{1,100}}/)?projects/(?P<project>{PROJECT})/global/images/"
    rf"(?P<family>family/)?(?P<name>{_IMAGE})"
)


def _image(text: str, *, family: bool = False) -> str:
    if re.fullmatch(_IMAGE, text):
        return text
    path = _IMAGE_PATH.fullmatch(text)
    if path is None:
        raise InvalidValueError(
            "is not the name of an image", "lower-case letters, digits and hyphens"
        )
    setting = "IMAGE_FAMILY_NAME" if path["family"] else "IMAGE_NAME"
    raise InvalidValueError(
        f"is the path of {'a family of images' if path['family'] else 'an image'}",
        f"that is {setting}={path['name']} with IMAGE_PROJECT={path['project']}",
        fix=path["name"] if family is bool(path["family"]) else "",
    )


_MACHINE_TYPE_FORM: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
_MACHINE_TYPE: Final = 63  # the most characters of a name (RFC 1035)
_MOST_GPUS: Final = 16  # of one machine: an a2-megagpu-16g has them
_MOST_NAMED: Final = 8  # the most machine types that a message names
_TPU: Final = re.compile(r"(ct[0-9][a-z]*|tpu[0-9a-z]*)-.*")
"""Machine types with TPUs: ct4p, ct5lp, ct5p, ct6e, tpu7x (GKE, pages on flex start, undated)."""


def _machine_type(text: str) -> str:
    if _TPU.fullmatch(text):
        raise InvalidValueError(
            "is a machine with TPUs", "this tool makes machines with GPUs, and no others"
        )
    found = suggestions.gpus(text)
    # A name of the right form may be newer than the table: a rule notes it.
    if _MACHINE_TYPE_FORM.fullmatch(text) and len(text) <= _MACHINE_TYPE and not found:
        return text
    fitting = suggestions.machine_types(text)
    what = f"is a GPU, {found[0].name}, not a machine type" if found else "is not a machine type"
    if fitting:
        listed = ", ".join(fitting[:_MOST_NAMED])
        why = f"these machines have it: {listed}" if found else f"did you mean {listed}?"
        raise InvalidValueError(what, why, fix=fitting[0])
    if found:
        gpu = found[0].name
        why = f"it is attached to N1 machines: write ACCELERATOR_TYPE={gpu} and GPU_COUNT=1 too"
        raise InvalidValueError(what, why, fix=suggestions.USUAL_WITHOUT_GPUS)
    several = text.replace(",", " ").split()
    if len(several) > 1 and all(map(_MACHINE_TYPE_FORM.fullmatch, several)):
        raise InvalidValueError(
            "names several machine types",
            "all machines are of one; on GKE, GKE_NODE_POOLS has pools of different ones",
            fix=several[0],
        )
    raise InvalidValueError(what, "such as a2-highgpu-2g")


def _accelerator(text: str) -> str:
    found = suggestions.gpus(text)
    if found:
        raise InvalidValueError(
            "is not a GPU type", f"Google's name for it is {found[0].name}", fix=found[0].name
        )
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,62}", text):
        raise InvalidValueError("is not a GPU type", f"one of {', '.join(machines.ACCELERATORS)}")
    return text


def _gpus(number: int) -> int:
    if number not in range(1, _MOST_GPUS + 1):
        # No number of its own is right for every machine type.
        raise InvalidValueError(
            "is no number of GPUs",
            f"1 to {_MOST_GPUS}, and as many as VM_TYPE has; without it, it is that of VM_TYPE",
        )
    return number


_container_image = _matching(
    limits.CONTAINER_IMAGE,
    "is not the name of a container image",
    "<registry>/<path>:<tag>, with @sha256:<digest> if it is to stay the same",
)
_machine_or_gpu = _matching(
    "[a-z0-9]+(-[a-z0-9]+)*",
    "is not the name of a machine type or of a GPU",
    "one of the cluster's, such as a3-highgpu-8g, nvidia-h100-80gb or h100",
    str.lower,
)
_reservation = _matching(
    ReservationPath.form,
    "is not the name of a reservation",
    "lower-case letters, digits and hyphens; for another project's,"
    " projects/<project>/reservations/<name>; for a part of one,"
    " <name>/reservationBlocks/<block>/reservationSubBlocks/<sub-block>",
    without_zone,
)
_network = _matching(
    NetworkPath.form,
    "is not a network",
    "its name; for another project's, projects/<project>/global/networks/<name>",
)
# A version is what the console copies; with one, Google would never use a newer one.
_key = _matching(
    _KEY,
    "is not a key of Cloud KMS",
    "projects/<project>/locations/<location>/keyRings/<ring>/cryptoKeys/<key>",
    lambda text: text.partition("/cryptoKeyVersions/")[0],
)
_account = _matching(
    _EMAIL,
    "is not a service account",
    "the email address of one ends with gserviceaccount.com",
)
_pool_name = _matching(
    r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?",
    "is not the name of a node pool",
    "at most 40 lower-case letters, digits and hyphens, a letter first",
)
_ray_version = _matching(r"\d+\.\d+\.\d+", "is not a version of Ray", "three numbers with dots")
_job_name = _matching(
    limits.JOB_NAME,
    "is not the name of a job",
    "at most 23 lower-case letters, digits and hyphens, a letter first and no hyphen last; each"
    " job gets a number behind it",
)
_gke_version = _matching(
    r"1\.\d{1,3}(\.(\d{1,4}(-gke\.\d{1,10})?)?)?",
    "is not a version of GKE",
    "a prefix such as 1.35. or a full version such as 1.35.7-gke.1222000",
    lambda text: text.removeprefix("v"),
)

ProjectId = Annotated[str, AfterValidator(_project_id)]
NamePrefix = Annotated[str, AfterValidator(_name_prefix)]
Zone = Annotated[str, AfterValidator(candidates.check_one)]
Zones = Annotated[str, AfterValidator(candidates.check)]
Ways = Annotated[tuple[Way, ...], BeforeValidator(candidates.check_ways)]
Region = Annotated[str, AfterValidator(_region)]
MachineTypeName = Annotated[str, AfterValidator(_machine_type)]
AcceleratorName = Annotated[str, AfterValidator(_accelerator)]
ImageName = Annotated[str, AfterValidator(_image)]
FamilyName = Annotated[str, AfterValidator(functools.partial(_image, family=True))]
Image = Annotated[str, AfterValidator(_container_image)]
MachineOrGpu = Annotated[str, AfterValidator(_machine_or_gpu)]
GcsPath = Annotated[str, AfterValidator(_gcs_path)]
FilePlace = Annotated[
    str, AfterValidator(lambda it: (_gcs_path if it.startswith("gs:") else _absolute_path)(it))
]
BucketName = Annotated[str, AfterValidator(_bucket)]
AbsolutePath = Annotated[str, AfterValidator(_absolute_path)]
ShellLine = Annotated[str, AfterValidator(_one_line)]
ReservationName = Annotated[str, AfterValidator(_reservation)]
Cidr = Annotated[str, AfterValidator(_cidr)]
SecondaryRange = Annotated[str, AfterValidator(_secondary)]
NetworkName = Annotated[str, AfterValidator(_network)]
SubnetworkName = Annotated[str, AfterValidator(_subnetwork)]
KmsKey = Annotated[str, AfterValidator(_key)]
ServiceAccount = Annotated[str, AfterValidator(_service_account)]
Account = Annotated[str, AfterValidator(_account)]
ProxyUrl = Annotated[str, AfterValidator(_proxy)]
MirrorUrl = Annotated[str, AfterValidator(_mirror)]
NotifyUrl = Annotated[str, AfterValidator(_notified)]
IndexUrl = Annotated[str, AfterValidator(_index)]
PoolName = Annotated[str, AfterValidator(_pool_name)]
RayVersion = Annotated[str, AfterValidator(_ray_version)]
JobName = Annotated[str, AfterValidator(_job_name)]
GkeVersion = Annotated[str, AfterValidator(_gke_version)]

ActionWord = Annotated[Action, BeforeValidator(parsing.choice(Action, ACTIONS_BY_OTHER_NAMES))]
OrchestratorWord = Annotated[
    Orchestrator, BeforeValidator(parsing.choice(Orchestrator, ORCHESTRATORS_BY_OTHER_NAMES))
]
NetworkWord = Annotated[NetworkConfig, BeforeValidator(parsing.choice(NetworkConfig))]
DiskTypeWord = Annotated[DiskType, BeforeValidator(_disk_type)]
PriceWord = Annotated[PriceList, BeforeValidator(parsing.choice(PriceList))]
RestartWord = Annotated[Restart, BeforeValidator(parsing.choice(Restart))]
PriorityWord = Annotated[Priority, BeforeValidator(parsing.choice(Priority))]
JobRestartWord = Annotated[RestartOn, BeforeValidator(parsing.choice(RestartOn))]
ChannelWord = Annotated[ReleaseChannel, BeforeValidator(parsing.choice(ReleaseChannel))]
DriverWord = Annotated[DriverVersion, BeforeValidator(parsing.choice(DriverVersion))]

Switch = Annotated[bool, BeforeValidator(parsing.boolean)]

_Whole = Annotated[int, BeforeValidator(parsing.whole_number)]
Count = Annotated[_Whole, Field(ge=1)]
Port = Annotated[_Whole, Field(ge=1, le=65535)]
Rank = Annotated[Annotated[int, Field(ge=0)] | None, BeforeValidator(parsing.rank)]
Nodes = Annotated[_Whole, Field(ge=0, le=limits.MOST_NODES)]
MostNodes = Annotated[_Whole, Field(ge=1, le=limits.MOST_NODES)]
PodsPerNode = Annotated[_Whole, Field(ge=limits.LEAST_PODS, le=limits.USUAL_PODS)]
PoolCount = Annotated[_Whole, Field(ge=1, le=50)]
Gpus = Annotated[_Whole, AfterValidator(_gpus)]
Dollars = Annotated[float, BeforeValidator(parsing.amount), Field(gt=0)]
DiskSize = Annotated[int, BeforeValidator(parsing.gibibytes), Field(ge=10, le=65536)]
Seconds = Annotated[int, _duration(60), AfterValidator(_some)]
IdleSeconds = Annotated[int, _duration(limits.SHORTEST_IDLE), AfterValidator(_idle)]
RunSeconds = Annotated[int, _duration(limits.SHORTEST_GROUP_RUN), AfterValidator(_run)]

_Items = Annotated[tuple[str, ...], BeforeValidator(parsing.comma_list)]
Networks = Annotated[_Items, AfterValidator(_networks)]
Subnetworks = Annotated[_Items, AfterValidator(_subnetworks)]
Around = Annotated[_Items, AfterValidator(_around)]
ImageMirrors = Annotated[_Items, AfterValidator(_image_mirrors)]
Checks = Annotated[
    tuple[OnlineCheck, ...],
    BeforeValidator(parsing.choices(OnlineCheck, "an online check", "checks")),
]
