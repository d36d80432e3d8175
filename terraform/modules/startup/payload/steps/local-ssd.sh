# shellcheck shell=bash
# The step local-ssd of startup.sh, which brings the functions that are used here.

# A service of its own mounts them at later boots, before what uses them: it runs long before this.
run() {
  local disks expected
  # compgen fails where nothing matches: then there are 0.
  disks=$(compgen -G '/dev/disk/by-id/google-local-nvme-ssd-*' | wc -l) || true
  expected=$(setting local_ssds)
  if ((disks + ${expected:-0} == 0)); then skip "this VM has no Local SSD"; fi
  if ((disks > 1)) && ! command -v mdadm >/dev/null; then
    retry_for 300 apt_install --no-install-recommends mdadm
  fi
  install --mode=644 "$PROGRAMS/systemd/aiinfra-local-ssd.service" /etc/systemd/system/
  systemctl daemon-reload
  systemctl enable aiinfra-local-ssd.service
  vm localssd prepare
  vm localssd check
}
