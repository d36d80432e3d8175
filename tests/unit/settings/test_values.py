"""The rules of single values, and what is said when one is broken."""

import json

import pytest

from provision.catalogue import names
from provision.intake import load
from provision.settings import masking
from tests.unit import table
from tests.unit.conftest import Given


def _each(text: str) -> list[tuple[str, str]]:
    """Of lines with a variable and values between bars, each value with its variable."""
    rows = (it.partition(" ") for it in table.lines(text))
    return [(name, value) for name, _, values in rows for value in values.split(" | ")]


PASSES = _each("""
ACTION create | DESTROY
APT_MIRROR https://mirror.example.com/apt/ | http://10.0.0.5:8081/repository
CA_BUNDLE /etc/company.pem
HTTPS_PROXY http://proxy.example.com:3128 | https://10.0.0.9:443/ | http://proxy
IMAGE_MIRROR us-docker.pkg.dev/p/mirror |
    nvcr.io=mirror.example.com:5000/nvcr,docker.io=mirror/hub,mirror.example.com
NO_PROXY localhost,.example.com,10.0.0.0/8,fd00::1 | 10.1.2.3,
AUTHORIZED_CIDR 203.0.113.0/24, 2001:db8::/32,
CAPACITY_TIMEOUT 1s | 60 | 30m
IDLE_TIMEOUT 600 | 10m
DISK_SIZE_GB 10 | 65536 | 500GB | 500 GiB | 500g | 500Gi | 2TB | 1.5 TB | 64T
GCS_CACHE_GB 1 | 2TB
GCS_MOUNT_LIST my-data:/mnt/data | a.b_c:/x,
GKE_MAINTENANCE hold | Hold | sat,sun 02:00-08:00 | Fri 20:00-08:00 | Mon 0:00-24:00
GCS_OPTIONS ro | --uid=1000,gid=1000 | file_mode=644, dir-mode=0755, | log-severity=OFF
GKE_MAX_PODS_PER_NODE 8 | 110
GKE_PODS_RANGE pods | 10.64.8.0/21
GKE_VERSION 1.33 | 1.33. | 1.33.4 | 1.33.5-gke.1080000
IMAGE_NAME a | my-image-1
IMAGE_PROJECT ubuntu-os-cloud
KUEUE_QUEUES team-a:2 | a:1, b:0,
LABELS a= | a_b-c=1_x-y | équipe=é
METADATA a=ü x | {"A_b-1": "{}"}
NETWORK_CONFIG New_Network
KMS_KEY projects/my-keys/locations/us/keyRings/r/cryptoKeys/k_1 |
    projects/123456789012/locations/us/keyRings/r/cryptoKeys/k |
    projects/example.com:my-keys/locations/global/keyRings/r/cryptoKeys/k
NETWORK_RANGE 10.64.0.0/22 | 100.64.0.0/10 | 240.1.0.0/16
NFS_FILESHARE_LIST /a:BASIC_HDD:1024,/b:high_scale_ssd:10240
PROJECT_ID abcdef | a11111111111111111111111111111
RESERVATION_NAME r | projects/my-pool/reservations/r-1 | r/reservationBlocks/r-block-0001 |
    projects/my-pool/reservations/r/reservationBlocks/b/reservationSubBlocks/s
PIP_INDEX https://us-python.pkg.dev/my-project/pypi/simple/ | https://10.0.0.5:8081/r/pypi/simple
SERVICE_ACCOUNT Default | trainer@my-project.iam.gserviceaccount.com |
    trainer@my-project.example.com.iam.gserviceaccount.com |
    123456789012-compute@developer.gserviceaccount.com | my-project@appspot.gserviceaccount.com
IMPERSONATE builder@my-project.iam.gserviceaccount.com
SKIP_CHECKS quota, image,
TERRAFORM_GCS_PATH gs://bucket | gs://a.b-c_d/folder/more
VM_LOCALFILE_DEST_PATH /a | /usr/x_1/y.z
ZONE us-central1-ai1a | europe-west1-d
""")
FAILS = _each("""
ACTION Creat | create destroy
AUTHORIZED_CIDR 203.0.113.1/24 | example.com
CAPACITY_TIMEOUT 0 | soon | 0m
DISK_SIZE_GB 9 | 65537 | 2PB | 500MB | 0.5GB
DISK_TYPE ssd | local-ssd
GCS_CACHE_GB 0 | yes
GCS_OPTIONS cache-dir=/x | uid | uid=me | dir-mode=999 | ro,ro=false | allow_other
GCS_MOUNT_LIST bucket | bucket: | :/a | bucket:relative | gs://bucket:/a | bu:/a
GKE_MAINTENANCE never | 02:00-08:00 | Sat 02:00-08:00 | Sat,Sun,Mon,Tue 02:00-05:59 | Sab,Sun
    02:00-08:00 | Sat,Sun 2:60-9:00 | Sat,Sun 02:00-24:01
GKE_NODE_POOLS name=a | vm_type=x | name=a,vm_type=x,nodes=3 | name=A,vm_type=x
GKE_NODE_POOL_COUNT 0 | 51
GKE_MAX_PODS_PER_NODE 7 | 111
GKE_PODS_RANGE Pods | 10.64.8.0/33
GKE_VERSION latest | 1 | 2.0
GPU_COUNT 0 | 17 | two
APT_MIRROR mirror.example.com | https://a/?b=c | https://a/$(id)
HTTPS_PROXY proxy:3128 | socks5://proxy:1080 | http://proxy/path | http://proxy:0 |
    http://proxy:99999 | http:// proxy | http://
IMAGE_MIRROR https://mirror | a,b | nvcr.io= | =x/ | nvcr.io/x=y | mirror/Path
NO_PROXY *.example.com | http://a | 10.0.0.0/99 | host:80
NETWORK projects/x;id/global/networks/n
PIP_INDEX us-python.pkg.dev/p/pypi/simple | http://us-python.pkg.dev/my-project/pypi/simple |
    https://a/$(id) | https://a/;id | https://a/`id`
IMAGE_NAME My-Image | a b
INSTANCE_COUNT 0 | -1 | abc | 1.5
KUEUE_QUEUES a | a:x | A:1 | a:1,a:1 | a:-1 | dws-local-queue:1 | a:1:2
LABELS A=b | 1=b | a=B | aiinfra-cluster=x | {
MAX_RUN_DURATION 8d | 0
METADATA a b=c | Startup-Script=x | proxy-mode=x | enable-guest-attributes=FALSE
NETWORK_CONFIG vpc
KMS_KEY k | projects/my-keys/locations/us/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1 |
    projects/x;id>y/locations/us/keyRings/r/cryptoKeys/k |
    projects/$(id)/locations/us/keyRings/r/cryptoKeys/k
NETWORK_RANGE 10.64.0.1/22 | 10.64.0.0 | 8.8.8.0/24 | fd00::/64 | gpus
NFS_FILESHARE_LIST /a | /a:SSD | a:BASIC_SSD | /a:BASIC_SSD:1 | /a:HIGH_SCALE_SSD
ORCHESTRATOR_TYPE slurm-gcp | k8s
PROJECT_ID short | Upper-Case | ends-with- | 123456789 | :abcdef
RESERVATION_NAME My Reservation | reservations/r | projects/p/zones/z/reservations/r |
    r/reservationSubBlocks/s | r/reservationBlocks/ | projects/x;id/reservations/r
SUBNETWORK projects/`id`/regions/us-central1/subnetworks/s
SERVICE_ACCOUNT a$(touch${IFS}x);`id`@p.iam.gserviceaccount.com |
    a;b-c-d@p-r.iam.gserviceaccount.com | -abcdef@my-project.iam.gserviceaccount.com |
    Me@my-project.iam.gserviceaccount.com | me | me@ |
    a b@c.d | ann@example.com | a@xgserviceaccount.com
IMPERSONATE a$(id)bcd@my-project.iam.gserviceaccount.com |
    `id`-abcdef@developer.gserviceaccount.com | dedicated | ann@example.com
SHOW_PROXY_URL nope
TERRAFORM_GCS_PATH bucket | gs:// | gs://b | gs://bucket/ | gs://bucket//x | gs://bu/../x |
    gs://bucket/$(id) | gs://bucket/a;id | gs://bucket/`id`
VM_LOCALFILE_DEST_PATH relative | / | /a/ | /a b | /a/../b | /a"b
VM_TYPE A2-highgpu-2g | a2_highgpu_2g | 2g | ct5lp-hightpu-4t | tpu7x-standard-4t
ZONE us-central1 | us-central1-A | us-central1-aa | bogus | us
""")
FAILS += [
    ("HTTPS_PROXY", "http://" + 60 * "a" + "_b"),
    ("LABELS", "a=" + 64 * "b"),
    ("PROJECT_ID", 31 * "a"),
    ("STARTUP_COMMAND", "a\nb"),
]


