# shellcheck shell=bash
# The step ray of startup.sh, which brings the functions that are used here.

# The image's Python that has PyTorch, so that programs on Ray have it too; else the system's.
python_for_ray() {
  local candidate
  for candidate in /opt/conda/bin/python3 /opt/python/*/bin/python3 /usr/bin/python3; do
    if [[ -x $candidate ]] && timeout 120 "$candidate" -c 'import torch' >/dev/null 2>&1; then
      echo "$candidate"
      return
    fi
  done
  log "no Python of this image has PyTorch: programs on Ray have to bring it"
  command -v python3
}

make_venv() {
  "$1" -m venv --clear --system-site-packages "$PROGRAMS/ray" ||
    { apt_install python3-venv && "$1" -m venv --clear --system-site-packages "$PROGRAMS/ray"; }
}

# What Ray needs besides itself is pinned for the version that is the default, by
# ray-<version>.txt. Versions only: hashes for every platform would fill a VM's metadata.
install_ray() {
  local version=$1 pins=$PROGRAMS/ray-$1.txt
  local pip=("$PROGRAMS/ray/bin/python" -m pip install --quiet --no-input --only-binary=:all:)
  local index host
  index=$(setting outbound.pip_index)
  host=${index#*://} host=${host%%/*}
  if [[ -n $index ]]; then pip+=(--index-url "$index"); fi
  # With the VM's own account, in a file that is root's alone and goes again.
  if [[ $host == *.pkg.dev ]]; then
    export NETRC=$PROGRAMS/netrc
    (umask 077 && printf 'machine %s login oauth2accesstoken password %s\n' "$host" \
      "$(vm metadata token)" >"$NETRC") || return
    trap 'rm -f "$NETRC"' RETURN
  fi
  if [[ -e $pins ]]; then pip+=(--constraint "$pins"); fi
  make_venv "$(python_for_ray)" && timeout 600 "${pip[@]}" "ray[default]==$version"
}

run() {
  local version marker=$KEPT/ray.version
  version=$(setting ray.version)
  [[ -n $version ]] || skip "ORCHESTRATOR_TYPE is not ray"
  if [[ ! -e $marker || $(<"$marker") != "$version" ]]; then
    retry_for 600 install_ray "$version" || fail "Ray $version could not be installed"
    echo "$version" >"$marker"
  fi
  make_user aiinfra-ray 880 /var/lib/aiinfra-ray || fail "the user aiinfra-ray could not be made"
  install -D --mode=644 "$PROGRAMS/profile.d/aiinfra-ray.sh" /etc/profile.d/aiinfra-ray.sh
  install --mode=644 "$PROGRAMS/systemd/aiinfra-ray.service" /etc/systemd/system/
  systemctl daemon-reload
  systemctl enable aiinfra-ray.service
  # Returns when this VM is part of the Ray cluster, as its head or as a worker.
  timeout 900 systemctl start aiinfra-ray.service ||
    fail "this VM is not part of the Ray cluster: journalctl -u aiinfra-ray"
}
