# shellcheck shell=bash
# The step fabric of startup.sh, which brings the functions that are used here.

# shellcheck source=/dev/null
source "$PROGRAMS/steps/containers.sh"

readonly DMABUF=dmabuf-import-helper DMABUF_VERSION=1.1
readonly AI_INFRA='ar+https://us-apt.pkg.dev/projects/gce-ai-infra'

# What jobs of people who come by ssh may hold: RDMA locks the memory that it reads, and a process
# has many connections to each other one.
raise_limits() {
  local who
  for who in '*' root; do
    printf '%s - memlock unlimited\n%s - nofile 1048576\n' "$who" "$who"
  done >/etc/security/limits.d/90-aiinfra.conf
}

# Else the driver forgets the GPUs' settings when no program uses them, and starts anew.
keep_driver_awake() {
  if systemctl cat nvidia-persistenced.service >/dev/null 2>&1; then
    systemctl start nvidia-persistenced.service || log "nvidia-persistenced does not start"
  fi
  timeout 60 nvidia-smi --persistence-mode=1 >/dev/null ||
    log "persistence mode could not be turned on"
}

# ai_infra ARCHITECTURE SUITE ARGUMENTS...: install from Google's registry of packages for AI
# machines. apt goes there by a transport of its own, which names the VM's account.
ai_infra() {
  local architecture=$1 suite=$2 google=/usr/share/keyrings/aiinfra-google.asc
  local registry=/usr/share/keyrings/aiinfra-registry.asc
  local from=https://packages.cloud.google.com/apt
  shift 2
  if [[ ! -e /usr/lib/apt/methods/ar+https ]]; then
    fetch "$from/doc/apt-key.gpg" "$google" &&
      apt_install_from transport \
        "deb [signed-by=$google] $from apt-transport-artifact-registry-stable main" \
        apt-transport-artifact-registry || return
  fi
  fetch https://us-apt.pkg.dev/doc/repo-signing-key.gpg "$registry" &&
    apt_install_from ai-infra \
      "deb [arch=$architecture signed-by=$registry] $AI_INFRA $suite main" "$@"
}