@pytest.mark.parametrize(("variable", "value"), PASSES)
def test_a_value_by_the_rule_has_no_problem_of_its_own(
    given: Given, variable: str, value: str
) -> None:
    case = given(**{variable: value})

    told = [problem.what for problem in case.loaded.problems if problem.setting == variable]
    # Rules across settings and features that come later are other tests' matter.
    assert all("only with" in what or "no effect" in what or "asks for" in what for what in told)


@pytest.mark.parametrize(("variable", "value"), FAILS)
def test_a_value_against_the_rule_is_refused_with_value_rule_and_a_remedy_that_passes(
    given: Given, variable: str, value: str
) -> None:
    case = given(**{variable: value})

    problem = next(it for it in case.loaded.problems if it.setting == variable)
    assert case.loaded.settings is None
    assert problem.what.startswith(("'", '"', "***"))
    assert problem.why
    assert problem.fix.startswith(f"{variable}=")
    is_shown = variable.lower() not in masking.PRIVATE
    assert case[variable] == (value if is_shown else masking.MASK)
    name, _, remedy = problem.fix.partition("=")
    if remedy.startswith("<"):  # which of the others is meant is not ours to say
        assert not problem.alternatives.settings
        return
    again = given(**{name: remedy}).loaded.problems
    told = [it.what for it in again if it.setting == variable]
    assert all("no effect" in what or "asks for" in what for what in told), (problem, told)


