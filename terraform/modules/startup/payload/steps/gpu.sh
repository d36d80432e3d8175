# shellcheck shell=bash
# The step gpu of startup.sh, which brings the functions that are used here.

# Whether the kernel has said that the driver refuses a GPU: the open module drives none before
# Turing (V100, P100, P4), and waiting does not change that.
refused_by_open_module() { dmesg 2>/dev/null | grep 'not supported by open nvidia.ko' >&2; }

driver_answers() {
  timeout 60 nvidia-smi -L && return
  if refused_by_open_module; then return "$HOPELESS"; fi
  return 1
}

# An upgrade that parts the driver from its libraries breaks every program that starts after it:
# "Driver/library version mismatch". Where modules are built for each kernel, it holds that too.
hold_driver() {
  local names pattern='^ii +((lib)?nvidia-.*|cuda-drivers.*|linux-modules-nvidia-.*)$'
  command -v dpkg-query >/dev/null || return 0
  installed() { dpkg-query --show --showformat='${db:Status-Abbrev} ${Package}\n' "$@" 2>/dev/null; }
  names=$(installed '*nvidia*' 'cuda-drivers*' | grep -E "$pattern" | grep -v container)
  if grep -q linux-modules-nvidia <<<"$names"; then
    names+=$'\n'$(installed 'linux-gcp*' 'linux-image-gcp*' 'linux-headers-gcp*' | grep '^ii')
  fi
  names=$(sed -n 's/^ii *//p' <<<"$names")
  [[ -n $names ]] || return 0
  mapfile -t names <<<"$names"
  apt-mark hold "${names[@]}"
}

# The Deep Learning VM images may install the driver at their first boot, which takes minutes.
run() {
  local code=0
  if [[ -n $(setting gpus.count) ]]; then
    retry_for 900 driver_answers || code=$?
    case $code in
      0) ;;
      "$HOPELESS")
        fail "this image has NVIDIA's open kernel module, which does not support this VM's GPUs:" \
          "choose an image with the proprietary driver"
        ;;
      *) fail "the NVIDIA driver does not answer: nvidia-smi -L fails, 15 minutes after the boot" ;;
    esac
    retry_for 60 hold_driver || log "the driver's packages could not be held"
  fi
  # A machine with many interfaces has the last of them minutes after the boot.
  retry_for 180 vm interfaces || log "some network interfaces are not ready, 3 minutes after the others"
  vm gpu_check
}
