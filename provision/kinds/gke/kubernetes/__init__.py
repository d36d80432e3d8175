"""What runs inside a GKE cluster: the objects that Terraform does not make, and jobs on them.

Builders are pure: `facts.ClusterFacts` in, objects out. `client` alone talks to a cluster.
"""
