"""The settings: one frozen model of everything that an env.list can say.

The model is the single source. The README's table, the help text and the examples are made from
it or compared with it. A field's name is its variable's in lower case.
"""

# No deferred annotations: pydantic reads them as it makes the class.

from collections.abc import Mapping
from typing import Any

from pydantic import Field
from pydantic_core import PydanticUndefined
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from provision.settings import derived
from provision.settings.choices import DriverVersion, NetworkConfig, Orchestrator, ReleaseChannel
from provision.settings.derived import Derived
from provision.settings.labels import Labels, Metadata
from provision.settings.pools import NodePools
from provision.settings.secrets import Secrets
from provision.settings.storage import Mounts, Shares
from provision.settings.values import (
    AbsolutePath,
    AcceleratorName,
    ActionWord,
    ChannelWord,
    Checks,
    Count,
    DiskSize,
    DiskTypeWord,
    DriverWord,
    GcsPath,
    GkeVersion,
    Gpus,
    ImageName,
    MachineTypeName,
    MostNodes,
    NamePrefix,
    Networks,
    NetworkWord,
    Nodes,
    OrchestratorWord,
    PoolCount,
    Presence,
    ProjectId,
    RayVersion,
    Region,
    ReservationName,
    RunSeconds,
    Seconds,
    ServiceAccount,
    ShellLine,
    Switch,
    Zone,
)


def _setting(
    description: str,
    example: str,
    default: Any = None,
    *,
    only_with: Orchestrator | None = None,
    default_words: str = "",
) -> Any:
    """A field: what it does, a value that passes, its default, and the orchestrator it needs."""
    extra = {"only_with": only_with.value if only_with else "", "default_words": default_words}
    about: dict[str, Any] = {
        "description": description,
        "examples": [example],
        "json_schema_extra": extra,
    }
    if isinstance(default, Derived):
        return Field(default_factory=default, **about)
    return Field(default=default, **about)


class _Given(PydanticBaseSettingsSource):
    """The source of values: the texts that were read for this run, by field."""

    def __init__(self, settings_cls: type[BaseSettings], texts: Mapping[str, str]) -> None:
        super().__init__(settings_cls)
        self._texts = texts

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        """The text of one field; fields parse their own texts, so none is complex here."""
        del field
        return self._texts.get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        """All texts that were given."""
        return dict(self._texts)


