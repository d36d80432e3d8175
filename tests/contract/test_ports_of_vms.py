"""What people are told of Ray's ports and token is what the VMs do; no port is used twice."""

import json
import re
from pathlib import Path

from provision.kinds import connection

PAYLOAD = Path(__file__).parents[2] / "terraform/modules/startup/payload"
PORTS = json.loads((PAYLOAD / "ray-ports.json").read_text("utf-8"))
OF_SLURM = json.loads((PAYLOAD / "slurm-ports.json").read_text("utf-8"))
# net.ipv4.ip_local_port_range: from these the kernel gives ports to outgoing connections.
EPHEMERAL = range(32768, 61000)
# Ray starts a server at the head's localhost for each of its clients (util/client/server/proxier.py
# of Ray 2.60).
OF_CLIENTS = range(23000, 24000)


def test_the_tunnel_leads_to_the_dashboard() -> None:
    assert PORTS["dashboard"] == connection.RAY_PORT


def test_the_token_is_where_the_service_keeps_it() -> None:
    unit = (PAYLOAD / "systemd/aiinfra-ray.service").read_text("utf-8")
    folder = re.search(r"^RuntimeDirectory=(\S+)$", unit, re.MULTILINE)

    assert folder
    assert f"/run/{folder[1]}/token" == connection.RAY_TOKEN_FILE


def test_no_port_of_ray_is_given_to_an_outgoing_connection_or_used_twice() -> None:
    workers = range(PORTS["first_worker"], PORTS["last_worker"] + 1)
    single = [port for name, port in PORTS.items() if not name.endswith("_worker")]
    used = [*single, *workers, *OF_CLIENTS]

    assert len(set(used)) == len(used)
    assert not {*used} & {*EPHEMERAL}


def test_no_port_of_slurm_is_given_to_an_outgoing_connection_and_only_root_may_have_its_own() -> (
    None
):
    steps = range(OF_SLURM["first_step"], OF_SLURM["last_step"] + 1)
    single = [OF_SLURM[name] for name in ("key", "slurmctld", "slurmd")]

    assert len({*single, *steps}) == len(single) + len(steps)
    assert not {*single, *steps} & {*EPHEMERAL}
    # net.ipv4.ip_unprivileged_port_start
    assert max(single) < 1024
