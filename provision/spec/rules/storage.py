"""Rules about the paths at which machines mount storage, about its key, and about the state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import filestores, gcsfuse, machines, names, zones
from provision.codes import Code
from provision.spec.rules.findings import Case, Finding, Rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provision.settings.storage import Mount, Share

RULES: Final = Rules()

_SETTINGS: Final = ("gcs_mount_list", "nfs_fileshare_list")
# A mount hides what was at its path before. These paths have files of the system and of this tool:
# nothing may be mounted or copied at, above or below them. Of /usr, folders of one's own are free.
_HELD: Final = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt/aiinfra", "/proc",
    "/root/.ssh", "/run", "/sbin", "/snap", "/sys", "/usr/bin", "/usr/include", "/usr/lib",
    "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/libx32", "/usr/local", "/usr/sbin",
    "/usr/share", "/usr/src", "/var/cache", "/var/lib", "/var/log", "/var/run", "/var/spool",
)  # fmt: skip
# Nothing may be mounted at or above these paths; below them is fine.
_NEEDED: Final = ("/home/jupyter", "/root", "/tmp")  # noqa: S108 - a path of the VMs, not of this machine


def _is_within(path: str, other: str) -> bool:
    """Whether the path is the other one or is below it."""
    return path == other or path.startswith(f"{other}/")


def _mounts(case: Case) -> Iterator[tuple[str, str]]:
    """All mounts: setting and path."""
    for name in _SETTINGS:
        asked: Sequence[Mount | Share] = case.value(name) or ()
        for mounted in asked:
            yield name, mounted.path


@RULES.on("project_id", "terraform_gcs_path")
def _state_path(case: Case) -> Iterator[Finding]:
    if case.settings.terraform_gcs_path is None:
        yield Finding(
            code=Code.MISSING_SETTING,
            field="terraform_gcs_path",
            what="is required for a domain-scoped project",
            why=f"the default bucket has the project ID in its name, and a bucket name can't"
            f" contain {case.settings.project_id}",
            fix="TERRAFORM_GCS_PATH=gs://<an existing bucket>",
        )


@RULES.on("terraform_gcs_path")
def _state_in_a_deployment(case: Case) -> Iterator[Finding]:
    path = case.settings.terraform_gcs_path or ""
    inside = next((it for it in path.split("/")[3:] if it.endswith("-deployment")), None)
    if inside is not None:
        yield Finding(
            field="terraform_gcs_path",
            what=f"lies in {inside}, the folder of a deployment",
            why="a Destroy of that deployment empties its folder, and this state with it",
            fix=f"the folder above it: {path.partition(f'/{inside}')[0]}",
        )


@RULES.on("gcs_mount_list", "terraform_gcs_path")
def _state_on_a_mount(case: Case) -> Iterator[Finding]:
    bucket = (case.settings.terraform_gcs_path or "").removeprefix("gs://").partition("/")[0]
    for mount in case.settings.gcs_mount_list or ():
        is_own = mount.bucket == bucket
        # The default bucket of a project, this one or another, has states wherever this one is.
        if is_own or mount.bucket.startswith(names.STATE_BUCKETS):
            which = (
                "the bucket of the Terraform state" if is_own else "a bucket of Terraform states"
            )
            yield Finding(
                field="gcs_mount_list",
                what=f"mounts {mount.bucket}, {which}",
                why="each machine could then change the state of every deployment in it, which"
                " the next run applies with your rights",
                fix="another bucket for the data"
                + (", or another one for the state (TERRAFORM_GCS_PATH)" if is_own else ""),
            )


@RULES.on("kms_key", "nfs_fileshare_list", "region", "zone")
def _key(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.kms_key is None:
        return
    shares = settings.nfs_fileshare_list or ()
    for share in shares:
        if share.tier in filestores.WITHOUT_KEYS:
            yield Finding(
                field="nfs_fileshare_list",
                what=f"has a share of tier {share.tier}, which takes no key",
                why="KMS_KEY is for all that keeps data",
                fix=f"{share.path} with ZONAL, REGIONAL or ENTERPRISE, or remove KMS_KEY",
            )
    strict = bool(shares) or case.is_gke
    why = zones.why_key_is_elsewhere(settings.kms_key, settings.region, strict=strict)
    # Of several zones, each is held against it online.
    if why and not settings.places.is_several:
        location = settings.kms_key.split("/")[3]
        yield Finding(
            field="kms_key",
            what=f"is in {location}",
            why=why,
            fix=settings.kms_key.replace(
                f"/locations/{location}/", f"/locations/{settings.region}/"
            )
            + ", if there is one",
        )


@RULES.on()
def _mount_paths(case: Case) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for name, path in _mounts(case):
        for other, its_name in seen.items():
            if path == other:
                what = f"mounts {path} twice{_elsewhere(case, name, its_name)}"
                why, free = "a path can have only one mount", f"{path}-2"
            elif _is_within(path, other) or _is_within(other, path):
                inner, outer = sorted((path, other), key=len, reverse=True)
                what = f"has {inner} inside {outer}{_elsewhere(case, name, its_name)}"
                why, free = "a mount inside another one hides files of the other", f"{outer}-2"
            else:
                continue
            yield Finding(field=name, what=what, why=why, fix=f"another path, such as {free}")
            break
        seen.setdefault(path, name)


def _elsewhere(case: Case, name: str, other: str) -> str:
    return "" if name == other else f", in {case.name(other)}"


@RULES.on("vm_type")
def _system_paths(case: Case) -> Iterator[Finding]:
    machine = machines.lookup(case.settings.vm_type)
    has_local_ssds = machine is not None and machine.local_ssds > 0 and not case.is_gke
    held = (*_HELD, gcsfuse.LOCAL_SSD) if has_local_ssds else _HELD
    for name, path in _mounts(case):
        hidden = _system_folder(path, held, _NEEDED)
        if hidden is not None:
            yield Finding(
                field=name,
                what=f"mounts {path}",
                why=f"the VMs need {hidden}, which a mount there would hide or break",
                fix="another path, such as /mnt/data",
            )


def _system_folder(path: str, held: Iterable[str], needed: Iterable[str] = ()) -> str | None:
    """The folder of the system that is at, above or below a path; None if there is none.

    Who may write keys into somebody's .ssh logs in as that user, wherever the home is.
    """
    if ".ssh" in path.split("/"):
        return path
    inside = (it for it in held if _is_within(path, it))
    return next((it for it in (*held, *needed) if _is_within(it, path)), next(inside, None))


@RULES.on("vm_localfile_dest_path")
def _files_in_the_system(case: Case) -> Iterator[Finding]:
    folder = _system_folder(case.settings.vm_localfile_dest_path, _HELD)
    if folder is not None:
        yield Finding(
            field="vm_localfile_dest_path",
            what="is a place of the system",
            why=f"the VMs and those who log in to them rest on {folder}, which the copied files"
            " would change",
            fix="VM_LOCALFILE_DEST_PATH=/usr/aiinfra/copy, or another folder of your own",
        )


@RULES.on("gcs_cache_gb", "gcs_mount_list", "gke_node_pools", "vm_type")
def _cache(case: Case) -> Iterator[Finding]:
    size = case.settings.gcs_cache_gb
    mounts = len(case.settings.gcs_mount_list or ())
    if size is None or not mounts:
        return
    types = [pool.vm_type for pool in case.settings.gke_node_pools or ()]
    types = types or [case.settings.vm_type]
    known = [it for name in types if (it := machines.lookup(name))]
    without = next((it for it in known if not it.local_ssds), None)
    having = [it for it in known if it.local_ssds]
    smallest = min(having, key=lambda it: it.local_ssd_gb, default=None)
    if without:
        yield Finding(
            field="gcs_cache_gb",
            what=f"needs Local SSDs, which {without.name} does not have",
            why="the cache is kept there, so that it does not fill the boot disk",
            fix="a machine type with Local SSDs, or leave it out",
        )
    elif smallest and size * mounts > smallest.local_ssd_gb:
        yield Finding(
            field="gcs_cache_gb",
            what=f"is more than the Local SSDs of {smallest.name} have",
            why=f"they have {smallest.local_ssd_gb} GB, and each of {mounts} mounts gets a cache of"
            " that size",
            fix=f"GCS_CACHE_GB={smallest.local_ssd_gb // mounts * 3 // 4}",
        )


@RULES.on("gcs_mount_list")
def _options_of_nothing(case: Case) -> Iterator[Finding]:
    if case.settings.gcs_mount_list:
        return
    for name in ("gcs_cache_gb", "gcs_options"):
        if case.on(name):
            yield Finding(
                field=name,
                what="has no effect",
                why="no bucket is mounted",
                fix="GCS_MOUNT_LIST=<bucket>:</mount/path>, or leave it out",
                note=True,
            )


@RULES.on("vm_localfile_dest_path")
def _files_on_a_mount(case: Case) -> Iterator[Finding]:
    destination = case.settings.vm_localfile_dest_path
    for _, path in _mounts(case):
        if _is_within(destination, path):
            yield Finding(
                field="vm_localfile_dest_path",
                what=f"is inside the mount {path}",
                why="every VM then writes the copied files to the same shared storage",
                fix="a path outside of all mounts, if each VM should have its own copy",
                note=True,
            )
