"""The codes by which programs tell results apart: of runs, and of their problems and notes."""

from __future__ import annotations

import enum
from typing import Self


class ExitCode(enum.IntEnum):
    """The program's exit codes; docs/reference/command-line.md has a table of the descriptions."""

    description: str

    def __new__(cls, value: int, description: str) -> Self:
        """Store the description with the number."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.description = description
        return member

    DONE = 0, "done"
    UNEXPECTED = 1, "unexpected: a bug in this program"
    USAGE = 2, "command line or settings"
    CREDENTIALS = 3, "no usable Google credentials"
    CHECK = 4, "an online check failed or could not be made; nothing was changed"
    STATE = 5, "state: bucket, lock, or a state of another kind or owner"
    TERRAFORM = 6, "Terraform failed, or a request to Google beside it"
    CAPACITY = 7, "no machines: stock-out, quota, a failed request, or a wait that was given up"
    CLUSTER = 8, "part of the cluster failed, was lost, or could not be removed"
    WAITING = 75, "still waiting for capacity; everything is kept"
    INTERRUPTED = 130, "interrupted (SIGINT, Ctrl-C)"
    TERMINATED = 143, "terminated (SIGTERM, docker stop; SIGHUP, a closed terminal)"


class Again(enum.Enum):
    """Whether the same action with the same settings can succeed later.

    `MAY_HELP`: It can, although nobody changes anything: a program may retry after a while.
    `IS_FUTILE`: Somebody has to change something first: settings, rights, quota, code.
    """

    MAY_HELP = True
    IS_FUTILE = False


_USAGE = (ExitCode.USAGE,)
_CHECK = (ExitCode.CHECK,)
_STATE = (ExitCode.STATE,)
_CLUSTER = (ExitCode.CLUSTER,)
# Google refuses at any moment of a run, and the moment decides the exit code.
_GOOGLES = (
    ExitCode.CHECK,
    ExitCode.STATE,
    ExitCode.TERRAFORM,
    ExitCode.CAPACITY,
    ExitCode.CLUSTER,
    ExitCode.WAITING,
)
_BEFORE = (ExitCode.USAGE, ExitCode.CHECK)
_NOTE = ()


class Code(enum.StrEnum):
    """What a problem or note is about: a name that stays, while the words may be improved.

    docs/reference/problems.md is generated from it.
    """

    meaning: str
    remedy: str  # what to do about it
    # The exit codes of runs that fail with it; none if it is only ever a note. A note of a run that
    # succeeds may have any code.
    exits: tuple[ExitCode, ...]
    again: Again  # whether the same action can succeed later

    def __new__(
        cls,
        value: str,
        meaning: str,
        remedy: str,
        exits: tuple[ExitCode, ...],
        again: Again = Again.IS_FUTILE,
    ) -> Self:
        """Store the rest of the row with the name."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        member.remedy = remedy
        member.exits = exits
        member.again = again
        return member

    # ---------------------------------------------------------------- command line and settings
    DISK_FULL = (
        "disk-full",
        "this machine has no room for the files of a run",
        "free space where `what` says, or set TMPDIR",
        (ExitCode.CHECK, ExitCode.TERRAFORM, ExitCode.CLUSTER),
    )
    INVALID_COMMAND_LINE = (
        "invalid-command-line",
        "an action or option is unknown, missing or not for this action; or a job can't begin",
        "write the command line that `fix` shows",
        _USAGE,
    )
    INVALID_ENV_FILE = (
        "invalid-env-file",
        "the env file can't be read, or has a line that is not NAME=value",
        "fix the file",
        _USAGE,
    )
    AMBIGUOUS_ENV_FILE = (
        "ambiguous-env-file",
        "a value may be read differently than it was meant: quotes, or two lines for one setting",
        "write the value once, without quotes",
        _NOTE,
    )
    UNKNOWN_SETTING = (
        "unknown-setting",
        "there is no setting of this name",
        "use the name in `fix`, or remove it",
        _USAGE,
    )
    RETIRED_SETTING = (
        "retired-setting",
        "a setting that is no longer supported, of this tool or its predecessor",
        "use its successor in `fix`, or remove it",
        _USAGE,
    )
    MISSING_SETTING = (
        "missing-setting",
        "a required setting is not set",
        "ask a person for the value",
        _BEFORE,
    )
    INVALID_VALUE = (
        "invalid-value",
        "the value is not one that this setting takes",
        "use the value in `alternatives.settings`, or one that `why` allows",
        _BEFORE,
    )
    CONFLICTING_SETTINGS = (
        "conflicting-settings",
        "two settings contradict each other, or the kind of cluster or machine",
        "apply `alternatives.settings`, or what `fix` says",
        _BEFORE,
    )
    TEAM_RULE = (
        "team-rule",
        "the platform team's file (TEAM_DEFAULTS) does not allow a value, or can't be read",
        "apply what `fix` says, or ask the contact that it names",
        _BEFORE,
    )
    WITHOUT_EFFECT = (
        "without-effect",
        "a setting or option means nothing together with the others",
        "remove it",
        _USAGE,
    )
    NOT_OFFERED = (
        "not-offered",
        "Google does not offer such machines or disks there, or in this way",
        "take a zone of `alternatives.zones`, or apply `alternatives.settings`",
        _BEFORE,
    )
    COST_LIMIT = (
        "cost-limit",
        "the cluster would cost more than MAX_HOURLY_COST",
        "ask a person; with their consent, raise the limit, or ask for less",
        _USAGE,
    )
    PRICE_UNKNOWN = (
        "price-unknown",
        "there is a MAX_HOURLY_COST, and a part of the cluster whose price is unknown",
        "try PRICES=live; or ask a person whether to remove the limit",
        _USAGE,
    )
    INVALID_FOLDER = (
        "invalid-folder",
        "the folder that is copied to the VMs is missing, unreadable or too large",
        "fix the folder",
        _USAGE,
    )
    UNSAFE_ENDPOINT = (
        "unsafe-endpoint",
        "the access token would go to a host that is not Google's, or without encryption",
        "find out who wrote that address; remove the variable that moves Google's",
        (ExitCode.USAGE, ExitCode.CLUSTER),
    )
    MANIFESTS_MISSING = (
        "manifests-missing",
        "this machine lacks a manifest of what a GKE cluster gets, or has another one",
        "run the image, or bring the file that `fix` names",
        (ExitCode.USAGE, ExitCode.CLUSTER),
    )
    REHEARSAL_UNAVAILABLE = (
        "rehearsal-unavailable",
        "the rehearsal is not installed, has no such scenario, or failed to start",
        "install requirements/rehearsal.txt, or name a scenario of the list in `fix`",
        (ExitCode.USAGE, ExitCode.UNEXPECTED),
    )
    APPROVAL_NEEDED = (
        "approval-needed",
        "the action would lose, expose or delete something, and nobody agreed to that",
        "ask a person; with their consent, run the same action with --yes",
        _USAGE,
    )
    DECLINED = (
        "declined",
        "the person at the terminal said no",
        "nothing: it was a decision",
        _USAGE,
    )
    # ---------------------------------------------------------------- credentials
    NO_CREDENTIALS = (
        "no-credentials",
        "no Google credentials were found",
        "give some as `fix` says",
        (ExitCode.CREDENTIALS,),
    )
    CREDENTIALS_REFUSED = (
        "credentials-refused",
        "Google does not accept the credentials: expired, revoked, or limited",
        "renew them as `fix` says",
        (ExitCode.CREDENTIALS,),
    )
    UNREACHABLE = (
        "unreachable",
        "Google could not be reached, or did not answer for a while",
        "run the same action again; if it stays so, look at network and proxy",
        (ExitCode.CREDENTIALS, *_GOOGLES),
        Again.MAY_HELP,
    )
    UNTRUSTED = (
        "untrusted",
        "somebody between this machine and Google answers with a certificate that is not trusted",
        "ask who runs the network for its certificates, and set CA_BUNDLE",
        (ExitCode.CREDENTIALS, *_GOOGLES),
    )
    # ---------------------------------------------------------------- Google's refusals
    GOOGLE_REFUSED = (
        "google-refused",
        "Google refused a request for a reason that this program does not know",
        "read `why`",
        _GOOGLES,
    )
    PROJECT_NOT_FOUND = (
        "project-not-found",
        "the project does not exist, or the credentials may not see it",
        "correct PROJECT_ID, or get access",
        _CHECK,
    )
    BILLING_OFF = (
        "billing-off",
        "the project has no open billing account",
        "ask a person to link one",
        _CHECK,
    )
    API_OFF = (
        "api-off",
        "the project has not enabled an API",
        "enable it with the command in `fix`, then wait a few minutes",
        _GOOGLES,
    )
    PERMISSION_MISSING = (
        "permission-missing",
        "an account lacks permissions",
        "ask an administrator for the role in `fix`",
        _GOOGLES,
    )
    MAY_ONLY_LOOK = (
        "may-only-look",
        "the account may look at the project, and change nothing",
        "plan with it; create with an account that has the role of `Validate --role`",
        _GOOGLES,
    )
    POLICY_FORBIDS = (
        "policy-forbids",
        "an organization policy forbids it",
        "change what it forbids, or ask the organization for an exception",
        _GOOGLES,
    )
    QUOTA_EXCEEDED = (
        "quota-exceeded",
        "the project's quota is too small",
        "ask a person to request an increase; or use fewer machines, or another region",
        _GOOGLES,
    )
    STOCK_OUT = (
        "stock-out",
        "the zone has no such machines available now",
        "run the same action again, or try a zone of `alternatives.zones`",
        _GOOGLES,
        Again.MAY_HELP,
    )
    RESERVATION_FULL = (
        "reservation-full",
        "the reservation has too few machines left, or none yet",
        "wait until others have ended, or ask for fewer machines",
        _GOOGLES,
        Again.MAY_HELP,
    )
    RESERVATION_UNUSABLE = (
        "reservation-unusable",
        "the reservation does not exist, is not shared, or does not fit the machines",
        "use another reservation, or settings that fit it",
        _GOOGLES,
    )
    INCOMPATIBLE_REQUEST = (
        "incompatible-request",
        "parts of the request do not go together",
        "change the settings that `why` names",
        _GOOGLES,
    )
    NO_FREE_ADDRESSES = (
        "no-free-addresses",
        "the subnetwork has no free IP addresses, or its range is taken",
        "use another network or NAME_PREFIX, or fewer machines",
        _GOOGLES,
    )
    RESOURCE_NOT_FOUND = (
        "resource-not-found",
        "something that the settings name does not exist: zone, image, bucket, secret, account",
        "correct the name, or make it",
        _GOOGLES,
    )
    ACCOUNT_GONE = (
        "account-gone",
        "the machines' service account was deleted or disabled; another of its name is no help",
        "bring it back, or replace the machines, by the commands in `fix`",
        (ExitCode.CHECK, ExitCode.CLUSTER),
    )
    IN_USE = (
        "in-use",
        "something can't be changed or deleted as something else uses it",
        "remove or change what uses it, which `fix` names",
        _GOOGLES,
    )
    IMAGE_UNSUITABLE = (
        "image-unsuitable",
        "the image does not fit the machine, or is no longer supported",
        "name another image",
        _BEFORE,
    )
    ZONE_DOWN = (
        "zone-down",
        "Google reports that the zone is down",
        "try another zone, or wait",
        _CHECK,
        Again.MAY_HELP,
    )
    # ---------------------------------------------------------------- state
    BUCKET_MISSING = (
        "bucket-missing",
        "the bucket of the state does not exist",
        "correct TERRAFORM_GCS_PATH, create the bucket, or leave the setting out",
        _STATE,
    )
    BUCKET_UNSAFE = (
        "bucket-unsafe",
        "the bucket of the state is open to others, another project's, or not fit to keep one",
        "fix it with the command in `fix`, or use another bucket",
        _STATE,
    )
    STATE_LOCKED = (
        "state-locked",
        "another run is changing this deployment, or has died elsewhere and left it locked",
        "wait and run the same action again; a person may release `lock_id` with --break-lock",
        _STATE,
        Again.MAY_HELP,
    )
    STALE_LOCK = (
        "stale-lock",
        "a run of this machine was killed and left the deployment locked",
        "run the same action again with --yes, which releases `lock_id`",
        _STATE,
    )
    STATE_FOREIGN = (
        "state-foreign",
        "the state is of another tool, project or kind of cluster, or names what is another's",
        "do what `fix` says: another NAME_PREFIX or TERRAFORM_GCS_PATH, or an older state",
        _STATE,
    )
    STATE_UNREADABLE = (
        "state-unreadable",
        "the state, or a record beside it, can't be read",
        "do what `fix` says; a person should look",
        _STATE,
    )
    STATE_LOST = (
        "state-lost",
        "there is no state, but resources of this deployment live",
        "Create brings them into a new state; Destroy --yes deletes them",
        _STATE,
    )
    NAME_TAKEN = (
        "name-taken",
        "resources with this deployment's names exist, and are not its own",
        "choose another NAME_PREFIX",
        (ExitCode.CHECK, ExitCode.STATE),
    )
    STORAGE_FAILED = (
        "storage-failed",
        "Cloud Storage failed to read or write the state",
        "run the same action again",
        _STATE,
        Again.MAY_HELP,
    )
    NO_CLUSTER = (
        "no-cluster",
        "there is no deployment, or none that a Create has finished",
        "run Create first",
        _STATE,
    )
    NO_JOB = (
        "no-job",
        "there is no job of this name",
        "list the jobs with Jobs",
        _STATE,
    )
    # ---------------------------------------------------------------- Terraform
    TERRAFORM_FAILED = (
        "terraform-failed",
        "Terraform failed for a reason that this program does not know",
        "fix what `why` names, then run the same action again: it continues",
        (ExitCode.TERRAFORM,),
    )
    TERRAFORM_MISSING = (
        "terraform-missing",
        "there is no usable Terraform on this machine",
        "install it",
        (ExitCode.TERRAFORM,),
    )
    NOT_REMOVED = (
        "not-removed",
        "something of the cluster could not be removed, and may be billed",
        "fix what Google names, then run Destroy again",
        _CLUSTER,
    )
    # ---------------------------------------------------------------- capacity
    CAPACITY_REFUSED = (
        "capacity-refused",
        "a request for machines failed without a known reason",
        "run Create again for a new request, or Destroy",
        (ExitCode.CAPACITY,),
        Again.MAY_HELP,
    )
    GAVE_UP = (
        "gave-up",
        "no machines came in time, and nothing waits for them any longer (--destroy-after, Bake)",
        "run the same action again, which asks for them again; or without --destroy-after, to wait",
        (ExitCode.CAPACITY,),
        Again.MAY_HELP,
    )
    WAITING = (
        "waiting",
        "the capacity has not come yet; everything is kept, and requests stay queued",
        "run the same action again to keep waiting, or Destroy to give up",
        (ExitCode.CHECK, ExitCode.WAITING),
        Again.MAY_HELP,
    )
    # ---------------------------------------------------------------- the cluster
    STARTUP_FAILED = (
        "startup-failed",
        "a step of a VM's start-up failed",
        "read `why`; the VM is kept, its serial port 1 has the end of the output",
        _CLUSTER,
    )
    IMAGE_NOT_MADE = (
        "image-not-made",
        "Bake made no image: the VM could not be sealed, or Google could not make one of its disk",
        "read `why`, then run Bake again; there is nothing left of the VM",
        _CLUSTER,
    )
    TEST_FAILED = (
        "test-failed",
        "Test found machines, or a network between them, that are not what they should be",
        "replace the machines that `fix` names; docs/how-to/test.md has what Test does",
        _CLUSTER,
    )
    OUT_OF_DATE = (
        "out-of-date",
        "machines run that were made before the settings changed",
        "run Create --replace-vms to replace them",
        _CLUSTER,
    )
    MACHINES_GONE = (
        "machines-gone",
        "machines or parts of the cluster are gone: deleted, preempted, or at their end",
        "run Create to get new ones",
        _CLUSTER,
    )
    NOT_IN_ORDER = (
        "not-in-order",
        "Google reports that a part of the cluster is not in order",
        "run Status, then Create, which repairs it",
        _CLUSTER,
    )
    NOT_IN_TIME = (
        "not-in-time",
        "something on the cluster did not happen in time; everything is kept",
        "run the same action again",
        _CLUSTER,
        Again.MAY_HELP,
    )
    KUBERNETES_FAILED = (
        "kubernetes-failed",
        "the cluster's Kubernetes refused a request, or has not what it should have",
        "read `why`, then run Create again",
        _CLUSTER,
    )
    JOB_FAILED = (
        "job-failed",
        "a job on the cluster failed, or was cancelled",
        "read `why`, which has the last lines of the machine that failed first; then run it again",
        _CLUSTER,
    )
    NOT_CONFIRMED = (
        "not-confirmed",
        "a request to Google failed after Create had begun, so not all is known of what was made",
        "run Create again: it continues",
        (ExitCode.TERRAFORM, ExitCode.CLUSTER),
        Again.MAY_HELP,
    )
    # ---------------------------------------------------------------- the end
    INTERRUPTED = (
        "interrupted",
        "a signal stopped the run in order; what was created is kept",
        "run the same action again to continue, or Destroy",
        (ExitCode.INTERRUPTED, ExitCode.TERMINATED),
        Again.MAY_HELP,
    )
    UNEXPECTED = (
        "unexpected",
        "a bug of this program",
        "report it with the traceback",
        (ExitCode.UNEXPECTED, ExitCode.TERRAFORM),
    )
    # ---------------------------------------------------------------- notes
    NOTE = (
        "note",
        "something worth knowing that no other code is for",
        "nothing; a person may want to read it",
        _NOTE,
    )
    NEWER_TOOL = (
        "newer-tool",
        "a newer version of this program changed the cluster last",
        "use the image of that version",
        _NOTE,
    )
    NOT_CHECKED = (
        "not-checked",
        "something could not be checked, and may fail later",
        "nothing; or give what `fix` names, to have it checked",
        _NOTE,
    )
    CHOSEN = (
        "chosen",
        "the program has chosen something that no setting names",
        "nothing; or set it yourself",
        _NOTE,
    )
    ENDS_SOON = (
        "ends-soon",
        "machines, a reservation or support for them end at a known time",
        "save what is needed before that",
        _NOTE,
    )
    STILL_RUNNING = (
        "still-running",
        "something is still under way: a start-up command, a change by GKE",
        "look again later, with Status",
        _NOTE,
    )
    STILL_BILLED = (
        "still-billed",
        "something of a cluster that is gone is kept, and is billed",
        "delete it with the command in `fix`, if nobody needs its data",
        (ExitCode.STATE, ExitCode.CLUSTER),
    )
    DEGRADED = (
        "degraded",
        "Google reports capacity as degraded",
        "be ready for machines that fail or do not come",
        _NOTE,
    )
    SLOWER = (
        "slower",
        "the machines can communicate faster than these settings let them",
        "apply `alternatives.settings`",
        _NOTE,
    )
    WITHOUT_GPU = (
        "without-gpu",
        "the machine type has no GPU",
        "nothing if that is meant; else apply what `fix` says",
        _NOTE,
    )
    NO_URL = (
        "no-url",
        "a notebook has no URL yet",
        "use the tunnel whose command is printed",
        _NOTE,
    )
    SECRETS_UNREADABLE = (
        "secrets-unreadable",
        "VMs can't read secrets yet, as their owner has not granted it",
        "let the owner run the commands in `fix`",
        _NOTE,
    )
    NOT_KEPT = (
        "not-kept",
        "something could not be written beside the state, such as the log",
        "nothing; or get the right to write there",
        _NOTE,
    )

    @property
    def is_retryable(self) -> bool:
        """Whether the same action with the same settings can succeed later."""
        return self.again is Again.MAY_HELP
