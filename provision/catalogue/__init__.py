"""Facts about Google Cloud that the tool knows beforehand, each in one place."""
