# shellcheck shell=bash
# The step slurm of startup.sh, which brings the functions that are used here.

# Without munge, and with a node that takes a new address of its VM along:
# both are of 23.11 (RELEASE_NOTES).
readonly OLDEST=23.11 JOB_USERS=64 FIRST_JOB_USER=60600

# The packages start all three at once, and at each boot. slurmctld may run on the head alone, as a
# child of aiinfra-slurm.service, which also starts slurmd; nobody wants munge.
hold_daemons() { systemctl mask slurmctld.service munge.service slurmd.service; }

is_new_enough() {
  local version
  read -r _ version < <(slurmd -V)
  [[ $(printf '%s\n' "$OLDEST" "$version" | sort --version-sort | head --lines=1) == "$OLDEST" ]] ||
    fail "this image's Slurm is ${version:-unknown}; $OLDEST or newer is needed: choose an image of" \
      "Debian 13 or Ubuntu 24.04"
}

# Jobs of Run have one each of these while they run: none reads another's files or environment. Of
# the same numbers on every VM, as Slurm knows users by number; no program gives these to others
# (systemd's docs/UIDS-GIDS.md of 004e3ed1, read 2026-11-29: 60578 to 61183 are unused). Expired, as
# what make_user makes is; sysusers does so from 257 on alone.
make_job_users() {
  local number name last
  install --directory /etc/sysusers.d
  for ((number = 0; number < JOB_USERS; number++)); do
    printf -v name 'aiinfra-job-%02d' "$number"
    printf 'u %s %d "Jobs of Run" /var/lib/aiinfra-job/.home\n' "$name" \
      $((FIRST_JOB_USER + number))
  done >/etc/sysusers.d/aiinfra-slurm.conf
  systemd-sysusers /etc/sysusers.d/aiinfra-slurm.conf || return
  for ((number = 0; number < JOB_USERS; number++)); do
    printf -v name 'aiinfra-job-%02d' "$number"
    [[ $(getent shadow "$name") == *:1: ]] || chage --expiredate 1 "$name" || return
  done
  last=$(id --user "$name")
  [[ $last == $((FIRST_JOB_USER + JOB_USERS - 1)) ]] ||
    fail "the user $name has the number $last, not $((FIRST_JOB_USER + JOB_USERS - 1)), which is" \
      "another's on this image: choose another image"
}

run() {
  [[ -n $(setting slurm.partition) ]] || skip "ORCHESTRATOR_TYPE is not slurm"
  hold_daemons
  retry_for 600 apt_install --no-install-recommends slurmctld slurmd slurm-client ||
    fail "Slurm could not be installed: see above"
  is_new_enough
  make_job_users || fail "the users of jobs could not be made"
  systemctl unmask slurmd.service
  # Not by the boot: the service starts it when its files are written.
  systemctl disable slurmd.service
  install --mode=644 "$PROGRAMS/systemd/aiinfra-slurm.service" /etc/systemd/system/
  systemctl daemon-reload
  systemctl enable aiinfra-slurm.service
  # Returns when the head knows this VM as one of its nodes.
  timeout 600 systemctl start aiinfra-slurm.service ||
    fail "this VM is not part of the Slurm cluster: journalctl -u aiinfra-slurm -u slurmd"
}
