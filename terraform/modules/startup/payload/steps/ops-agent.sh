# shellcheck shell=bash
# The step ops-agent of startup.sh, which brings the functions that are used here.

# The major version is pinned. The installer itself has no versions; it comes by TLS, and the
# packages that it installs are signed.
install_ops_agent() {
  local installer=$KEPT/ops-agent.sh
  systemctl cat google-cloud-ops-agent.service >/dev/null 2>&1 && return
  fetch https://dl.google.com/cloudagents/add-google-cloud-ops-agent-repo.sh "$installer" &&
    timeout 300 bash "$installer" --also-install --version='2.*.*'
}

# DCGM, from which the agent has NVLink and pipe metrics, of the driver's CUDA version, from
# NVIDIA's repository, whose key is known by its fingerprint.
install_dcgm() {
  local id release cuda arch from key=/usr/share/keyrings/aiinfra-nvidia.asc
  local fingerprint=EB693B3035CD5710E231E123A4B469963BF863CC
  command -v nv-hostengine >/dev/null && return
  id=$(os_release ID)
  release=$(os_release VERSION_ID)
  cuda=$(timeout 60 nvidia-smi | sed -n 's/.*CUDA Version: *\([0-9]*\).*/\1/p')
  arch=$(uname -m)
  from=https://developer.download.nvidia.com/compute/cuda/repos/$id${release//./}/${arch/aarch64/sbsa}
  fetch "$from/3bf863cc.pub" "$key" &&
    gpg --batch --show-keys --with-colons "$key" | grep -q "^fpr:.*:$fingerprint:" &&
    echo "deb [signed-by=$key] $from/ /" >/etc/apt/sources.list.d/aiinfra-nvidia.list &&
    timeout 300 apt-get --quiet update &&
    apt_install --no-install-recommends "datacenter-gpu-manager-4-cuda$cuda" &&
    systemctl enable --now nvidia-dcgm.service
}

run() {
  local ours=$PROGRAMS/ops-agent/config.yaml theirs=/etc/google-cloud-ops-agent/config.yaml
  [[ -n $(setting ops_agent) ]] || skip "DISABLE_OPS_AGENT is set"
  retry_for 240 install_ops_agent || fail "the Ops Agent could not be installed"
  if ! cmp --quiet "$ours" "$theirs"; then
    install -D --mode=644 "$ours" "$theirs"
    timeout 120 systemctl restart google-cloud-ops-agent.service
  fi
  if [[ -n $(setting gpus.count) ]]; then
    retry_for 240 install_dcgm || fail "the Ops Agent runs, but without NVLink and pipe metrics:" \
      "NVIDIA's DCGM could not be installed"
  fi
}