# Without RDMA no plugin of gIB's may be found, which one user's image had in the linker's cache, too:
# then every shell and unit has it, whatever its variables say.
forget_gib() {
  local files
  mapfile -t files < <(grep --files-with-matches --no-messages /usr/local/gib /etc/ld.so.conf.d/*)
  ((!${#files[@]})) || { rm "${files[@]}" && ldconfig; }
}

# In an exact version, and held there: all VMs of a job need the same one.
install_gib() {
  local package=$1 version=${1#*=} state
  # dpkg-query fails where the package has never been: then the state is "".
  state=$(dpkg-query --show --showformat='${db:Status-Status} ${Version}' "${package%=*}" \
    2>/dev/null) || true
  [[ $state == "installed $version" ]] ||
    ai_infra amd64 gpudirect-gib-apt --allow-downgrades \
      --allow-change-held-packages "$package" || return
  apt-mark hold "${package%=*}"
}

# The module through which GPU memory gets to Google's interfaces, built for the running kernel.
# Its source does not compile since Linux 6.13, where a macro takes a string (Cluster Toolkit mends
# it so, 2026-06), so the package is unpacked by hand.
install_import_helper() {
  local source=/usr/src/$DMABUF-$DMABUF_VERSION archives=$KEPT/$DMABUF
  modinfo import-helper >/dev/null 2>&1 && return
  apt_install dkms "linux-headers-$(uname -r)" || return
  if [[ ! -e $source/dkms.conf ]]; then
    rm -rf "$archives" && mkdir -p "$archives/archives/partial" &&
      ai_infra all gpudirect-tcpxo-apt --download-only --no-install-recommends \
        -o "Dir::Cache=$archives" "$DMABUF" &&
      dpkg-deb --extract "$archives"/archives/"$DMABUF"_*.deb "$archives" || return
    [[ -e $archives/usr/src/$DMABUF-$DMABUF_VERSION/dkms.conf ]] ||
      fail "the package $DMABUF does not hold the version $DMABUF_VERSION"
    sed -i 's/MODULE_IMPORT_NS(DMA_BUF)/MODULE_IMPORT_NS("DMA_BUF")/' \
      "$archives/usr/src/$DMABUF-$DMABUF_VERSION"/*.c &&
      rm -rf "$source" && mv "$archives/usr/src/$DMABUF-$DMABUF_VERSION" "$source" &&
      rm -rf "$archives" || return
  fi
  if [[ -z $(dkms status -m "$DMABUF" -v "$DMABUF_VERSION") ]]; then
    dkms add -m "$DMABUF" -v "$DMABUF_VERSION" || return "$HOPELESS"
  fi
  # Builds it first.
  dkms install --force -m "$DMABUF" -v "$DMABUF_VERSION" || return "$HOPELESS"
}

# The plugin comes out of its image once per version.
unpack_plugin() {
  local image=$1 marker=$KEPT/tcpxo.plugin
  [[ -e /var/lib/tcpxo/lib64/libnccl-net.so && -e $marker && $(<"$marker") == "$image" ]] && return
  rm -rf /var/lib/tcpxo/lib64
  timeout 300 docker run --rm --network=host --volume /var/lib:/var/lib "$image" \
    install --install-nccl && echo "$image" >"$marker"
}

set_up_tcpxo() {
  local plugin=$1 daemon=$2
  retry_for 600 install_import_helper || fail "the kernel module import-helper could not be built," \
    "which GPUDirect-TCPXO needs: is this one of Google's Ubuntu images for accelerators?"
  retry_for 600 install_docker || fail "docker could not be installed, in which TCPXO's daemon runs"
  retry_for 600 pull "$plugin" || fail "could not pull $plugin"
  retry_for 600 pull "$daemon" || fail "could not pull $daemon"
  unpack_plugin "$plugin" || fail "NCCL's plugin could not be unpacked from $plugin"
  install -d /etc/aiinfra
  if ! grep -qxF "RXDM_IMAGE=$daemon" /etc/aiinfra/rxdm.env 2>/dev/null; then
    echo "RXDM_IMAGE=$daemon" >/etc/aiinfra/rxdm.env
    # At a first boot there is none to stop.
    systemctl stop aiinfra-rxdm.service 2>/dev/null || true
  fi
  install --mode=644 "$PROGRAMS/systemd/aiinfra-rxdm.service" /etc/systemd/system/
  systemctl daemon-reload
  systemctl enable aiinfra-rxdm.service
  timeout 120 systemctl start aiinfra-rxdm.service ||
    fail "the receive-datapath manager of TCPXO does not start: journalctl -u aiinfra-rxdm"
  # It registers the memory of eight GPUs first, which takes about half a minute.
  retry_for 180 vm fabric daemon ||
    fail "the receive-datapath manager of TCPXO is not healthy: journalctl -u aiinfra-rxdm"
}

run() {
  local kind plugin daemon
  [[ -n $(setting gpus.count) ]] || skip "this VM has no GPUs"
  raise_limits
  keep_driver_awake
  # Also where there is no fabric: what Google's images have for login shells goes for gIB alone.
  install -D --mode=644 "$PROGRAMS/profile.d/zz-aiinfra-nccl.sh" /etc/profile.d/zz-aiinfra-nccl.sh
  kind=$(setting fabric.kind)
  [[ $kind == gib || -n $(ls -A /sys/class/infiniband 2>/dev/null) ]] || forget_gib
  if [[ -z $kind ]]; then
    rm -f /etc/aiinfra/nccl.env
    skip "NCCL uses the one network interface that there is"
  fi
  plugin=$(setting fabric.plugin)
  daemon=$(setting fabric.daemon)
  case $kind in
    tcpxo) set_up_tcpxo "$plugin" "$daemon" ;;
    gib) retry_for 600 install_gib "$plugin" || fail "NCCL's plugin $plugin could not be installed" ;;
  esac
  vm fabric write || fail "the settings of NCCL could not be had"
  vm fabric check || fail "NCCL would not use the GPU network on this VM: see above"
}
