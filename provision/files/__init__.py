"""Packing the folder for the VMs into one archive."""
