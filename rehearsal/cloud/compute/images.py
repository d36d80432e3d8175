"""The images that VMs boot from: Google's public ones, and those that a project makes.

The public ones are those of `facts/images.json`; nobody but Google changes them. A project's own
are made of an image or of a disk, and can be deprecated and deleted.
"""

import datetime as dt
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rehearsal.cloud import scenarios
from rehearsal.cloud.compute import links, lists, resources
from rehearsal.cloud.compute.resources import DISK, IMAGE, INSTANCE, Call, Resource
from rehearsal.cloud.facts import images as facts
from rehearsal.cloud.wire import GoogleError

_REFERENCE = re.compile(r"projects/([^/]+)/global/images/(family/)?([^/]+)")
_READY = "READY"
_ARCHIVE = 24_000_000_000  # bytes that an image of a disk is stored in; a guess
_ACTIVE, _DEPRECATED = "ACTIVE", "DEPRECATED"
_WITHDRAWN: Mapping[str, str] = {"OBSOLETE": "obsolete", "DELETED": "deleted"}
"""States in which an image cannot be used any more -> the word in Google's refusal."""
_FAR = 10**12  # later than any moment (Unix epoch)


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image, public or of a project."""

    name: str  # its full name ("projects/p/global/images/i")
    document: Resource  # what a GET answers
    # what it is made of, if that is a public image; None for what nobody knows
    public: facts.PublicImage | None
    # whether it is of a VM that was sealed: a start-up finds what it would install
    baked: bool = False

    @property
    def size_gb(self) -> int:
        """The least size of a disk made of it."""
        return int(self.document["diskSizeGb"])

    @property
    def arm(self) -> bool:
        """Whether it is for Arm processors."""
        return bool(self.document["architecture"] == "ARM64")

    @property
    def state(self) -> str:
        """ACTIVE, DEPRECATED, OBSOLETE or DELETED."""
        return str((self.document.get("deprecated") or {}).get("state", _ACTIVE))

    @property
    def warning(self) -> Resource | None:
        """What an operation warns of that uses it; None if it is not deprecated."""
        if self.state != _DEPRECATED:
            return None
        data = [{"key": "resource_name", "value": self.name}]
        if self._suggestion:
            data.append({"key": "replacement_suggestion", "value": self._suggestion})
        return {
            "code": "DEPRECATED_RESOURCE_USED",
            "message": " ".join(
                filter(None, (f"The resource '{self.name}' is deprecated.", self._suggestion))
            ),
            "data": data,
        }

    @property
    def refusal(self) -> str:
        """Why it can't be used; "" if it can.

        That of an obsolete one without a replacement is in cockroachdb/cockroach#59361; the others
        are made of it and of the warning (believed).
        """
        if self.state not in _WITHDRAWN:
            return ""
        instead = self._suggestion or "No replacement was specified."
        withdrawn = _WITHDRAWN[self.state]
        return f"The resource '{self.name}' is {withdrawn}.  New uses are not allowed.  {instead}"

    @property
    def _suggestion(self) -> str:
        replacement = self.document.get("deprecated", {}).get("replacement")
        name = links.name_of(links.normal(replacement or ""))
        return f"A suggested replacement is '{name}'." if name else ""


def is_public(project: str) -> bool:
    """Whether a project is one of those that hold public images."""
    return project in facts.PROJECTS


def find(call: Call, reference: str) -> Image | None:
    """The image of a resolved name, or None; a family is its newest that is not deprecated."""
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        return None
    project, of_family, name = match.groups()
    every = _of(call, project)
    if not of_family:
        return next((it for it in every if links.last(it.name) == name), None)
    usable = [
        it
        for it in every
        if (it.document.get("family"), it.document["status"], it.state) == (name, _READY, _ACTIVE)
    ]
    return max(usable, key=lambda it: (_moment(it), it.name), default=None)


def check_use(call: Call, template: Resource) -> None:
    """Refuse who may not make disks of a template's images; public ones are for everybody."""
    permission = "compute.images.useReadOnly"
    for disk in template["properties"]["disks"]:
        name = links.name_of((disk.get("initializeParams") or {}).get("sourceImage", ""))
        is_own = bool(name) and not is_public(name.split("/")[1])
        if is_own and scenarios.is_withheld(permission, call.request.scenarios):
            raise GoogleError(403, f"Required '{permission}' permission for '{name}'")


