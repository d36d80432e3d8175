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

# The checksum of NVIDIA's package with its source and key, for a release: those that Google's own
# installer of drivers compares (GoogleCloudPlatform/compute-gpu-installation v1.9.1, config.py).
keyring_sum() {
  case $1 in
    debian12) echo e7f219eab6fe4819cdb5c15b98233dc3420302d9c00883219cd3d896857cf48d ;;
    debian13) echo dd28f1f6ba0038180d6b23f846cefca1e3de4c9327751665241370bacea452a1 ;;
    ubuntu2204) echo d93190d50b98ad4699ff40f4f7af50f16a76dac3bb8da1eaaf366d47898ff8df ;;
    ubuntu2404) echo d2a6b11c096396d868758b86dab1823b25e14d70333f1dfa74da5ddaf6a06dba ;;
    ubuntu2604) echo f7f474b5f6a4adf987aa587920df00e713285958ef6a913dda1945a544a3099e ;;
  esac
}

# NVIDIA's package source. One that the image has is used as it is: the same source signed by
# another file breaks all of apt ("Conflicting values set for option Signed-By"). Else it comes as
# NVIDIA's own package, so that whoever adds it too, as NVIDIA's guides say, adds the same.
add_nvidia_source() {
  local release arch repository sum package=$KEPT/cuda-keyring.deb
  release=$(os_release ID)$(os_release VERSION_ID)
  release=${release//./}
  arch=$(uname -m)
  repository=developer.download.nvidia.com/compute/cuda/repos/$release/${arch/aarch64/sbsa}
  grep -rqsE "^[^#]*$repository" /etc/apt/sources.list /etc/apt/sources.list.d && return
  fetch "$(mirrored "https://$repository/cuda-keyring_1.1-1_all.deb")" "$package" || return
  sum=$(keyring_sum "$release")
  # Of a release that nobody knew when this was written there is none: it comes by TLS all the same.
  if [[ -n $sum ]] && ! echo "$sum  $package" | sha256sum --check --status; then
    echo "https://$repository/cuda-keyring_1.1-1_all.deb is not NVIDIA's: its checksum differs" >&2
    return "$HOPELESS"
  fi
  # The source that it brings is NVIDIA's own, so that a mirror is set once more.
  apt_get install "$package" && vm outbound up
}

# Pascal and Volta have none of CUDA 13, though their driver says that it could.
cuda_of_dcgm() {
  case $(setting gpus.accelerator) in
    nvidia-tesla-p4 | nvidia-tesla-p100 | nvidia-tesla-v100) echo 12 ;;
    *) timeout 60 nvidia-smi | sed -n 's/.*CUDA Version: *\([0-9]*\).*/\1/p' ;;
  esac
}

# -dev has libdcgm.so, by which name alone the agent loads it; what -cudaNN only recommends has the
# module for NVLink, SM and pipe activity. Images may have APT::Install-Recommends off.
install_dcgm() {
  local cuda
  cuda=$(cuda_of_dcgm)
  add_nvidia_source || return
  # The lists of other sources, which may fail, are none of this step's business.
  apt_get update || true
  apt_get install --install-recommends "datacenter-gpu-manager-4-cuda$cuda" \
    datacenter-gpu-manager-4-dev
}

# Whether DCGM gives a number: GR_ENGINE_ACTIVE (1001) of the profiling module, or where GPUs have
# none (P4, P100) their utilisation (203). The first samples after its start may be N/A.
dcgm_delivers() {
  local field=1001 said
  case $(setting gpus.accelerator) in nvidia-tesla-p4 | nvidia-tesla-p100) field=203 ;; esac
  said=$(timeout 60 dcgmi dmon --field-id "$field" --count 3) || return
  printf '%s\n' "$said" >&2
  grep -Eq '^GPU +[0-9]+ +[0-9.]+ *$' <<<"$said"
}

# DCGM 4 without -dev runs, and the agent doesn't find it.
dcgm_is_whole() {
  dpkg-query --show --showformat='${db:Status-Abbrev}\n' datacenter-gpu-manager-4-dev \
    datacenter-gpu-manager 2>/dev/null | grep -q '^ii' && dcgm_delivers
}

set_up_dcgm() {
  dcgm_is_whole && return
  retry_for 300 install_dcgm ||
    fail "the Ops Agent runs, but without NVLink and pipe metrics: NVIDIA's DCGM could not be installed"
  systemctl enable --now nvidia-dcgm.service
  retry_for 60 dcgm_delivers ||
    fail "the Ops Agent runs, but without NVLink and pipe metrics: NVIDIA's DCGM gives no values"
  # The agent looks for the library when it starts.
  timeout 120 systemctl restart google-cloud-ops-agent.service
}

run() {
  local ours=$PROGRAMS/ops-agent/config.yaml theirs=/etc/google-cloud-ops-agent/config.yaml
  [[ -n $(setting ops_agent) ]] || skip "DISABLE_OPS_AGENT is set"
  retry_for 240 install_ops_agent || fail "the Ops Agent could not be installed"
  if ! cmp --quiet "$ours" "$theirs"; then
    install -D --mode=644 "$ours" "$theirs"
    timeout 120 systemctl restart google-cloud-ops-agent.service
  fi
  if [[ -n $(setting gpus.count) ]]; then set_up_dcgm; fi
}
