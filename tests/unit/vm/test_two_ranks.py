"""What a rehearsal tells the programs that it really runs is what VMs tell theirs."""

from pathlib import Path

from aiinfra_vm import job, peers
from aiinfra_vm.jobs import Course, Node, State

from rehearsal.cloud import real_programs


def test_programs_get_the_same_variables_as_on_vms() -> None:
    nodes = tuple(Node(rank, f"vm-{rank}", str(rank), "127.0.0.1") for rank in range(2))
    course = Course("train-1", State.RUNNING, attempt=3, nodes=nodes)
    wanted = real_programs.Wanted("train-1", 3, ["true"], 2, {}, None)
    on_vm = job.ranks(course, nodes[1], peers.Slots(1))
    here = real_programs.ranks(wanted, 1)
    ports = {on_vm["MASTER_PORT"]: "PORT", here["MASTER_PORT"]: "PORT"}

    def masked(found: dict[str, str]) -> dict[str, str]:
        port = found["MASTER_PORT"]
        return {name: text.replace(port, ports[port]) for name, text in found.items()}

    assert masked(here) == masked(on_vm)


def test_a_python_is_found_by_the_name_that_it_has_on_vms(tmp_path: Path) -> None:
    found = real_programs.surroundings(tmp_path)
    assert set(found) == {"PATH", "HOME", "LANG", "CUDA_VISIBLE_DEVICES", "GLOO_SOCKET_IFNAME"}
    assert (found["HOME"], found["CUDA_VISIBLE_DEVICES"]) == (str(tmp_path), "")
