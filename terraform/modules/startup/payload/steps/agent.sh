# shellcheck shell=bash
# The step agent of startup.sh, which brings the functions that are used here.

# How long the others may take: Create waits for all VMs to run before it waits for their start-up,
# but images differ in how long their first boot takes.
readonly AGREEMENT_SECONDS=300

# ssh between the nodes is a comfort: a VM that can't have it has its rank all the same.
set_up_node_ssh() {
  if [[ -n $(setting node_ssh) ]]; then vm node_ssh open; else vm node_ssh close; fi
}

# An image that was made of a VM has none. Google's guest agent makes them where it is, and sshd does
# not start without: after some tries systemd refuses to, until reset-failed. That fails where the
# unit is not loaded yet, as with Ubuntu's ssh.socket.
make_host_keys() {
  [[ -e /etc/ssh/sshd_config ]] || return 0
  if compgen -G '/etc/ssh/ssh_host_*_key' >/dev/null; then return 0; fi
  ssh-keygen -A && { systemctl reset-failed ssh.service || true; } && systemctl restart ssh.service
}

run() {
  local lacking=""
  make_host_keys || lacking="the host keys of sshd: nobody can come by ssh"
  [[ -n $(setting state.bucket) ]] || skip "the VMs share no folder (state_folder): no ranks, no jobs, no ssh between them"
  # Who jobs run as: nobody's administrator (ADR 54).
  make_user aiinfra-job 881 /var/lib/aiinfra-job/.home || lacking="the user aiinfra-job: no jobs"
  set_up_node_ssh || lacking="ENABLE_NODE_SSH: no ssh between the nodes, see above"
  install -D --mode=644 "$PROGRAMS/profile.d/aiinfra.sh" /etc/profile.d/aiinfra.sh
  install --mode=644 "$PROGRAMS"/systemd/aiinfra-{agent,job}.service /etc/systemd/system/
  systemctl daemon-reload
  systemctl enable aiinfra-agent.service
  # Also where it runs: its programs may be others since the last boot.
  systemctl restart aiinfra-agent.service
  vm peers wait "$AGREEMENT_SECONDS" || fail "the ranks of the group are not complete"
  if [[ -n $lacking ]]; then fail "$lacking"; fi
}
