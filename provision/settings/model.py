"""The settings: one frozen model of everything that an env.list can set.

The model is the single source: the README's table, the help text and the examples are generated
from it or compared with it. A field's name is its variable's name in lower case; a few have no
variable, but an option on the command line.
"""

# No deferred annotations: pydantic reads them when it creates the class.

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Final, Self

from pydantic import Field, PrivateAttr
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from provision.settings import candidates, derived, job_options, values
from provision.settings.candidates import Choice, Site
from provision.settings.choices import (
    DriverVersion,
    NetworkConfig,
    Orchestrator,
    PriceList,
    ReleaseChannel,
    Restart,
    Way,
    asking_for,
)
from provision.settings.derived import Derived
from provision.settings.gke import (
    Maintenance,
    NodePools,
    QueueName,
    Queues,
    SystemPool,
    TheSystemPool,
)
from provision.settings.job_options import ArrayText, JobOptions
from provision.settings.pairs import Environment, Labels, Metadata, Secrets
from provision.settings.resource_paths import owners
from provision.settings.storage import BucketOptions, CacheSize, Mounts, Shares

_GKE = (Orchestrator.GKE,)
_IN_PARTS = (Orchestrator.SLURM, Orchestrator.GKE)
_ALL_BUT_RAY = (Orchestrator.NONE, Orchestrator.SLURM, Orchestrator.GKE)


def _setting(
    description: str,
    example: str,
    default: Any = None,
    *,
    only_with: tuple[Orchestrator, ...] = (),
    **more: Any,
) -> Any:
    """A field: its description, a valid value, its default, and the orchestrators it is for.

    `more`: `default_words`; and `of_program`, whether nothing in the cloud depends on it.
    """
    extra = {"only_with": list(map(str, only_with)), "of_program": False, **more}
    of_default = {"default_factory" if isinstance(default, Derived) else "default": default}
    return Field(description=description, examples=[example], json_schema_extra=extra, **of_default)


_for_program = partial(_setting, of_program=True)
_for_idle = partial(_setting, only_with=(Orchestrator.NONE, Orchestrator.SLURM))
_for_gke = partial(_setting, only_with=_GKE)
_for_ray = partial(_setting, only_with=(Orchestrator.RAY,))
_for_vms = partial(_setting, only_with=(Orchestrator.NONE, Orchestrator.RAY, Orchestrator.SLURM))


def _option(
    form: str, example: str, default: Any = None, *, only_with: tuple[Orchestrator, ...] = ()
) -> Any:
    """A field that an option of an action sets, and no variable: "Test --nodes"."""
    field = _setting("", example, default, only_with=only_with)
    field.json_schema_extra["option"] = form
    return field


