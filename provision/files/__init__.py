"""The folder that travels to the VMs, as one archive."""