def require_usable(call: Call, reference: str) -> Image:
    """The image of a resolved name, to make a disk of it."""
    image = find(call, reference)
    if image is None:
        raise resources.not_found(reference)
    if image.document["status"] != _READY:
        raise GoogleError(
            400, f"The resource '{reference}' is not ready", reason="resourceNotReady"
        )
    if image.refusal:
        raise GoogleError(400, image.refusal, reason="badRequest")
    return image


def of_boot_disk(call: Call, properties: Resource) -> tuple[str, Image | None]:
    """The reference to the image of a template's boot disk, and the image if it is still there."""
    for disk in properties["disks"]:
        source = (disk.get("initializeParams") or {}).get("sourceImage")
        if disk.get("boot") and source:
            reference = links.name_of(links.normal(source))
            return reference, find(call, reference)
    return "", None


def _of(call: Call, project: str) -> Iterator[Image]:
    """All images of a project, in the order of their names."""
    if is_public(project):
        for public in facts.IMAGES.values():
            if public.project == project:
                yield _public(public)
        return
    for name, kept in resources.each(call, IMAGE, IMAGE.prefix(project)):
        content = kept.get("_content")
        made_of = facts.IMAGES.get((content[0], content[1])) if content else None
        document = {**resources.show(kept), "status": _status(call, kept)}
        baked = bool(kept.get("_baked"))
        yield Image(name=name, document=document, public=made_of, baked=baked)


def _status(call: Call, kept: Resource) -> str:
    """How far an image is: that of a disk which goes before it is done comes to nothing."""
    disk = call.store.get(DISK.stored, kept.get("_disk", ""))
    ends = min(call.now, kept.get("_ready", 0))
    if kept.get("_disk") and (disk is None or disk.get("_gone", _FAR) < ends):
        return "FAILED"
    return "PENDING" if kept.get("_ready", 0) > call.now else _READY


def _public(image: facts.PublicImage) -> Image:
    prefix = IMAGE.prefix(image.project)
    name = prefix + image.name
    withdrawal: Resource = {}
    if image.deprecated:
        withdrawal = {"state": _DEPRECATED, "deprecated": _midnight(image.deprecated)}
        if image.deleted:
            withdrawal["deleted"] = _midnight(image.deleted)
        if image.replacement:
            withdrawal["replacement"] = links.ROOT + prefix + image.replacement
    document = {
        "kind": "compute#image",
        "id": str(links.FIRST_ID + zlib.crc32(name.encode())),
        "creationTimestamp": _midnight(image.created),
        "name": image.name,
        "description": f"{image.family}, built on {image.created}",
        "sourceType": "RAW",
        "rawDisk": {"source": "", "containerType": "TAR"},
        "status": "READY",
        "archiveSizeBytes": str(image.disk_gb * 10**8),
        "diskSizeGb": str(image.disk_gb),
        "family": image.family,
        "architecture": "ARM64" if image.arm else "X86_64",
        "guestOsFeatures": [{"type": "GVNIC"}, {"type": "UEFI_COMPATIBLE"}],
        "labelFingerprint": "42WmSpB8rSM=",
        "licenses": [f"{links.ROOT}projects/{image.project}/global/licenses/{image.family}"],
        "storageLocations": ["us"],
        "selfLink": links.ROOT + name,
        **({"deprecated": withdrawal} if withdrawal else {}),
    }
    return Image(name=name, document=document, public=image)


def _midnight(day: str) -> str:
    return f"{day}T00:00:00.000-08:00"


def _moment(image: Image) -> float:
    """When an image was made (Unix epoch)."""
    return dt.datetime.fromisoformat(image.document["creationTimestamp"]).timestamp()


def _required(call: Call, name: str) -> Resource:
    image = find(call, name)
    if image is None:
        raise resources.not_found(name)
    return image.document