class Settings(BaseSettings):
    """What one run is asked for: effective values, every default resolved.

    `model_fields_set` names the fields that somebody gave. Durations are whole seconds. `None`
    is unset without a default.

    Args:
        texts: Field name -> the text of its value. The process environment is never read here.

    Raises:
        pydantic.ValidationError: A text does not follow its field's rule. `intake.load` says
            it in words, for all fields at once.
    """

    # Defaults are values already; only texts go through the parsers.
    model_config = SettingsConfigDict(frozen=True, extra="forbid", validate_default=False)

    def __init__(self, texts: Mapping[str, str]) -> None:
        super().__init__(texts=texts)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only the texts that were handed over: no environment, no files."""
        del env_settings, dotenv_settings, file_secret_settings
        if not isinstance(init_settings, InitSettingsSource):  # pragma: no cover - the library's
            raise TypeError("pydantic-settings hands over the arguments in another way")
        return (_Given(settings_cls, init_settings.init_kwargs["texts"]),)

    # --- Mandatory
    project_id: ProjectId = _setting(
        "The Google Cloud project in which everything is made, and which is billed for it.",
        "my-project",
        PydanticUndefined,
    )
    name_prefix: NamePrefix = _setting(
        "Begins the name of everything that is made and identifies the cluster: another prefix is"
        " another cluster.",
        "my-cluster",
        PydanticUndefined,
    )
    zone: Zone = _setting(
        "The zone of the machines; it must offer their GPUs.", "us-central1-a", PydanticUndefined
    )

    # --- The run
    action: ActionWord | None = _setting(
        "What to do, in any case; the first argument of the command line wins.", "Create"
    )
    region: Region = _setting(
        "The region of networks, cluster and bucket; it must contain the zone.",
        "us-central1",
        derived.REGION,
    )
    terraform_gcs_path: GcsPath | None = _setting(
        "Where the state is kept, as `gs://bucket[/folder]`, in a folder"
        " `<NAME_PREFIX>-deployment`; a bucket that is named here must exist.",
        "gs://my-bucket/clusters",
        derived.STATE_PATH,
    )
    minimize_terraform_logging: Presence | None = _setting(
        "Any value: Terraform's output goes to a log file that is uploaded next to the state,"
        " also after a failure.",
        "yes",
    )
    capacity_timeout: Seconds = _setting(
        "How long Create waits for capacity; then it ends with exit code 75, everything is kept,"
        " and a second Create goes on.",
        "1h",
        1800,
        default_words="`30m`",
    )
    protect: Switch = _setting(
        "`yes`: Destroy refuses to delete this deployment without `--yes`; Create stores it.",
        "yes",
        False,
    )
    skip_checks: Checks | None = _setting(
        "Names of online checks to skip, with commas between.", "quota,image"
    )

    # --- Machines
    orchestrator_type: OrchestratorWord = _setting(
        "`none` makes a group of VMs, `ray` the same with a Ray cluster on it, `gke` a GKE cluster"
        " with GPU node pools.",
        "none",
        Orchestrator.NONE,
    )
    instance_count: Count = _setting("VMs of the group, or nodes of each GKE node pool.", "4", 1)
    vm_type: MachineTypeName = _setting(
        "The machine type; it decides number and type of the GPUs, except for N1.",
        "a2-highgpu-2g",
        "a2-highgpu-2g",
    )
    gpu_count: Gpus | None = _setting(
        "GPUs of each machine: needed for N1, and otherwise the number that the type has.",
        "2",
        derived.GPU_COUNT,
    )
    accelerator_type: AcceleratorName | None = _setting(
        "The GPU: needed for N1, and otherwise the one that the type has.",
        "nvidia-tesla-a100",
        derived.ACCELERATOR_TYPE,
    )

    # --- Image and disk
    image_name: ImageName | None = _setting(
        "One image, for VMs that stay the same; not together with IMAGE_FAMILY_NAME.",
        "my-image-20260101",
    )
    image_family_name: ImageName | None = _setting(
        "The newest image of this family; when neither is set, the online check takes the first"
        " family of a short list that exists, and says which.",
        "pytorch-2-7-cu128-ubuntu-2204-nvidia-570",
        derived.IMAGE_FAMILY,
    )
    image_project: ProjectId = _setting(
        "The project of the image.",
        "deeplearning-platform-release",
        "deeplearning-platform-release",
    )
    disk_size_gb: DiskSize = _setting(
        "Size of each machine's boot disk, 10 to 65536 GiB, at least the image's.",
        "500",
        derived.DISK_SIZE,
    )
    disk_type: DiskTypeWord = _setting(
        "Type of the boot disks: pd-ssd, pd-standard, pd-balanced, pd-extreme or"
        " hyperdisk-balanced, as far as the machine family takes it.",
        "pd-ssd",
        derived.DISK_TYPE,
    )

    # --- Capacity
    enable_flex_start: Switch = _setting(
        "Wait in Google's queue (DWS flex start) for machines that run for a limited time.",
        "yes",
        False,
    )
    enable_queued_provisioning: Switch = _setting(
        "Nodes come when a job asks for them, all at once, through Kueue.",
        "yes",
        False,
        only_with=Orchestrator.GKE,
    )
    max_run_duration: RunSeconds | None = _setting(
        "After this time Google deletes the machines: up to 7d, and at least 10m for VM groups.",
        "12h",
        derived.MAX_RUN,
    )
    enable_spot: Switch = _setting(
        "Cheaper machines that Google may take back at any time; not with flex start, queueing or"
        " a reservation.",
        "yes",
        False,
    )
    reservation_name: ReservationName | None = _setting(
        "Take the machines from this reservation; not with flex start, queueing or spot.",
        "my-reservation",
    )
    enable_compact_placement: Switch = _setting(
        "Machines stand close together in one zone; not with queueing, and with flex start only"
        " for A3 Ultra, A4 and H4D.",
        "yes",
        False,
    )

    # --- Network and identity
    network_config: NetworkWord = _setting(
        "`default_network` uses the project's, `new_network` makes one, `multi_nic_network` makes"
        " those that the GPUs of `VM_TYPE` are networked by, or 5; GKE makes its own, so leave it"
        " out there.",
        "new_network",
        NetworkConfig.DEFAULT,
    )
    enable_external_ip: Switch = _setting(
        "Machines have public addresses; without, they reach out by Cloud NAT and you reach them"
        " by ssh through IAP.",
        "no",
        derived.EXTERNAL_IP,
    )
    service_account: ServiceAccount = _setting(
        "Whom the machines act as: `dedicated` is made, with the least roles, `default` is the"
        " project's compute account, an email address is one that exists.",
        "dedicated",
        "dedicated",
    )

    # --- On the VMs
    metadata: Metadata = _setting(
        "Metadata of the VMs; your keys win, but those on which the tool rests are refused.",
        '{ key1 = "val", key2 = "val2" }',
        {},
    )
    labels: Labels = _setting(
        "Labels of everything that takes labels, next to the tool's own `aiinfra-cluster`.",
        '{ team = "research", cost-center = "42" }',
        {},
    )
    startup_command: ShellLine | None = _setting(
        "One line of shell that runs last at each VM's first boot; taken as it stands, quotes"
        " included.",
        "python3 /usr/aiinfra/copy/train.py",
    )
    secrets: Secrets | None = _setting(
        "Secrets of Secret Manager that STARTUP_COMMAND finds in its environment, as"
        " `NAME=projects/<project>/secrets/<secret>[:<version>],...`; each VM reads them itself,"
        " and a dedicated account gets access to exactly those.",
        "HF_TOKEN=projects/my-project/secrets/hf-token",
    )
    vm_localfile_dest_path: AbsolutePath = _setting(
        "Where files mounted at /usr/aiinfra/copy in the container land on every VM.",
        "/usr/aiinfra/copy",
        "/usr/aiinfra/copy",
    )
    gcs_mount_list: Mounts | None = _setting(
        "Buckets to mount on every machine, as `<bucket>:</mount/path>,...`.",
        "my-data:/mnt/data,my-models:/mnt/models",
    )
    nfs_fileshare_list: Shares | None = _setting(
        "Filestore shares to make and mount, as `</mount/path>:<TIER>[:<GiB>],...`; they are"
        " deleted with the cluster.",
        "/mnt/nfs:BASIC_SSD:2560",
    )
    enable_notebook: Switch = _setting("Jupyter on the VMs, reached through a proxy.", "yes", True)
    show_proxy_url: Switch = _setting(
        "Create waits for the notebooks' proxy URLs and prints them.", "yes", True
    )
    disable_ops_agent: Switch = _setting(
        "Leave out the Ops Agent, and with it the GPU metrics.", "true", False
    )
    ray_version: RayVersion = _setting(
        "The Ray that is installed; programs must use the same.",
        "2.60.0",
        "2.60.0",
        only_with=Orchestrator.RAY,
    )

    # --- GKE
    gke_version: GkeVersion | None = _setting(
        "Version of the cluster, or a prefix; unset, the channel's default at creation, which no"
        " later Create changes.",
        "1.33.",
        only_with=Orchestrator.GKE,
    )
    gke_release_channel: ChannelWord = _setting(
        "How fast GKE upgrades the cluster: RAPID, REGULAR, STABLE, EXTENDED or UNSPECIFIED.",
        "REGULAR",
        ReleaseChannel.REGULAR,
        only_with=Orchestrator.GKE,
    )
    gke_node_pool_count: PoolCount = _setting(
        "Equal GPU node pools, 1 to 50.", "1", 1, only_with=Orchestrator.GKE
    )
    gke_min_node_count: Nodes | None = _setting(
        "The fewest nodes of each pool that scales by itself; with neither limit, each pool has"
        " INSTANCE_COUNT nodes.",
        "0",
        derived.MIN_NODES,
        only_with=Orchestrator.GKE,
    )
    gke_max_node_count: MostNodes | None = _setting(
        "The most nodes of each pool that scales by itself, up to 1000.",
        "4",
        derived.MAX_NODES,
        only_with=Orchestrator.GKE,
    )
    gke_node_pools: NodePools | None = _setting(
        "GPU node pools that differ, as `name=a,vm_type=...;name=b,...`, in place of VM_TYPE,"
        " GPU_COUNT, ACCELERATOR_TYPE and GKE_NODE_POOL_COUNT.",
        "name=a100,vm_type=a2-highgpu-1g,max=4;name=l4,vm_type=g2-standard-24,count=2",
        only_with=Orchestrator.GKE,
    )
    system_node_pool_vm_type: MachineTypeName = _setting(
        "Machine type of the pool for system pods.",
        "e2-standard-4",
        "e2-standard-4",
        only_with=Orchestrator.GKE,
    )
    system_node_pool_min: Count = _setting(
        "The fewest nodes of the system pool.", "1", 1, only_with=Orchestrator.GKE
    )
    system_node_pool_max: Count = _setting(
        "The most nodes of the system pool.", "3", 3, only_with=Orchestrator.GKE
    )
    system_node_pool_disk_size_gb: DiskSize = _setting(
        "Boot disk of each system node, in GiB.", "100", 100, only_with=Orchestrator.GKE
    )
    system_node_pool_spot: Switch = _setting(
        "System nodes are spot machines, cheaper and less steady.",
        "no",
        False,
        only_with=Orchestrator.GKE,
    )
    system_node_pool_zone: Zone = _setting(
        "Zone of the system pool, in the same region.",
        "us-central1-a",
        derived.SYSTEM_ZONE,
        only_with=Orchestrator.GKE,
    )
    authorized_cidr: Networks | None = _setting(
        "Networks that may reach the cluster by IP; unset, its DNS endpoint with IAM is the only"
        " way in.",
        "203.0.113.0/24",
        only_with=Orchestrator.GKE,
    )
    gpu_driver_version: DriverWord = _setting(
        "The GPU driver that GKE installs: DEFAULT or LATEST.",
        "DEFAULT",
        DriverVersion.DEFAULT,
        only_with=Orchestrator.GKE,
    )
    kueue_gpu_quota: Count | None = _setting(
        "GPUs that Kueue hands out at the same time.",
        "16",
        derived.GPU_QUOTA,
        only_with=Orchestrator.GKE,
    )
    enable_ray_operator: Switch = _setting(
        "GKE's Ray operator add-on, with RayCluster and RayJob examples.",
        "yes",
        False,
        only_with=Orchestrator.GKE,
    )
    test_nodes: Count = _setting(
        "Nodes of the bandwidth test.", "2", derived.TEST_NODES, only_with=Orchestrator.GKE
    )
