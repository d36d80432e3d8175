"""What differs between the kinds of cluster: groups of VMs and GKE clusters."""
