"""The checks of VPC networks: the default one, the deployment's own, and subnetworks of others.

Those of others are often in a host project: what these credentials may not see there is said to be
unseen, not missing. Each finding says who has to do what.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import names
from provision.codes import Code
from provision.google.api import Service
from provision.google.owner import MARKER
from provision.google.resources import NETWORK, SUBNETWORK
from provision.preflight import firewall
from provision.preflight.check import note, refuse, seen
from provision.spec.networks import Subnetwork
from provision.spec.ranges import OF_GOOGLE
from provision.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.catalogue.fabrics import Network
    from provision.google.api import GoogleApiError
    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import ClusterSpec
    from provision.spec.networks import ExistingNetwork, FirewallRule

_USER: Final = "roles/compute.networkUser"
"""The least of Google's roles with which somebody uses a subnetwork."""
_HOST_AGENT: Final = "roles/container.hostServiceAgentUser"
_USE: Final = "compute.subnetworks.use"
# Google's roles that have it; a role of somebody's own may have it, too.
_USING: Final = frozenset(
    {
        _USER,
        "roles/compute.admin",
        "roles/compute.instanceAdmin.v1",
        "roles/compute.networkAdmin",
        "roles/editor",
        "roles/owner",
    }
)
_SERVICES: Final = "servicenetworking-googleapis-com"


# ------------------------------------------------- the default network, and one that is made


