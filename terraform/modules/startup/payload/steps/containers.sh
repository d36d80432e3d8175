# shellcheck shell=bash
# The step containers of startup.sh, which brings the functions that are used here: docker, NVIDIA's
# runtime in it, and the image JOB_IMAGE. The first job that wants an image begins it, no boot does
# (aiinfra_vm.containers). The steps fabric and image use its functions.

# The one that Cluster Toolkit pins (its blueprint of A3 Mega): people had trouble with 1.17.8 and 9.
readonly TOOLKIT=1.17.7-1
readonly NVIDIA=https://nvidia.github.io/libnvidia-container
readonly LOCAL_SSD=/mnt/localssd

# Before docker first starts: images would fill the boot disk, and the local SSDs are faster.
install_docker() {
  local names
  command -v docker >/dev/null || get_docker || return
  # Held: an update would stop the daemon, and with it every job on the GPU network.
  names=$(dpkg-query --show --showformat='${db:Status-Abbrev} ${Package}\n' \
    docker.io docker-ce containerd containerd.io runc 2>/dev/null | sed -n 's/^ii *//p') || true
  # shellcheck disable=SC2086  # one word each
  [[ -z $names ]] || apt-mark hold $names
}

get_docker() {
  if mountpoint --quiet "$LOCAL_SSD" && [[ ! -e /etc/docker/daemon.json ]]; then
    install -d /etc/docker /etc/systemd/system/docker.service.d
    printf '{"data-root": "%s/docker"}\n' "$LOCAL_SSD" >/etc/docker/daemon.json
    # They are made and mounted anew at each boot.
    printf '[Unit]\nAfter=aiinfra-local-ssd.service\n' >/etc/systemd/system/docker.service.d/aiinfra.conf
  fi
  apt_install docker.io
}

# An image's own is of another version, and held.
install_toolkit() {
  local key=/usr/share/keyrings/aiinfra-nvidia.asc from
  local packages=(nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container-tools
    libnvidia-container1)
  command -v nvidia-ctk >/dev/null && return
  from=$(mirrored "$NVIDIA") && fetch "$from/gpgkey" "$key" &&
    apt_install_from nvidia "deb [signed-by=$key] $from/stable/deb/$(dpkg --print-architecture) /" \
      "${packages[@]/%/=$TOOLKIT}" && apt-mark hold "${packages[@]}"
}

# docker learns of runtimes while it runs: whatever is in containers there, such as the daemon of
# TCPXO, goes on.
use_toolkit() {
  docker info --format '{{json .Runtimes}}' | grep -q '"nvidia"' && return
  nvidia-ctk runtime configure --runtime=docker && systemctl reload docker
}

# pull IMAGE: with the VM's own account, which is not kept for docker, and told to Google alone. What
# a digest names stays the same; what a tag names is asked again.
pull() {
  local image=$1 folder code=0 said=$PROGRAMS/pull.log
  if [[ $image == *@sha256:* ]] && docker image inspect "$image" >/dev/null 2>&1; then return; fi
  folder=$(mktemp --directory)
  case ${image%%/*} in
    *.pkg.dev | gcr.io | *.gcr.io)
      vm metadata token | docker --config "$folder" login --username oauth2accesstoken \
        --password-stdin "https://${image%%/*}" || log "no login at ${image%%/*}: goes on without"
      ;;
  esac
  timeout 1200 docker --config "$folder" pull --quiet "$image" 2>&1 | tee "$said" >&2 || code=$?
  rm -rf "$folder"
  if ((code)) && grep -Eqi 'not found|manifest unknown|denied|unauthorized|invalid reference' "$said"; then
    return "$HOPELESS"
  fi
  return "$code"
}

bring() {
  retry_for 600 install_docker || fail "docker could not be installed"
  if [[ -n $(setting gpus.count) ]]; then
    retry_for 600 install_toolkit || fail "NVIDIA's container toolkit $TOOLKIT could not be installed"
    retry_for 60 use_toolkit || fail "docker does not know NVIDIA's runtime"
  fi
  [[ -n $JOB_IMAGE ]] || return 0
  retry_for 1200 pull "$JOB_IMAGE" || fail "the image $JOB_IMAGE can't be pulled"
}

run() { bring; }
