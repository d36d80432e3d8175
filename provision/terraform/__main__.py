"""Run `terraform` with this process's arguments: `python -m provision.terraform fmt`."""

import os
import subprocess
import sys

from provision.terraform import child

sys.exit(subprocess.call([*child.find(os.environ).argv, *sys.argv[1:]]))  # noqa: S603 - the caller's own command