def test_the_limit_of_the_prefix_follows_from_the_tightest_name(given: Given) -> None:
    limit = names.TIGHTEST.longest_prefix

    assert not given(NAME_PREFIX="a" * limit).loaded.problems
    problem = given(NAME_PREFIX="a" * (limit + 1)).problem("NAME_PREFIX")
    assert f"at most {limit}" in problem.why
    assert names.TIGHTEST.kind in problem.why


MEANT = table.answers(
    """
ZONE=us-central1 -> us-central1-a
ZONE=us-central-1-b -> us-central1-b
REGION=europe-west-4 -> europe-west4
NAME_PREFIX=My_Cluster -> my-cluster
TERRAFORM_GCS_PATH=gs://bucket/a/ -> gs://bucket/a
VM_TYPE=A2-HighGPU-2g -> a2-highgpu-2g
DISK_TYPE=pd-sdd -> pd-ssd
CAPACITY=spot,flex -> spot,flex_start
CAPACITY=dws,preemptible -> flex_start,spot
CAPACITY=calendar -> reservation
ZONE=us-central1-a us-east4-b;us-central1-a -> us-central1-a,us-east4-b
ZONE=US-EAST4-B -> us-east4-b
IMAGE_NAME=projects/my-images/global/images/my-image -> my-image
IMAGE_FAMILY_NAME=projects/my-images/global/images/family/f -> f
GKE_VERSION=v1.33 -> 1.33
GCS_MOUNT_LIST=my-a,gs://my-b:mnt/b/ -> my-a:/mnt/my-a,my-b:/mnt/b
KUEUE_QUEUES=team-a=2; team-b=1 -> team-a:2,team-b:1
PIP_INDEX=http://pypi.corp/simple/ -> https://pypi.corp/simple
HTTPS_PROXY=proxy.corp:8080 -> http://proxy.corp:8080
PIP_INDEX=pypi.corp/simple -> https://pypi.corp/simple
VM_TYPE=A3 Ultra -> a3-ultragpu-8g
VM_TYPE=h200x8 -> a3-ultragpu-8g
VM_TYPE=g2-standard-8, a2-highgpu-1g -> g2-standard-8
VM_TYPE=g2-standard-24 INSTANCE_COUNT=2 -> g2-standard-24 and INSTANCE_COUNT=2, a line each
INSTANCE_COUNT=2.0 -> 2
VM_TYPE=rtx-6000 -> g4-standard-48
RESERVATION_NAME=https://www.googleapis.com/compute/v1/projects/my-pool/zones/us-east4-b/reservations/r
    -> projects/my-pool/reservations/r
LABELS={"2 Team": "ML Research", "b": ""} -> team=ml-research,b=
NFS_FILESHARE_LIST=/a:HIGH_SCALE_SSD -> /a:HIGH_SCALE_SSD:10240
"""
)


@pytest.mark.parametrize("text", MEANT)
def test_the_remedy_is_what_was_meant_where_that_is_clear(given: Given, text: str) -> None:
    variable, _, value = text.partition("=")
    (fix,) = MEANT[text]
    assert given(**{variable: value}).problem(variable).fix == f"{variable}={fix}"


