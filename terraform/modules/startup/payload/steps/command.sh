# shellcheck shell=bash
# The step command of startup.sh, which brings the functions that are used here.

# Starts the unit, and leaves it alone: the command may take days, and a start-up script that runs
# as long would keep apt-daily from the security updates.
run() {
  [[ -n $(setting has_command) ]] || skip "STARTUP_COMMAND is not set"
  # A file, not bash -c: a command may be longer than an argument.
  (umask 077 && attribute aiinfra-startup-command >"$PROGRAMS/startup-command")
  vm command due
  install --mode=644 "$PROGRAMS/systemd/aiinfra-command.service" /etc/systemd/system/
  systemctl daemon-reload
  systemctl start --no-block aiinfra-command.service
  exit "$LEFT_RUNNING"
}
