"""Facts about Google Cloud that are built into the tool, each in one place."""
