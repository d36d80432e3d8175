"""What differs between kinds of cluster: groups of VMs and GKE clusters."""
