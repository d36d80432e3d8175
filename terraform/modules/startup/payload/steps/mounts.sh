# shellcheck shell=bash
# The step mounts of startup.sh, which brings the functions that are used here.

# Not pinned to a version: the repository keeps but the newest ones, signed by Google's key. The
# key is replaced every few years, so it's trusted as it comes by TLS.
install_gcsfuse() {
  local from=https://packages.cloud.google.com/apt key=/usr/share/keyrings/aiinfra-google.asc
  local codename
  command -v gcsfuse >/dev/null && return
  codename=$(os_release VERSION_CODENAME) &&
    fetch "$from/doc/apt-key.gpg" "$key" &&
    apt_install_from gcsfuse "deb [signed-by=$key] $from gcsfuse-$codename main" gcsfuse
}

install_nfs() {
  command -v mount.nfs >/dev/null || apt_install nfs-common
}

mount_at() {
  mountpoint --quiet -- "$1" || timeout 60 mount -- "$1"
}

# systemd mounts what is in fstab at each boot; this looks whether it has, and does it if not.
run() {
  local types points point
  types=$(vm mounts types)
  [[ -n $types ]] || skip "no storage is mounted"
  if grep -qx gcsfuse <<<"$types"; then retry_for 300 install_gcsfuse; fi
  if grep -qx nfs <<<"$types"; then retry_for 300 install_nfs; fi
  if [[ -n $(vm mounts cached) ]] && ! grep -q ' /mnt/localssd ' /proc/self/mounts; then
    fail "GCS_CACHE_GB needs the Local SSDs at /mnt/localssd: see what the step local-ssd says"
  fi
  vm mounts fstab /etc/fstab
  systemctl daemon-reload
  points=$(vm mounts points)
  while IFS= read -r point; do
    mkdir -p -- "$point"
    # A role that was just granted takes minutes to reach every server.
    retry_for 300 mount_at "$point" || fail "could not mount $point"
  done <<<"$points"
  vm mounts open
}