class Settings(BaseSettings):
    """The settings of one run: effective values, with every default resolved.

    `model_fields_set` has the fields that the user set. Durations are whole seconds. `None` means
    unset, without a default. `texts`: field name -> the text of its value. The process environment
    is not read here.

    Raises:
        pydantic.ValidationError: A text is invalid. `intake.load` turns this into messages, for all
            fields at once.
    """

    # Defaults are values already; only texts go through the parsers.
    model_config = SettingsConfigDict(frozen=True, extra="forbid", validate_default=False)

    _places: Choice = PrivateAttr()
    _given: Mapping[str, str] = PrivateAttr()
    _way: Way | None = PrivateAttr()

    def __init__(self, texts: Mapping[str, str], way: Way | None = None) -> None:
        # Of several zones or ways, what follows from one follows from the first.
        asked, way = candidates.in_way(job_options.with_them(texts), way)
        found = candidates.of(asked, type(self).model_fields["vm_type"].default)
        read: dict[str, Any] = {**asked, **({"zone": found.zones[0]} if found else {})}
        super().__init__(**read)
        self._given, self._way = texts, way
        if found is not None:
            self._places = found

    @property
    def is_gke(self) -> bool:
        """Whether a GKE cluster is asked for, and no group of VMs."""
        return self.orchestrator_type is Orchestrator.GKE

    @property
    def is_ray(self) -> bool:
        """Whether Ray is to run on the VMs."""
        return self.orchestrator_type is Orchestrator.RAY

    @property
    def is_slurm(self) -> bool:
        """Whether Slurm is to run on the VMs."""
        return self.orchestrator_type is Orchestrator.SLURM

    @property
    def kind_words(self) -> str:
        """The kind of cluster, as an env.list asks for it."""
        return asking_for(self.orchestrator_type)

    def takes(self, name: str) -> bool:
        """Whether a setting means something for this kind of cluster."""
        return is_for(name, self.orchestrator_type)

    @property
    def places(self) -> Choice:
        """The zones that ZONE names; `zone` is the first of them."""
        return self._places

    @property
    def way(self) -> Way | None:
        """The way of CAPACITY that these settings ask for; None where it is not set."""
        return self._way

    @property
    def given(self) -> Collection[str]:
        """The fields that the user set; `model_fields_set` has also what asks for the way."""
        return self._given.keys()

    @property
    def sites(self) -> tuple[Site, ...]:
        """Where and how machines may be got, in order; empty where that leaves no choice."""
        ways = self.capacity or (None,)
        found = tuple(Site(zone, way) for way in ways for zone in self.places.zones)
        return found if len(found) > 1 or self.places.is_several else ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """The other projects in which MAKE_FIREWALL makes rules, sorted."""
        named = (self.network, self.subnetwork, *(self.gpu_subnetworks or ()))
        found = set(owners(named)) - {self.project_id} if self.make_firewall else ()
        return tuple(sorted(found))

    def by(self, way: Way | None) -> Self:
        """The same settings, asking for another way of CAPACITY; None for no other."""
        return type(self)(self._given, way) if way not in {None, self._way} else self

    def but(self, **texts: str) -> Self:
        """The same settings with other texts of some fields."""
        return type(self)({**self._given, **texts}, self._way)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        *others: PydanticBaseSettingsSource,
        **more: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Use only the texts that were passed: no environment, no files."""
        del settings_cls, others, more
        return (init_settings,)

    # --- Mandatory
    project_id: values.ProjectId = _setting(
        "The Google Cloud project in which everything is created, and which is billed for it.",
        "my-project",
        PydanticUndefined,
    )
    name_prefix: values.NamePrefix = _setting(
        "The prefix of all resource names, which identifies the cluster: another prefix is another"
        " cluster.",
        "my-cluster",
        PydanticUndefined,
    )
    zone: values.Zones = _setting(
        "The zone of the machines, which must offer their GPUs; or several, of which Create takes"
        " the first that has all machines: in order (`us-central1-a,us-east4-b`), or by what"
        " Google says of its capacity (Spot, flex start) and by price those that a pattern fits"
        " (`us-central1-*`) or all (`any`), or by price alone (`cheapest`); on GKE of one region.",
        "us-central1-a",
        PydanticUndefined,
    )

    # --- The run
    action: values.ActionWord | None = _for_program(
        "The action to run, in upper or lower case; an action on the command line overrides it.",
        "Create",
    )
    region: values.Region = _setting(
        "The region of networks, cluster and bucket; it must contain the zone.",
        "us-central1",
        derived.REGION,
    )
    terraform_gcs_path: values.GcsPath | None = _setting(
        "Where to store the state, as `gs://bucket[/folder]`, in a folder"
        " `<NAME_PREFIX>-deployment`; a bucket that you set here must exist.",
        "gs://my-bucket/clusters",
        derived.STATE_PATH,
    )
    capacity_timeout: values.Seconds = _for_program(
        "How long Create waits for capacity; after that it ends with exit code 75, everything is"
        " kept, and another Create continues to wait.",
        "1h",
        1800,
        default_words="`30m`",
    )
    protect: values.Switch = _for_program(
        "With `yes`, here or at the last Create, Destroy deletes the deployment only with `--yes`.",
        "yes",
        False,
    )
    prices: values.PriceWord = _for_program(
        "The prices that the cost is estimated from: `list` is the dated list that comes with the"
        " program, `live` Google's Cloud Billing Catalog, kept for a week, and `off` none.",
        "live",
        PriceList.LIST,
    )
    max_hourly_cost: values.Dollars | None = _for_program(
        "The most that the cluster may cost, in USD per hour, with all machines that can come;"
        " Create, Plan and Validate end with exit code 2 if it is more, or if a price is unknown.",
        "100",
    )
    max_cost: values.Dollars | None = _for_program(
        "The most that the cluster may cost in all, in USD, if each machine comes once and Destroy"
        " follows the last; without MAX_RUN_DURATION, VMs get the longest one that fits.",
        "500",
    )
    ask_above: values.Dollars = _for_program(
        "Create asks on a terminal before the cluster costs so many USD per hour more than at the"
        " last Create, and Run before nodes for so many come for its job.",
        "50",
        10.0,
    )
    team_defaults: values.FilePlace | None = _setting(
        "A TOML file of your platform team with defaults, locks and limits of settings, a path or"
        " `gs://bucket/object`.",
        "gs://my-team/aiinfra.toml",
    )
    notify: values.NotifyUrl | None = _for_program(
        "An https URL that is told what a run comes to, for who does not look at the terminal:"
        " Slack's incoming webhook, or what takes JSON; it is a secret, shown and kept nowhere.",
        "https://notify.example.com/gpu",
    )
    skip_checks: values.Checks | None = _for_program(
        "Names of online checks to skip, separated by commas.", "quota,image"
    )

    # --- Machines
    orchestrator_type: values.OrchestratorWord = _setting(
        "`none` creates a group of VMs, `ray` one with a Ray cluster on it, `slurm` one with a"
        " Slurm cluster on it, `gke` a GKE cluster with GPU node pools.",
        "none",
        Orchestrator.NONE,
    )
    instance_count: values.Count = _setting(
        "The number of VMs in the group, or of nodes in each GKE node pool.", "4", 1
    )
    vm_type: values.MachineTypeName = _setting(
        "The machine type; except for N1, it determines the number and type of the GPUs.",
        "a2-highgpu-2g",
        "a2-highgpu-2g",
    )
    gpu_count: values.Gpus | None = _setting(
        "The number of GPUs of each machine: required for N1, otherwise it must be the number that"
        " the machine type has.",
        "2",
        derived.GPU_COUNT,
    )
    accelerator_type: values.AcceleratorName | None = _setting(
        "The GPU type: required for N1, otherwise it must be the one that the machine type has.",
        "nvidia-tesla-a100",
        derived.ACCELERATOR_TYPE,
    )

    # --- Image and disk
    image_name: values.ImageName | None = _for_vms(
        "A specific image, so that new VMs do not change; not together with IMAGE_FAMILY_NAME.",
        "my-image-20260101",
    )
    image_family_name: values.FamilyName | None = _for_vms(
        "Use the newest image of this family; if neither is set, the newest supported image for"
        " `VM_TYPE` is looked up online, and Create and Plan say which; V100, P100 and P4 need an"
        " image that is named.",
        "common-cu129-ubuntu-2404-nvidia-580",
        derived.IMAGE_FAMILY,
    )
    image_project: values.ProjectId = _for_vms(
        "The project of the image; alone, it is where the newest supported image is looked up.",
        "deeplearning-platform-release",
        derived.IMAGE_PROJECT,
    )
    disk_size_gb: values.DiskSize = _setting(
        "The size of each machine's boot disk in GiB, 10 to 65536 and at least that of the image.",
        "500",
        derived.DISK_SIZE,
    )
    disk_type: values.DiskTypeWord = _setting(
        "The type of the boot disks: pd-ssd, pd-standard, pd-balanced, pd-extreme or"
        " hyperdisk-balanced, if the machine family supports it.",
        "pd-ssd",
        derived.DISK_TYPE,
    )

    # --- Capacity
    capacity: values.Ways | None = _setting(
        "Ways to get the machines, in the order in which they are tried: reservation, flex_start,"
        " spot, on_demand; each in all zones of `ZONE` before the next, in place of `ENABLE_SPOT`"
        " and `ENABLE_FLEX_START`; reservation is that of `RESERVATION_NAME`.",
        "flex_start,spot",
    )
    enable_flex_start: values.Switch = _setting(
        "Wait in Google's queue (DWS flex start) for machines that run for a limited time.",
        "yes",
        False,
    )
    enable_queued_provisioning: values.Switch = _for_gke(
        "Nodes are created only when a job needs them, all at once, through Kueue.",
        "yes",
        False,
    )
    max_run_duration: values.RunSeconds | None = _setting(
        "Google deletes each machine after this time: at most 7d, and at least 10m for VM groups.",
        "12h",
        derived.MAX_RUN,
    )
    idle_timeout: values.IdleSeconds | None = _for_idle(
        "VMs power themselves off once all of them were idle for so long, at least 10m: no job and"
        " no STARTUP_COMMAND ran, no GPU worked, nobody was logged in; Create starts them again.",
        "2h",
    )
    enable_spot: values.Switch = _setting(
        "Spot VMs: cheaper, but Google may preempt them at any time; not with flex start, queued"
        " provisioning or a reservation.",
        "yes",
        False,
    )
    reservation_name: values.ReservationName | None = _setting(
        "Use the machines of this reservation, or of one of its blocks or sub-blocks; in another"
        " project, `projects/P/reservations/R`; not with flex start, queued provisioning or spot.",
        "my-reservation",
    )
    enable_compact_placement: values.Switch = _setting(
        "Place the machines close together; not with queued provisioning, and with flex start only"
        " for A3 Ultra, A4 and H4D.",
        "yes",
        False,
    )

    # --- Network and identity
    network_config: values.NetworkWord = _setting(
        "`default_network` uses the project's default network, `new_network` creates one,"
        " `multi_nic_network` creates those that the GPUs of `VM_TYPE` need, or 5, and `existing`"
        " uses `NETWORK` and `SUBNETWORK` and makes nothing in them; a GKE cluster takes `existing`"
        " alone, and else gets the networks that it needs.",
        "new_network",
        NetworkConfig.DEFAULT,
    )
    network: values.NetworkName | None = _setting(
        "With `NETWORK_CONFIG=existing`, the network of the machines: its name, or for a Shared VPC"
        " its path with the host project.",
        "projects/my-host/global/networks/my-vpc",
    )
    subnetwork: values.SubnetworkName | None = _setting(
        "With `NETWORK_CONFIG=existing`, the subnetwork of the machines: its name, which is looked"
        " for in the project of `NETWORK` and the region of `ZONE`, or its path.",
        "projects/my-host/regions/us-central1/subnetworks/gpu-vms",
    )
    gpu_subnetworks: values.Subnetworks | None = _setting(
        "With `NETWORK_CONFIG=existing`, the subnetworks of the second interface and those after"
        " it, which the GPUs of `VM_TYPE` use, in order; names are of the project and region of"
        " `SUBNETWORK`, and `gpu-{0..7}` stands for eight; for GKE nodes in `PROJECT_ID` alone.",
        "gpu-{0..7}",
    )
    make_firewall: values.Switch = _setting(
        "With `NETWORK_CONFIG=existing`, make the firewall rules that the machines need in the"
        " network, also in a host project, and remove them with the machines; who runs Create needs"
        " the right to.",
        "yes",
        False,
    )
    network_range: values.Cidr | None = _setting(
        "The IP range that a new network, and those of the GPUs, get their ranges from; if unset,"
        " 10.0.0.0/12.",
        "10.64.0.0/22",
    )
    gke_pods_range: values.SecondaryRange | None = _for_gke(
        "The IP range of pods, if unset 10.16.0.0/12, or with `NETWORK_CONFIG=existing` the name"
        " of the secondary range of `SUBNETWORK`; each node takes twice `GKE_MAX_PODS_PER_NODE`"
        " addresses of it, rounded up to a power of 2.",
        "pods",
    )
    gke_services_range: values.SecondaryRange | None = _for_gke(
        "The IP range of Kubernetes Services, if unset 10.32.0.0/20; with"
        " `NETWORK_CONFIG=existing`, the name of the secondary range of `SUBNETWORK`.",
        "services",
    )
    gke_max_pods_per_node: values.PodsPerNode | None = _for_gke(
        "The most pods of each node, 8 to 110, system pods included; if unset, new pools have 110.",
        "32",
    )
    enable_external_ip: values.Switch = _for_vms(
        "Give the machines external IP addresses; without them, they use Cloud NAT for outgoing"
        " connections, and you connect with ssh through IAP.",
        "no",
        derived.EXTERNAL_IP,
    )
    service_account: values.ServiceAccount = _setting(
        "The service account of the machines: `dedicated` creates one with the least roles,"
        " `default` uses the Compute Engine default service account, an email address uses an"
        " existing one.",
        "dedicated",
        "dedicated",
    )
    impersonate: values.Account | None = _setting(
        "The service account as which this program and Terraform do all they do, in place of whose"
        " credentials are found; these need the role Service Account Token Creator on it.",
        "builder@my-project.iam.gserviceaccount.com",
    )

    kms_key: values.KmsKey | None = _setting(
        "The key of Cloud KMS for boot disks, Filestore shares, GKE's secrets and the state bucket,"
        " if that is made; Google's service agents need a role on it; if unset, Google's own keys.",
        "projects/my-keys/locations/us-central1/keyRings/ml/cryptoKeys/gpu",
    )

    # --- The way out
    https_proxy: values.ProxyUrl | None = _setting(
        "The proxy, without a password, through which this program, Terraform and the VMs go out;"
        " the nodes of GKE do not.",
        "http://proxy.example.com:3128",
    )
    no_proxy: values.Around | None = _setting(
        "Hosts, domains and IP ranges that are reached without `HTTPS_PROXY`, separated by commas;"
        " the metadata server is always one of them.",
        ".example.com,10.0.0.0/8",
    )
    ca_bundle: values.AbsolutePath | None = _setting(
        "A file with certificates, as PEM, that this program, Terraform and the VMs trust beside"
        " the public ones: those of a proxy that reads TLS, or of mirrors.",
        "/usr/aiinfra/copy/company.pem",
    )
    apt_mirror: values.MirrorUrl | None = _for_vms(
        "Where VMs get the packages of Ubuntu, Debian and NVIDIA instead:"
        " `<APT_MIRROR>/<the host that has them>/<path>`; those of Google come from Google.",
        "https://mirror.example.com/apt",
    )
    pip_index: values.IndexUrl | None = _for_ray(
        "The index of Python packages from which VMs install Ray, instead of PyPI.",
        "https://us-python.pkg.dev/my-project/pypi/simple",
    )
    image_mirror: values.ImageMirrors | None = _setting(
        "Where the tool's own container images are instead: one place for all, or"
        " `<registry>=<place>,...`; each keeps its path below it, and its digest.",
        "us-docker.pkg.dev/my-project/mirror",
    )

    # --- On the VMs
    metadata: Metadata = _for_vms(
        "Metadata of the VMs; your keys override the tool's defaults, but keys that the tool"
        " itself depends on are refused.",
        '{ key1 = "val", key2 = "val2" }',
        {},
    )
    labels: Labels = _setting(
        "Labels for all resources that support labels, in addition to the tool's own"
        " `aiinfra-cluster`.",
        '{ team = "research", cost-center = "42" }',
        {},
    )
    startup_command: values.ShellLine | None = _for_vms(
        "One line of shell that runs at the end of each VM's first boot; it is used verbatim,"
        " including quotes.",
        "python3 /usr/aiinfra/copy/train.py",
    )
    startup_restart: values.RestartWord = _for_vms(
        "When STARTUP_COMMAND is begun again: `never`, so that it runs at most once in the life of"
        " a VM; `on-failure`, when it fails or a reboot cuts it off, with pauses that grow to five"
        " minutes; `always`, when it succeeds too, and at each boot.",
        "on-failure",
        Restart.NEVER,
    )
    secrets: Secrets | None = _setting(
        "Secrets as `NAME=projects/<project>/secrets/<secret>[:<version>],...`, which"
        " STARTUP_COMMAND and jobs, on GKE the examples too, find in their environment; each VM or"
        " pod reads them from Secret Manager itself, and an account that is made gets access to"
        " exactly those.",
        "HF_TOKEN=projects/my-project/secrets/hf-token",
    )
    vm_localfile_dest_path: values.AbsolutePath = _for_vms(
        "The folder on every VM for the files mounted at /usr/aiinfra/copy in the container.",
        "/usr/aiinfra/copy",
        "/usr/aiinfra/copy",
    )
    gcs_mount_list: Mounts | None = _setting(
        "Buckets to mount on every machine, as `<bucket>:</mount/path>,...`.",
        "my-data:/mnt/data,my-models:/mnt/models",
    )
    gcs_cache_gb: CacheSize | None = _setting(
        "Keep what is read from the mounted buckets on each machine's Local SSDs, at most so many"
        " GiB for each mount; large files then come in parallel pieces.",
        "1000",
    )
    gcs_options: BucketOptions | None = _setting(
        "More options of Cloud Storage FUSE for all mounted buckets, as `<name>=<value>,...`; they"
        " win over the tool's own; with `ro`, the account that mounts them can only read them.",
        "metadata-cache-ttl-secs=600,dir-mode=755",
    )
    nfs_fileshare_list: Shares | None = _setting(
        "Filestore shares to create and mount, as `</mount/path>:<TIER>[:<GiB>],...`; they are"
        " deleted with the cluster.",
        "/mnt/nfs:BASIC_SSD:2560",
    )
    enable_node_ssh: values.Switch = _for_vms(
        "Let the VMs reach each other by ssh as the user `aiinfra`, for mpirun and the like; each"
        " VM makes a key of its own.",
        "yes",
        True,
    )
    enable_notebook: values.Switch = _for_vms(
        "Run Jupyter on the VMs, reached through ssh; Create prints how.",
        "yes",
        True,
    )
    show_proxy_url: values.Switch = _for_vms(
        "Create waits for the notebooks' proxy URLs and prints them; only a `SERVICE_ACCOUNT` of"
        " your own that may change the VMs' metadata can have them.",
        "yes",
        True,
        of_program=True,
    )
    disable_ops_agent: values.Switch = _for_vms(
        "Do not install the Ops Agent; then there are no GPU metrics.",
        "true",
        False,
    )
    secure_boot: values.Switch = _for_vms(
        "Start the VMs with Secure Boot, which loads signed drivers alone: with an image of your"
        " own, or an accelerator image of Google's.",
        "yes",
        False,
    )
    os_updates: values.Switch = _for_vms(
        "Let the VMs install the updates of their image by its own timers, but never while"
        " STARTUP_COMMAND or a job runs; `no` for never.",
        "no",
        True,
    )
    ray_version: values.RayVersion = _for_ray(
        "The version of Ray to install; programs must use the same version.",
        "2.60.0",
        "2.60.0",
    )

    # --- GKE
    gke_version: values.GkeVersion | None = _for_gke(
        "The version of the cluster, or a prefix of it; if unset, the channel's default version at"
        " creation, which a later Create does not change.",
        "1.35.",
    )
    gke_release_channel: values.ChannelWord = _for_gke(
        "How fast GKE upgrades the cluster: RAPID, REGULAR, STABLE, EXTENDED or UNSPECIFIED.",
        "REGULAR",
        ReleaseChannel.REGULAR,
    )
    gke_maintenance: Maintenance = _for_gke(
        "When GKE may upgrade nodes automatically: `hold` for not before the version's end of"
        " support, so that no training is cut off, or a weekly window in UTC; nodes of flex start"
        " and queues are held in any case.",
        "Sat,Sun 02:00-08:00",
        None,
        default_words="`hold`",
    )
    gke_node_pool_count: values.PoolCount = _for_gke(
        "The number of equal GPU node pools, 1 to 50.", "1", 1
    )
    gke_min_node_count: values.Nodes | None = _for_gke(
        "The minimum number of nodes of each pool with autoscaling; with neither limit, each pool"
        " has INSTANCE_COUNT nodes.",
        "0",
        derived.MIN_NODES,
    )
    gke_max_node_count: values.MostNodes | None = _for_gke(
        "The maximum number of nodes of each pool with autoscaling, up to 1000.",
        "4",
        derived.MAX_NODES,
    )
    gke_node_pools: NodePools | None = _for_gke(
        "Different GPU node pools, as `name=a,vm_type=...;name=b,...`, instead of VM_TYPE,"
        " GPU_COUNT, ACCELERATOR_TYPE and GKE_NODE_POOL_COUNT.",
        "name=a100,vm_type=a2-highgpu-1g,max=4;name=l4,vm_type=g2-standard-24,count=2",
    )
    system_node_pool: TheSystemPool = _for_gke(
        "The node pool for system pods, as `vm_type=...,min=...,max=...,disk_size_gb=...,spot=...,"
        "zone=...`: from min to max nodes, in a zone of the same region, that of `ZONE` if none is"
        " named; with spot=yes cheaper ones, which Google may take back.",
        "vm_type=e2-standard-8,max=5",
        SystemPool(),
        default_words="`vm_type=e2-standard-4,min=1,max=3,disk_size_gb=100,spot=no`",
    )
    authorized_cidr: values.Networks | None = _for_gke(
        "CIDR blocks that may access the cluster's IP endpoint; if unset, the cluster is only"
        " accessible at its DNS endpoint, with IAM.",
        "203.0.113.0/24",
    )
    gpu_driver_version: values.DriverWord = _for_gke(
        "The GPU driver that GKE installs: DEFAULT or LATEST.",
        "DEFAULT",
        DriverVersion.DEFAULT,
    )
    enable_kueue: values.Switch = _for_gke(
        "Install Kueue with a queue for the GPUs of all pools, so that jobs wait for room, start"
        " whole and go by priority; with `no`, a queue that is there already stays.",
        "no",
        True,
    )
    kueue_queues: Queues | None = _for_gke(
        "Queues with a share of the GPUs each, as `<queue>:<GPUs>,...`: what one leaves idle others"
        " borrow, and give back; the rest is the share of `dws-local-queue`.",
        "team-a:8,team-b:8",
    )
    kueue_gpu_quota: values.Count | None = _for_gke(
        "The number of GPUs that jobs in Kueue's queue can use at the same time.",
        "16",
        derived.GPU_QUOTA,
    )
    enable_ray_operator: values.Switch = _for_gke(
        "Enable GKE's Ray operator add-on, with RayCluster and RayJob examples.",
        "yes",
        False,
    )
    # --- Test's own
    test_nodes: values.Count = _option("Test --nodes", "2", derived.TEST_NODES, only_with=_GKE)
    test_pool: values.PoolName | None = _option("Test --pool", "nodepool-1", only_with=_GKE)
    test_cordon: values.Switch = _option("Test --cordon", "yes", False, only_with=_GKE)

    # --- Jobs
    job_options: JobOptions | None = _for_program(
        "Options that each Run has, those of its command line before them: `--name`, `--nodes`,"
        " `--gpus`, `--array`, `--time`, `--restarts`, `--restart-on`, `--setup`, `--wait`,"
        " `--image`, and on GKE `--machine`, `--queue` and `--priority`.",
        "--nodes 4 --time 2h",
    )
    job_command: values.ShellLine | None = _for_program(
        "One line of shell that Run runs if its command line has no command after `--`; it is used"
        " verbatim, including quotes.",
        "torchrun train.py --epochs 3",
    )
    job_env: Environment = _for_program(
        "More variables in the environment of a job; for values that nobody is to see, SECRETS.",
        '{ WANDB_MODE = "offline" }',
        {},
    )

    # --- Run's own, which JOB_OPTIONS may have as well
    job_name: values.JobName | None = _option("Run --name", "train")
    job_nodes: values.Count | None = _option("Run --nodes", "2", only_with=_ALL_BUT_RAY)
    job_gpus: values.Count | None = _option("Run --gpus", "1", only_with=_IN_PARTS)
    job_array: ArrayText | None = _option("Run --array", "0-63", only_with=_IN_PARTS)
    job_time: values.Seconds | None = _option("Run --time", "12h")
    job_restarts: values.Nodes = _option("Run --restarts", "3", 0)
    job_restart_on: values.JobRestartWord | None = _option("Run --restart-on", "any")
    job_setup: values.ShellLine | None = _option(
        "Run --setup", "pip install -r requirements.txt", only_with=_ALL_BUT_RAY
    )
    job_wait: values.Seconds | None = _option("Run --wait", "12h")
    job_image: values.Image | None = _option(
        "Run --image", "nvcr.io/nvidia/pytorch:25.01-py3", only_with=(Orchestrator.NONE, *_GKE)
    )
    job_machine: values.MachineOrGpu | None = _option(
        "Run --machine", "a3-highgpu-8g", only_with=_GKE
    )
    job_queue: QueueName | None = _option("Run --queue", "team-a", only_with=_GKE)
    job_priority: values.PriorityWord | None = _option("Run --priority", "high", only_with=_GKE)

    # --- Those of Logs
    log_rank: values.Rank = _option("Logs --rank", "all", 0)
    log_tail: values.Count | None = _option("Logs --tail", "20")

    # --- That of Fetch, and those of Ssh
    fetch_rank: values.Nodes = _option("Fetch --rank", "3", 0)
    ssh_rank: values.Nodes = _option("Ssh --rank", "3", 0)
    ssh_forward: values.Port | None = _option("Ssh --forward", "6006")


def _extra(name: str) -> dict[str, Any]:
    """What `_setting` says of a field beside its description."""
    extra: dict[str, Any] = Settings.model_fields[name].json_schema_extra  # type: ignore[assignment]  # as `_setting` makes it
    return extra


def _form(name: str) -> str:
    return str(_extra(name).get("option", ""))


OPTIONS: Final[Mapping[str, str]] = {
    form: name for name in Settings.model_fields if (form := _form(name))
}
"""An action with its option, such as "Test --nodes" -> the field that it sets."""
OF_PROGRAM: Final = frozenset(it for it in Settings.model_fields if _extra(it)["of_program"])
"""The fields on which nothing in the cloud depends."""
BY_VARIABLES: Final = tuple(it for it in Settings.model_fields if it not in OPTIONS.values())
"""The fields that variables set: the settings."""


def option_of(name: str) -> str:
    """The option that sets a field; "" where a variable does."""
    return _form(name).rpartition(" ")[2] if name in Settings.model_fields else ""


def kinds_of(name: str) -> list[str]:
    """The orchestrators with which a field means something; empty for all."""
    return list(_extra(name)["only_with"])


def audience_of(name: str) -> str:
    """Which clusters a field is for, in words; "" for all."""
    kinds = kinds_of(name)
    is_vms = Orchestrator.NONE in kinds and Orchestrator.GKE not in kinds
    return "VMs" if is_vms else ", ".join(kinds)


def kind_in(texts: Mapping[str, str]) -> str:
    """The kind of cluster that texts of fields ask for."""
    return texts.get("orchestrator_type", Orchestrator.NONE).lower()


def is_for(name: str, kind: str) -> bool:
    """Whether a field means something with an orchestrator."""
    return not kinds_of(name) or kind in kinds_of(name)


def default_words_of(name: str) -> str:
    """The description of a field's default."""
    about = Settings.model_fields[name]
    default = about.default_factory if about.default is PydanticUndefined else about.default
    return str(_extra(name).get("default_words") or derived.words_of(default))


def example_of(name: str) -> str:
    """A valid value of the field."""
    examples = Settings.model_fields[name].examples
    return str(examples[0]) if examples else ""