def _get(call: Call) -> Resource:
    return _required(call, call.name(IMAGE))


def _get_from_family(call: Call) -> Resource:
    return _required(call, f"{IMAGE.prefix(call.project)}family/{call.parameters['family']}")


def _list(call: Call) -> Resource:
    """Deprecated ones, too: it is gcloud that hides them."""
    if call.parameters.get("orderBy", "name") != "name":
        raise GoogleError(501, "Another order than that of names is not simulated.")
    entries = ((links.last(it.name), it.document) for it in _of(call, call.project))
    return lists.listed(call, "image", IMAGE.prefix(call.project).removesuffix("/"), entries)


def _require_own(call: Call) -> None:
    if is_public(call.project):
        name = call.parameters.get("image") or call.body.get("name", "")
        denied = f"Required '{call.method}' permission for '{IMAGE.prefix(call.project)}{name}'"
        raise GoogleError(403, denied, reason="forbidden")


def _insert(call: Call) -> Resource:
    _require_own(call)
    body = resources.without_nulls(call.body)
    given = [field for field in ("sourceImage", "sourceDisk") if body.get(field)]
    if len(given) != 1:
        raise GoogleError(
            400, "Invalid resource usage: 'Must specify exactly one source for an image.'."
        )
    links.check_labels("labels", body.get("labels") or {})
    of_disk = {} if given == ["sourceImage"] else _source_disk(call, body)
    source = None if of_disk else _source_image(call, body)
    content = (source.public.project, source.public.name) if source and source.public else None
    size = source.size_gb if source else of_disk["diskSizeGb"]
    arm = source.arm if source else False
    fields = {
        "status": "READY",
        "sourceType": "RAW",
        "architecture": "ARM64" if arm else "X86_64",
        **body,
        "diskSizeGb": str(body.get("diskSizeGb") or size),
        "_content": content,
        **of_disk,
    }
    return resources.insert(call, IMAGE, fields)


def _source_image(call: Call, body: Resource) -> Image:
    name = links.resolve(
        body["sourceImage"], project=call.project, collection="images", field="sourceImage"
    )
    return require_usable(call, name)


def _source_disk(call: Call, body: Resource) -> Resource:
    name = call.resolve(body["sourceDisk"], DISK, "sourceDisk")
    disk = resources.require_ready(call, DISK, name)
    users = [links.name_of(it) for it in disk.get("users") or []]
    vms = {user: resources.find(call, INSTANCE, user) for user in users}
    on = [user for user, vm in vms.items() if vm is None or not _is_off(call, vm)]
    if on and call.parameters.get("forceCreate") != "true":
        raise resources.in_use(DISK, name, on[0])
    # What else was done to a disk since it was made is not known.
    return {
        "sourceDisk": disk["selfLink"],
        "sourceDiskId": disk["id"],
        "diskSizeGb": disk["sizeGb"],
        "archiveSizeBytes": str(_ARCHIVE),
        "storageLocations": ["us"],
        "_disk": name,
        "_baked": any(vm and vm.get("_sealed") for vm in vms.values()),
    }


def _is_off(call: Call, vm: Resource) -> bool:
    moment, status = vm["_timeline"][-1]
    return bool(status == "TERMINATED" and moment <= call.now)


def _deprecate(call: Call) -> Resource:
    """Nothing in the body takes the deprecation away."""
    _require_own(call)
    name = call.name(IMAGE)
    kept = resources.require_ready(call, IMAGE, name)
    given = resources.without_nulls(call.body)
    changed = {key: value for key, value in kept.items() if key != "deprecated"}
    return resources.change(
        call, IMAGE, name, {**changed, **({"deprecated": given} if given else {})}
    )


def _delete(call: Call) -> Resource:
    _require_own(call)
    return resources.remove(call, IMAGE, call.name(IMAGE))


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "images.get": _get,
    "images.getFromFamily": _get_from_family,
    "images.list": _list,
    "images.insert": _insert,
    "images.deprecate": _deprecate,
    "images.delete": _delete,
}
