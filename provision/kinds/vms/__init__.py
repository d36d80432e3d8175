"""Groups of VMs, with or without Ray."""
