"""Shared storage that is mounted on every machine."""

# No deferred annotations: pydantic reads them as it makes the class.

import difflib
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from provision.catalogue import filestores, gcsfuse
from provision.catalogue.filestores import Tier
from provision.settings import parsing
from provision.settings.values import AbsolutePath, BucketName


class Mount(BaseModel):
    """A Cloud Storage bucket and the path where it is mounted."""

    # The settings' own validator has the rules of this one: few need one that reads it alone.
    model_config = ConfigDict(frozen=True, defer_build=True)

    bucket: BucketName
    path: AbsolutePath


class JobMount(BaseModel):
    """A bucket that is mounted for one job, below /mnt: nothing of the system is there."""

    model_config = ConfigDict(frozen=True)

    bucket: BucketName
    path: Annotated[str, Field(pattern=r"^/mnt/[A-Za-z0-9_][-A-Za-z0-9_.]{0,99}$")]
    read_only: bool = False

    @classmethod
    def of(cls, text: str) -> Self:
        """What `BUCKET:/mnt/NAME` means, or that with :ro behind it; else a ValueError."""
        rest = text.removesuffix(":ro")
        bucket, _, path = rest.partition(":")
        if path == gcsfuse.LOCAL_SSD:
            raise ValueError("the Local SSDs are there")
        return cls(bucket=bucket, path=path, read_only=rest != text)


class Share(BaseModel):
    """A Filestore share that is created for the cluster, and the path where it is mounted."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    path: AbsolutePath
    tier: Annotated[Tier, BeforeValidator(parsing.choice(Tier))]
    size_gb: int = Field(default=None, validate_default=True)
    """GiB."""

    @field_validator("size_gb", mode="before")
    @classmethod
    def _fits_the_tier(cls, value: Any, info: ValidationInfo) -> int:
        """Check the user's size, or the tier's default, against the tier's sizes."""
        tier = info.data.get("tier")
        if tier is None:
            return 0  # the tier is invalid, which is reported already
        size = filestores.default_size(tier) if value is None else parsing.gibibytes(value)
        if size is None or not filestores.takes(tier, size):
            fits = filestores.nearest_size(tier, size or 0)
            raise parsing.InvalidValueError(
                "is missing" if size is None else f"is not a valid size for {tier}",
                f"{tier} supports {filestores.sizes_in_words(tier)}",
                fix=f"{info.data.get('path', '/mnt/share')}:{tier}:{fits}",
            )
        return size


def _options(text: str) -> tuple[str, ...]:
    """Options of gcsfuse, `name=value` or a bare name, as `--help` of gcsfuse or fstab has them."""
    found: dict[str, str] = {}
    for item in parsing.comma_list(text):
        name, _, value = item.partition("=")
        name = name.strip().lstrip("-").replace("_", "-")
        kind = gcsfuse.OPTIONS.get(name)
        if kind is None:
            raise parsing.InvalidValueError(
                f"has the option {parsing.shorten(name)}", _advice(name)
            )
        value = value.strip() or ("true" if kind is gcsfuse.Kind.SWITCH else "")
        if not kind.takes(value):
            raise parsing.InvalidValueError(
                f"has {parsing.shorten(item)}, which {name} does not take", kind.words
            )
        if name in found:
            raise parsing.InvalidValueError(f"has {name} twice", "give each option once")
        found[name] = f"{name}={value}"
    return tuple(found.values())


def _advice(name: str) -> str:
    if name in {"cache-dir", "file-cache-max-size-mb"}:
        return "GCS_CACHE_GB turns the cache on"
    if name in {"allow-other", "o"}:
        return "every user has access in any case"
    close = difflib.get_close_matches(name[:64], gcsfuse.OPTIONS, n=1)
    known = f"did you mean {close[0]}? " if close else ""
    return f"{known}the options are {', '.join(gcsfuse.OPTIONS)}"


BucketOptions = Annotated[tuple[str, ...], BeforeValidator(_options)]
CacheSize = Annotated[int, BeforeValidator(parsing.gibibytes), Field(ge=1, le=65536)]
Mounts = Annotated[tuple[Mount, ...], BeforeValidator(parsing.mounts)]
Shares = Annotated[tuple[Share, ...], BeforeValidator(parsing.shares)]
