"""Where a deployment keeps its state in Cloud Storage, and what is kept there."""
