"""The state folder of a deployment in Cloud Storage: where it is and what it contains."""
