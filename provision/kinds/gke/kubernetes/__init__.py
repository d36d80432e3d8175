"""What runs inside a GKE cluster: objects that Terraform does not create, and jobs.

Builders are pure functions from `facts.ClusterFacts` to objects. Only `client` talks to a cluster.
"""