def network(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the default network exists, or that our network has no conflicting ranges."""
    yield from _overlaps(ctx) if ctx.spec.makes_network else _default(ctx)


def _default(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    region = ctx.spec.region
    wanted = {NETWORK: 'network "default"', SUBNETWORK: f'subnetwork "default" in {region}'}
    for row, words in wanted.items():
        path = row.path(project=ctx.project, region=region, name="default")
        if ctx.answers.find(Service.COMPUTE, path) is None:
            yield refuse(
                Code.RESOURCE_NOT_FOUND,
                setting="NETWORK_CONFIG",
                what=f"{ctx.project} has no {words}",
                why="default_network uses the network that Google creates with a project; somebody"
                " deleted it, or an organization policy prevents it",
                fix="NETWORK_CONFIG=new_network",
            )
            return
    own = _Case(ctx, Subnetwork(project=ctx.project, region=region, name="default"))
    found = ctx.answers.find(Service.COMPUTE, own.it.path) or {}
    yield from _way_out(own, found, NETWORK.path(project=ctx.project, name="default"), is_own=True)


def _overlaps(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    made = names.NETWORK.at(ctx.spec.name_prefix, ctx.spec.region)
    made_at = NETWORK.path(project=ctx.project, name=made)
    found = ctx.answers.find(Service.COMPUTE, made_at)
    if found is None or not ctx.is_ours(NETWORK.look, made_at, found):
        return
    own = names.SUBNETWORK.pattern(ctx.spec.name_prefix)
    for link in found.get("subnetworks", []):
        other = ctx.answers.find(Service.COMPUTE, link.partition("/v1/")[2])
        if other is None or own.fullmatch(other["name"]):
            continue
        for one in (other, *other.get("secondaryIpRanges", [])):
            taken = ipaddress.IPv4Network(one["ipCidrRange"])
            for wanted in (ctx.spec.first_range, *ctx.of_kind.ranges):
                if wanted.overlaps(taken):
                    yield refuse(
                        Code.NO_FREE_ADDRESSES,
                        setting="NAME_PREFIX",
                        what=f"the IP range {wanted} is taken in the network {made}",
                        why=f"the subnetwork {other['name']}, which this deployment did not create,"
                        f" has {taken}",
                        fix="delete it with: gcloud compute networks subnets delete"
                        f" {other['name']} --project {ctx.project}, or choose another NAME_PREFIX",
                    )


# ------------------------------------------------------------------ subnetworks of others


@dataclass(frozen=True)
class _Case:
    """A subnetwork that the settings name, and what every check gets."""

    ctx: CheckContext[ClusterSpec]
    it: Subnetwork
    setting: str = "SUBNETWORK"

    @property
    def is_abroad(self) -> bool:
        return self.it.project != self.ctx.project

    @property
    def where(self) -> str:
        """The arguments with which gcloud finds the subnetwork."""
        return f"{self.it.name} --project {self.it.project} --region {self.it.region}"

    def asking(self, command: str, *options: str) -> str:
        """What its administrator has to run, a command on the subnetwork."""
        return (
            f"ask an administrator of {self.it.project} to run:\n"
            f"gcloud compute networks subnets {command} {self.where} {' '.join(options)}"
        )

    def granting(self, member: str) -> str:
        return self.asking("add-iam-policy-binding", f"--member {member}", f"--role {_USER}")

    def found(self) -> tuple[dict[str, Any] | None, GoogleApiError | None, str]:
        """The subnetwork, why it may not be seen, and its range or what to write there."""
        found, refused = seen(lambda: self.ctx.answers.subnetwork(self.it.path))
        return found, refused, found["ipCidrRange"] if found else f"<RANGE OF {self.it.name}>"

    def unseen(self, what: str, error: GoogleApiError, project: str = "") -> Finding:
        """The note that a part could not be checked.

        `project`: whose administrator lets one look; "" for that of the subnetwork's project.
        """
        return note(
            Code.NOT_CHECKED,
            setting=self.setting,
            what=f"could not look at {what}",
            why=error.message,
            fix=f"ask an administrator of {project or self.it.project} for the role Compute Network"
            " Viewer (roles/compute.networkViewer) there, to have it checked",
        )


def existing(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check the subnetworks that the settings name."""
    there = ctx.spec.existing
    if there is None:
        return
    first = _Case(ctx, there.subnetwork)
    if first.is_abroad:
        apart = list(_attached(first))
        yield from apart
        if any(one.stops for one in apart):
            return
    needed: list[FirewallRule] = []
    yield from _first(first, there, needed)
    kinds = [one for one in ctx.spec.gpu_networks for _ in range(one.subnets)]
    for number, (one, kind) in enumerate(zip(there.gpus, kinds, strict=True), start=1):
        yield from _of_gpus(_Case(ctx, one, "GPU_SUBNETWORKS"), number, kind, needed)
    rules = firewall.made if ctx.spec.makes_firewall else firewall.told
    yield from rules(ctx, needed)


def in_the_network(spec: ClusterSpec) -> tuple[str, ...]:
    """What is needed on a subnetwork of a host project, where no role of this project counts."""
    it = spec.existing
    if it is None or it.project == spec.project_id:
        return ()
    return (
        *(f"On the project {one}, roles/compute.securityAdmin;" for one in spec.hosts),
        *(f"On {one.path}, {_USER};" for one in (it.subnetwork, *it.gpus)),
        f"on the project {it.project}, roles/compute.networkViewer, to have it checked.",
    )


def _attached(case: _Case) -> Iterator[Finding]:
    project, host = case.ctx.project, case.it.project
    found, refused = seen(
        lambda: case.ctx.answers.find(Service.COMPUTE, f"projects/{project}/getXpnHost")
    )
    known = (found or {}).get("name")
    if refused is not None:
        yield case.unseen(f"the host project of {project}, whether it is {host}", refused, project)
    elif known != host:
        other = f"attached to {known}" if known else "not attached to any host project"
        yield refuse(
            Code.RESOURCE_NOT_FOUND,
            setting="NETWORK",
            what=f"{project} is {other}, but NETWORK is in {host}",
            why="a project uses the subnetworks of the host project that it is attached to",
            fix="ask an administrator of the organization (Compute Shared VPC Admin) to run:\n"
            f"gcloud compute shared-vpc associated-projects add {project} --host-project {host}",
        )


def _first(case: _Case, there: ExistingNetwork, needed: list[FirewallRule]) -> Iterator[Finding]:
    """Check the subnetwork of the first interface; adds the firewall rules that it needs."""
    found, refused, cidr = case.found()
    pods = f"<RANGE {there.pods}>"
    for one in (found or {}).get("secondaryIpRanges", []):
        pods = one["ipCidrRange"] if one["rangeName"] == there.pods else pods
    if found is not None or refused is not None:
        needed += firewall.of(case.ctx.spec, there.path, cidr, pods)
    if found is not None:
        actual = str(found["network"]).rpartition("/")[2]
        if actual != there.network:
            yield refuse(
                Code.CONFLICTING_SETTINGS,
                setting="NETWORK",
                what=f"{there.network} is not the network of the subnetwork {case.it.name}",
                why=f"that is in {actual}",
                fix=f"NETWORK=projects/{case.it.project}/global/networks/{actual}, or another"
                " SUBNETWORK",
            )
        if there.pods:
            yield from _ranges(case, there, found)
        yield from _way_out(case, found, there.path)
    yield from _reach_of_shares(case, there.path)
    yield from _each(case, found, refused)


def _of_gpus(
    case: _Case, number: int, kind: Network, needed: list[FirewallRule]
) -> Iterator[Finding]:
    """Check the subnetwork of an interface of the GPUs; adds the firewall rule that it needs.

    Networks with a profile are open inside and take no rules.
    """
    found, refused, cidr = case.found()
    path = NETWORK.path(project=case.it.project, name=f"<NETWORK OF {case.it.name}>")
    if found is not None:
        path = str(found["network"]).partition("/v1/")[2]
        yield from _profile(case, kind, path)
        if kind.profile is None and any(one.network == path for one in needed):
            yield refuse(
                Code.CONFLICTING_SETTINGS,
                setting=case.setting,
                what=f"{case.it.name} is in {path.rpartition('/')[2]}, where another interface is,"
                " too",
                why="each interface of a VM needs a VPC network of its own, but those for RDMA",
                fix="name a subnetwork of another network in its place",
            )
    if kind.profile is None and (found is not None or refused is not None):
        needed.append(firewall.of_gpus(case.ctx.spec, number, path, cidr))
    yield from _each(case, found, refused)


def _profile(case: _Case, kind: Network, path: str) -> Iterator[Finding]:
    """Check that the network of an interface is made for its type, and for the zone."""
    found, refused = seen(lambda: case.ctx.answers.find(Service.COMPUTE, path))
    if refused is not None:
        yield case.unseen(f"the network of {case.it.name}, whether it is one for RDMA", refused)
        return
    actual = str((found or {}).get("networkProfile", "")).rpartition("/")[2]
    pools = (it for it in case.ctx.spec.pools if it.networks)
    zone = next((it.zone for it in pools), case.ctx.spec.zone)
    wanted = f"{zone}-{kind.profile}" if kind.profile else ""
    if actual != wanted:
        has = f"the profile {actual}" if actual else "no network profile"
        needs = f"{wanted}: a network for RDMA is of one zone" if wanted else "none"
        fix = " without a profile, or name the subnetworks in the order of the interfaces"
        if wanted:
            fix = f" with --network-profile {wanted}, and name its subnetworks"
        yield refuse(
            Code.CONFLICTING_SETTINGS,
            setting=case.setting,
            what=f"the network of {case.it.name} is not one for interfaces of type {kind.nic_type}"
            f" in {zone}",
            why=f"{path.rpartition('/')[2]} has {has}, and these need {needs}",
            fix=f"ask an administrator of {case.it.project} for a network{fix}",
        )


def _each(
    case: _Case, found: Mapping[str, Any] | None, refused: GoogleApiError | None
) -> Iterator[Finding]:
    """Check what any subnetwork has to have."""
    it = case.it
    if refused is not None:
        yield case.unseen(
            f"the subnetwork {it.name}: its network, free addresses and way out", refused
        )
    elif found is None:
        yield refuse(
            Code.RESOURCE_NOT_FOUND,
            setting=case.setting,
            what=f"{it.project} has no subnetwork {it.name} in {it.region}",
            why="with NETWORK_CONFIG=existing, nothing is made there",
            fix="list what there is with: gcloud compute networks subnets list --project"
            f" {it.project} --regions {it.region}",
        )
        return
    yield from _use_by_caller(case)
    if case.is_abroad:
        yield from _use_by_google(case)
    if found is not None:
        yield from _room(case, found)


# ------------------------------------------------------------------ who may use it


def _use_by_caller(case: _Case) -> Iterator[Finding]:
    needed = [_USE]
    if any(it.external_ip for it in case.ctx.spec.pools):
        needed.append("compute.subnetworks.useExternalIp")
    answers, on = case.ctx.answers, f"{case.it.path}/"
    held, refused = seen(lambda: answers.held(Service.COMPUTE, on, needed))
    if refused is not None:
        yield case.unseen("what these credentials may do on the subnetwork", refused)
    elif lacking := sorted(set(needed) - set(held or ())):
        yield refuse(
            Code.PERMISSION_MISSING,
            setting=case.setting,
            what=f"these credentials may not use the subnetwork {case.it.name} of"
            f" {case.it.project}",
            why=f"they lack {', '.join(lacking)} on it",
            fix=case.granting("user:YOU"),
        )


def _use_by_google(case: _Case) -> Iterator[Finding]:
    """Check that Google's accounts which make machines may use the subnetwork."""
    ctx, host = case.ctx, case.it.project
    number = ctx.answers.project_number(ctx.project)
    policies = [
        seen(lambda: ctx.answers.get(Service.COMPUTE, f"{case.it.path}/getIamPolicy")),
        seen(lambda: ctx.answers.policy_of_project(host)),
    ]
    bindings = [one for policy, _ in policies if policy for one in policy.get("bindings", [])]
    refused = next((error for _, error in policies if error), None)
    robot = f"service-{number}@container-engine-robot.iam.gserviceaccount.com"
    agents = {
        f"{number}@cloudservices.gserviceaccount.com": f"Google makes {ctx.project}'s machines"
    }
    if ctx.spec.has_control_plane:
        agents[robot] = "GKE"
    for agent, does in agents.items():
        if not any(lets(one, agent, _USING) for one in bindings):
            yield _lacking(case, agent, does, case.granting(f"serviceAccount:{agent}"), refused)
    if ctx.spec.has_control_plane and not any(
        lets(one, robot, frozenset({_HOST_AGENT})) for one in bindings
    ):
        grant = (
            f"ask an administrator of {host} to run:\ngcloud projects add-iam-policy-binding {host}"
            f" --member serviceAccount:{robot} --role {_HOST_AGENT}"
        )
        yield _lacking(case, robot, f"GKE works in {host}", grant, policies[1][1])


def _lacking(
    case: _Case, agent: str, does: str, grant: str, refused: GoogleApiError | None
) -> Finding:
    """That an account has no right, or a note where that may not be seen."""
    if refused is not None:
        return note(
            Code.NOT_CHECKED,
            setting=case.setting,
            what=f"could not see whether {agent} may use the subnetwork {case.it.name}",
            why=f"{does} as this account; {refused.message}",
            fix=f"if it may not, {grant}",
        )
    return refuse(
        Code.PERMISSION_MISSING,
        setting=case.setting,
        what=f"{agent} may not use the subnetwork {case.it.name} of {case.it.project}",
        why=f"{does} as this account, which has no role for that there",
        fix=f"{grant}\nSKIP_CHECKS=subnetwork if a folder or the organization grants it",
    )


def lets(binding: Mapping[str, Any], agent: str, roles: frozenset[str]) -> bool:
    """Whether a binding may give an account one of these roles; a group may have it."""
    members = binding.get("members", [])
    has_it = f"serviceAccount:{agent}" in members or any(it.startswith("group:") for it in members)
    return has_it and (binding["role"] in roles or not binding["role"].startswith("roles/"))


# ------------------------------------------------- what it has: addresses, and ways out of it


def _room(case: _Case, found: Mapping[str, Any]) -> Iterator[Finding]:
    """Check that the subnetwork has an address for each machine, and for a control plane."""
    spec, is_first = case.ctx.spec, case.setting == "SUBNETWORK"
    pools = [pool for pool in spec.pools if is_first or pool.networks]
    wanted = sum(pool.size.most for pool in pools) + (spec.has_control_plane and is_first)
    free, own = _free(found, found["ipCidrRange"]), _own(case)
    if wanted > free + own:
        mine = f", and {own} of this deployment's machines have one" if own else ""
        fewer = "fewer nodes" if spec.has_control_plane else f"INSTANCE_COUNT={max(free + own, 1)}"
        yield refuse(
            Code.NO_FREE_ADDRESSES,
            setting=case.setting if spec.has_control_plane else "INSTANCE_COUNT",
            what=f"the subnetwork {case.it.name} has too few addresses for {wanted} "
            + ("nodes and control plane" if spec.has_control_plane else "VMs"),
            why=f"of its range {found['ipCidrRange']}, {max(free, 0)} are free{mine}",
            fix=f"{fewer}, or another {case.setting}, or "
            + case.asking("expand-ip-range", "--prefix-length <SHORTER>"),
        )


def _ranges(case: _Case, there: ExistingNetwork, found: Mapping[str, Any]) -> Iterator[Finding]:
    """Check that the subnetwork has the ranges for pods and Services, with room for the nodes."""
    offered = {it["rangeName"]: it["ipCidrRange"] for it in found.get("secondaryIpRanges", [])}
    named = {"GKE_PODS_RANGE": there.pods, "GKE_SERVICES_RANGE": there.services}
    for setting, name in named.items():
        if name not in offered:
            yield refuse(
                Code.RESOURCE_NOT_FOUND,
                setting=setting,
                what=f"the subnetwork {case.it.name} has no secondary range {name}",
                why=f"it has {', '.join(sorted(offered)) or 'none'}",
                fix=case.asking("update", f"--add-secondary-ranges {name}=<RANGE>"),
            )
    if there.pods is None or there.pods not in offered:
        return
    nodes = sum(pool.size.most for pool in case.ctx.spec.pools)
    each = case.ctx.spec.ranges.pods_of_node
    room = _free(found, offered[there.pods], there.pods) // each + _own(case)
    if nodes > room:
        yield refuse(
            Code.NO_FREE_ADDRESSES,
            setting="GKE_PODS_RANGE",
            what=f"the range {there.pods} has room for {counted(room, 'node')},"
            f" {nodes} may be wanted",
            why=f"of {offered[there.pods]}, each node takes {each} addresses for pods",
            fix=f"fewer nodes (GKE_MAX_NODE_COUNT, max of SYSTEM_NODE_POOL), fewer pods on each"
            f" (GKE_MAX_PODS_PER_NODE), or ask an administrator"
            f" of {case.it.project} for a larger range",
        )


def _free(found: Mapping[str, Any], cidr: str, name: str = "") -> int:
    """The free addresses of a range; all of it where Google does not tell how many are used."""
    utilizations = found.get("utilizationDetails", {}).get("ipv4Utilizations", [])
    told = [it for it in utilizations if it.get("rangeName", "") == name]
    size = ipaddress.IPv4Network(cidr).num_addresses - (0 if name else OF_GOOGLE)
    return int(told[0].get("totalFreeIp", 0)) if told else size


def _own(case: _Case) -> int:
    """The addresses that this deployment's VMs have in it already."""
    if case.ctx.record is None:
        return 0
    vms = case.ctx.answers.machines_with(case.ctx.project, MARKER, case.ctx.record.cluster_id)
    interfaces = (nic for vm in vms for nic in vm.get("networkInterfaces", []))
    return sum(str(nic.get("subnetwork", "")).endswith(f"/{case.it.path}") for nic in interfaces)


def _way_out(
    case: _Case, found: Mapping[str, Any], path: str, *, is_own: bool = False
) -> Iterator[Finding]:
    """Check that VMs without addresses reach Google's APIs, and the internet.

    `is_own`: whether it is the project's default network, in whose place a new one would do.
    """
    spec = case.ctx.spec
    if any(pool.external_ip for pool in spec.pools) or spec.outbound.proxy:
        return
    it, name = case.it, path.rpartition("/")[2]
    routers, refused = seen(
        lambda: case.ctx.answers.listed(f"projects/{it.project}/regions/{it.region}/routers")
    )
    if any(one.get("nats") and str(one["network"]).endswith(f"/{path}") for one in routers or ()):
        return
    if refused is not None:
        yield case.unseen(f"the Cloud NAT of {name}, the way out of VMs", refused)
    elif not found.get("privateIpGoogleAccess"):
        nat = f"a Cloud NAT for {name} in {it.region}"
        command = (
            f"gcloud compute networks subnets update {case.where} --enable-private-ip-google-access"
        )
        made = f"ask an administrator of {it.project} to make {nat}, and to run:\n{command}"
        instead = "NETWORK_CONFIG=new_network, which has a Cloud NAT; or make one" if is_own else ""
        yield refuse(
            Code.CONFLICTING_SETTINGS,
            setting="NETWORK_CONFIG" if is_own else "SUBNETWORK",
            what=f"VMs in {it.name} have no way out: their start-up would fail",
            why="they have no addresses, it has no Private Google Access, and"
            f" {name} has no Cloud NAT in {it.region}",
            fix=f"{f'{instead}, and run: {command}' if is_own else made}\nor"
            f" ENABLE_EXTERNAL_IP=yes; SKIP_CHECKS={'network' if is_own else 'subnetwork'} if there"
            " is another way out",
        )
    else:
        yield note(
            Code.NOTE,
            setting="NETWORK_CONFIG" if is_own else "SUBNETWORK",
            what=f"{name} has no Cloud NAT in {it.region}",
            why="VMs reach Google's APIs by Private Google Access, but not the internet, where"
            " packages, containers and models come from",
            fix="if there is no other way out, NETWORK_CONFIG=new_network has one"
            if is_own
            else f"if there is no other way out, ask an administrator of {it.project} for one",
        )


def _reach_of_shares(case: _Case, path: str) -> Iterator[Finding]:
    """Check that Filestore reaches a network of another project, where there are shares to make.

    Google peers no network of another project itself: its owner has to connect it to Google's
    services (VPC, "Configure private services access"), which is seen as a peering of this name.
    """
    if not case.ctx.spec.shares or not case.is_abroad:
        return
    found, refused = seen(lambda: case.ctx.answers.find(Service.COMPUTE, path))
    name, owner = path.rpartition("/")[2], case.it.project
    if refused is not None:
        yield case.unseen(f"private services access of {name}, by which shares are made", refused)
    elif found and not any(it.get("name") == _SERVICES for it in found.get("peerings", [])):
        yield refuse(
            Code.CONFLICTING_SETTINGS,
            setting="NFS_FILESHARE_LIST",
            what=f"{name} has no private services access, which shares on a Shared VPC need",
            why=f"Filestore joins a network of {owner} only by that",
            fix=f"ask an administrator of {owner} to run:\ngcloud compute addresses create"
            f" google-services --project {owner} --network {name} --global --purpose VPC_PEERING"
            f" --prefix-length 20\ngcloud services vpc-peerings connect --project {owner}"
            f" --network {name} --service servicenetworking.googleapis.com --ranges google-services"
            "\nor use a bucket (GCS_MOUNT_LIST)",
        )
