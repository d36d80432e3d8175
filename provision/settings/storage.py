"""Shared storage that is mounted on every machine."""

# No deferred annotations: pydantic reads them as it makes the class.

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from provision.catalogue import filestores
from provision.catalogue.filestores import Tier
from provision.settings import parsing
from provision.settings.values import AbsolutePath, BucketName


class Mount(BaseModel):
    """A Cloud Storage bucket and the path where it is mounted."""

    model_config = ConfigDict(frozen=True)

    bucket: BucketName
    path: AbsolutePath


class Share(BaseModel):
    """A Filestore share that is created for the cluster, and the path where it is mounted."""

    model_config = ConfigDict(frozen=True)

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


Mounts = Annotated[tuple[Mount, ...], BeforeValidator(parsing.mounts)]
Shares = Annotated[tuple[Share, ...], BeforeValidator(parsing.shares)]