_OF_A_FAMILY = "projects/my-images/global/images/family/f"
_62_LABELS = ",".join(f"l{number}=x" for number in range(62))


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("IMAGE_NAME", _OF_A_FAMILY, "that is IMAGE_FAMILY_NAME=f with IMAGE_PROJECT=my-images"),
        ("ASK_ABOVE", "0", "more than 0"),
        ("INSTANCE_COUNT", "3 # three", "a comment must be on a line of its own"),
        ("INSTANCE_COUNT", "9" * 23, "is out of all bounds"),
        ("ENABLE_SPOT", "yes VM_TYPE=g2-standard-8", "each setting has a line of its own"),
        ("ENABLE_SPOT", "yes PLEASE=now", "is neither yes nor no"),
        ("METADATA", "startup-script=x", "STARTUP_COMMAND"),
        ("METADATA", "AIInfra-config=x", "another name"),
        ("METADATA", f"{'k' * 128}=x", "1 to 127"),
        ("METADATA", "a=" + "x" * 188_417, "184 KiB"),
        ("METADATA", f"a={'x' * 200_000},b={'x' * 200_000}", "400000 bytes"),
        ("LABELS", f"{_62_LABELS},one=more", "63 labels"),
        ("STARTUP_COMMAND", "é" + "x" * 131_071, "131073 bytes"),
        ("STARTUP_COMMAND", "é" + "x" * 131_071, "131072"),
        ("STARTUP_COMMAND", "é" + "x" * 131_071, "--copy"),
        ("GCS_OPTIONS", "metadata-cache-tll-secs=5", "did you mean metadata-cache-ttl-secs?"),
        ("GCS_OPTIONS", "file-cache-max-size-mb=5", "GCS_CACHE_GB turns the cache on"),
        ("GCS_OPTIONS", "allow_other", "every user has access in any case"),
        ("GCS_OPTIONS", "uid=-1", "a whole number, 0 or more"),
    ],
    ids=lambda it: it[:40],
)  # fmt: skip
def test_what_is_wrong_with_a_value_is_said_in_words(
    given: Given, variable: str, value: str, words: str
) -> None:
    problem = given(**{variable: value}).problem(variable)

    assert words in f"{problem.what} {problem.why}"
    if variable == "IMAGE_NAME":  # whose other setting takes it is said, and not done
        assert not problem.alternatives.settings


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LABELS", _62_LABELS),
        ("METADATA", "a=" + "x" * 188_416),
        ("METADATA", f"{'k' * 127}=x"),
        ("METADATA", "aiinfra=x"),
        ("STARTUP_COMMAND", "x" * 131_072),
    ],
    ids=lambda it: it[:40],
)
def test_up_to_its_limit_a_value_passes(given: Given, variable: str, value: str) -> None:
    assert not given(**{variable: value}).loaded.problems


@pytest.mark.parametrize("text", ["$1,000", "1000 USD", "1,000.00 USD"])
def test_an_amount_is_one_however_people_write_it(given: Given, text: str) -> None:
    assert given(MAX_HOURLY_COST=text)["MAX_HOURLY_COST"] == 1000


def test_all_problems_are_reported_at_once_and_none_hides_another() -> None:
    loaded = load(
        {
            "PROJECT_ID": "x",
            "ZONE": "bogus",
            "INSTANCE_COUNT": "abc",
            "VM_TYPE": "n1-standard-8",
            "IMAGE_NAME": "a",
            "IMAGE_FAMILY_NAME": "b",
            "INSTANCE_COUNTS": "3",
            "SETUP_RAY": "yes",
            "GCS_MOUNT_LIST": "x,y",
        }
    )

    assert {problem.setting for problem in loaded.problems} == {
        "PROJECT_ID", "NAME_PREFIX", "ZONE", "INSTANCE_COUNT", "GPU_COUNT", "ACCELERATOR_TYPE",
        "IMAGE_FAMILY_NAME", "INSTANCE_COUNTS", "SETUP_RAY", "GCS_MOUNT_LIST",
    }  # fmt: skip


def test_every_bad_pool_is_reported_with_its_number(given: Given) -> None:
    case = given(ORCHESTRATOR_TYPE="gke", GKE_NODE_POOLS="name=A,vm_type=x;name=b,vm_type=y,max=no")

    told = [it.what for it in case.loaded.problems if it.setting == "GKE_NODE_POOLS"]
    assert any("pool 1, whose name 'A'" in what for what in told)
    assert any("pool 2, whose max 'no'" in what for what in told)


def test_a_secret_is_in_no_problem_and_not_in_what_is_effective(given: Given) -> None:
    case = given(
        METADATA='{ api_token = "hunter2", broken',
        STARTUP_COMMAND="run --password hunter2",
        TERRAFORM_GCS_PATH="gs://me:hunter2@bucket",
    )

    assert "hunter2" not in repr(case.loaded.problems)
    assert "hunter2" not in json.dumps(case.loaded.effective)
    assert case["METADATA"] == "***"


def test_metadata_keeps_its_secrets_for_the_machines_alone(given: Given) -> None:
    case = given(METADATA='{ api_token = "hunter2", colour = "blue" }')

    assert case["METADATA"] == {"api_token": "***", "colour": masking.seal("blue")}
    assert case.loaded.settings is not None
    assert dict(case.loaded.settings.metadata) == {"api_token": "hunter2", "colour": "blue"}
