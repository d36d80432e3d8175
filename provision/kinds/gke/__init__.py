"""Clusters on Google Kubernetes Engine."""
