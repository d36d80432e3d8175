# shellcheck shell=bash
# The step gpu of startup.sh, which brings the functions that are used here.

# Whether the kernel has said that the driver refuses a GPU: the open module drives none before
# Turing (V100, P100, P4), and waiting does not change that.
refused_by_open_module() { dmesg 2>/dev/null | grep 'not supported by open nvidia.ko' >&2; }

# Google's installer of NVIDIA's driver (GoogleCloudPlatform/compute-gpu-installation, v1.9.1 of
# 2026-08-05). No checksum of it is published; it comes by TLS, and compares the driver's own.
readonly INSTALLER=https://storage.googleapis.com/compute-gpu-installation-us/installer/v1.9.1/cuda_installer.pyz
# It boots the VM anew for a newer kernel, once. More often is a loop.
readonly MOST_TRIES=4

# Whether the image has neither a driver nor its own way to one, as Deep Learning VMs have.
is_plain() {
  [[ ! -e /opt/deeplearning ]] && ! command -v nvidia-smi >/dev/null && ! modinfo nvidia >/dev/null 2>&1
}

installer_knows() {
  case $(uname -m)-$(os_release ID)-$(os_release VERSION_ID) in
    x86_64-debian-12 | x86_64-debian-13) ;;
    x86_64-ubuntu-22.04 | x86_64-ubuntu-24.04 | x86_64-ubuntu-26.04) ;;
    *) return 1 ;;
  esac
}

# Of the branch of long-term support, 580: Google's images have it, and it is the last for V100,
# P100 and P4. The binary has the module for either kind of GPU, NVIDIA's packages the open alone.
install_driver() {
  local installer=$KEPT/cuda_installer.pyz tries=$KEPT/driver.tries count=0
  if [[ -e $tries ]]; then count=$(<"$tries"); fi
  if ((count >= MOST_TRIES)); then
    echo "Google's installer of the driver has been run $count times, and there is none" >&2
    return "$HOPELESS"
  fi
  fetch "$INSTALLER" "$installer" || return
  # A source that is down and none of its own must not end it: it reads its own lists itself.
  apt_get update || true
  # It calls apt-get, which this lets wait for others.
  echo "DPkg::Lock::Timeout \"$(time_left)\";" >"$PROGRAMS/apt.conf"
  echo $((count + 1)) >"$tries"
  APT_CONFIG=$PROGRAMS/apt.conf timeout "$(time_left)" python3 "$installer" install_driver \
    --installation-mode binary --installation-branch lts || return
  if command -v nvidia-smi >/dev/null; then return; fi
  # The reboot that it has asked for ends this; the next boot goes on here.
  sleep 120
  return 1
}

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

# Deep Learning VM images may install the driver at their first boot, which takes minutes.
run() {
  local code=0
  if [[ -n $(setting gpus.count) ]]; then
    if is_plain; then
      installer_knows || fail "this image has no NVIDIA driver, and Google's installer of drivers knows" \
        "Debian 12 and 13 and Ubuntu 22.04, 24.04 and 26.04 on x86 alone: choose one of them, or an" \
        "image with the driver"
      retry_for 1000 install_driver || fail "the NVIDIA driver could not be installed"
    fi
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
