"""Machines with a GPU network, as the step `fabric` finds them, and stand-ins for what it calls.

What the images, packages and devices hold is told by the sources that the catalogue names; what is
only believed of them stands in docs/development/gotchas.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.catalogue.fabrics import STACKS, Fabric

if TYPE_CHECKING:
    from tests.startup.sandbox import VM

GPUS = {"count": 2, "accelerator": "nvidia-h100-mega-80gb"}

# The vendor's, as far as it matters: it ends the shell without its variable, finds interfaces by
# the places of their devices, and leaves an empty part in the path.
PROFILE = """
: "${NCCL_LIB_DIR:?Must set NCCL_LIB_DIR}"
export LD_LIBRARY_PATH="${NCCL_LIB_DIR}:${LD_LIBRARY_PATH}"
export NCCL_FASTRAK_IFNAME=$(ls /sys/class/net | grep ^enp6 | paste -sd,) NCCL_SOCKET_IFNAME=ens4
export NCCL_PROTO=Simple,LL128 CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 PATH=$PATH:/opt/vendor
"""
_PLUGIN = f"""
mkdir -p /var/lib/tcpxo/lib64 && cd /var/lib/tcpxo/lib64 &&
  touch libnccl.so.2 libnccl-net.so libnccl-tuner.so
cat >nccl-env-profile.sh <<'PROFILE'{PROFILE}PROFILE
"""
_DOCKER = f"""
case "$*" in
  "image inspect "*) grep -qxF "$3" /simulated/pulled 2>/dev/null ;;
  *" login "*) [[ $(cat) == token-of-the-vm ]] ;;
  *" pull "*) echo "${{!#}}" >>/simulated/pulled ;;
  "run "*"install --install-nccl") {_PLUGIN} ;;
esac
"""
# The packages are simulated, and what apt downloads.
_APT = r"""
[[ -e /simulated/no-network ]] && exit 100
for argument; do
  case $argument in
    nccl-gib=*)
      echo "installed ${argument#*=}" >/simulated/nccl-gib
      mkdir -p /usr/local/gib/lib64 /usr/local/gib/scripts
      touch /usr/local/gib/lib64/libnccl.so.2 /usr/local/gib/lib64/libnccl-net.so
      printf 'export NCCL_IB_GID_INDEX=3 NCCL_IB_TC=52\nexport NCCL_SOCKET_IFNAME=eth0,eth1\n%s%s' \
        'export NCCL_TUNER_CONFIG_PATH=/usr/local/gib/configs/tuner_config_' \
        "$(cat /simulated/gib).txtpb" >/usr/local/gib/scripts/set_nccl_env.sh ;;
    Dir::Cache=*) archives=${argument#*=}/archives ;;
    dmabuf-import-helper) touch "$archives/dmabuf-import-helper_1.1_all.deb" ;;
  esac
done
"""
_DPKG_DEB = r"""
source=$3/usr/src/dmabuf-import-helper-1.1
mkdir -p "$source" && touch "$source/dkms.conf"
echo 'MODULE_IMPORT_NS(DMA_BUF);' >"$source/import-helper.c"
"""
# What systemd runs before the daemon, with the programs of the payload.
_SYSTEMCTL = r"""
case $* in
  "cat "*) [[ -e /simulated/$2 ]] ;;
  "start aiinfra-rxdm.service")
    PYTHONPATH=/opt/aiinfra/lib python3 -S -m aiinfra_vm.tcpxo 2>>/calls || exit 1
    touch /simulated/rxdm ;;
esac
"""
_CURL = r"""
case ${!#} in
  *:7332/health) [[ -e /simulated/rxdm && ! -e /simulated/sick ]] || { echo 503 >&2; exit 22; } ; exit ;;
esac
"""  # noqa: E501 - one case


def prepare(vm: VM) -> None:
    """Put the stand-ins on a VM that has none of the fabric's software."""
    vm.stubs["apt-get"] = _APT
    vm.stubs["curl"] = _CURL + vm.stubs["curl"]
    vm.stubs["docker"] = _DOCKER
    vm.stubs["dpkg-deb"] = _DPKG_DEB
    vm.stubs["dpkg-query"] = "cat /simulated/nccl-gib 2>/dev/null"
    vm.stubs["apt-mark"] = ""
    vm.stubs["dkms"] = "[[ $1 != install ]] || touch /simulated/import-helper"
    vm.stubs["modinfo"] = "[[ -e /simulated/import-helper ]]"
    vm.stubs["modprobe"] = "[[ $1 != import-helper ]] || touch /dev/dmabuf_import_helper"
    vm.stubs["mount"] = "[[ $1 == --bind && -d $2 && -d $3 ]]"
    vm.stubs["ldconfig"] = (
        'printf "\\tlibcuda.so.1 (libc6,x86-64) => /simulated/libcuda.so.580.1\\n"'
    )
    vm.stubs["systemctl"] = _SYSTEMCTL
    (vm.disk / "simulated/libcuda.so.580.1").write_text("the driver")
    vm.server.values["service-accounts/default/token"] = '{"access_token": "token-of-the-vm"}'


def a3_mega(vm: VM) -> None:
    """Make a VM an A3 Mega with two GPUs: two interfaces for them, each with its aperture."""
    prepare(vm)
    for number in range(2):
        vm.add_interface(f"enp6s{number}", f"10.{number + 1}.0.2", mtu=8244)
        device = vm.disk / f"sys/bus/pci/devices/0000:0{number + 6}:00.1"
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x1ae0\n")
        (device / "device").write_text("0x0084\n")
        (device / "resource0").write_text("")
        (device / "resource0").chmod(0o600)
    stack = STACKS[Fabric.TCPXO]
    assert stack.daemon is not None
    fabric = {
        "kind": "tcpxo",
        "interfaces": 2,
        "plugin": stack.plugin.pinned,
        "daemon": stack.daemon.pinned,
    }
    vm.configure(gpus=GPUS, interfaces=3, fabric=fabric)


def a3_ultra(vm: VM, *, active: int = 2, tuner: str = "a3u") -> None:
    """Make a VM an A3 Ultra with two GPUs, so many of whose RDMA devices are active.

    `tuner`: how gIB's own script calls the machine, which it finds out itself: "a4" for A4.
    """
    prepare(vm)
    (vm.disk / "simulated/gib").write_text(tuner)
    for number in range(2):
        vm.add_interface(f"gpu{number}rdma0", f"10.{number + 1}.0.2", mtu=8896)
        port = vm.disk / f"sys/class/infiniband/rocep{145 + number}s0/ports/1"
        port.mkdir(parents=True)
        (port / "state").write_text("4: ACTIVE\n" if number < active else "1: DOWN\n")
    fabric = {"kind": "gib", "interfaces": 2, "plugin": STACKS[Fabric.GIB].package, "daemon": None}
    vm.configure(gpus=GPUS, interfaces=3, fabric=fabric)
