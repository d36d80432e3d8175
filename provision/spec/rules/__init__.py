"""The rules between settings."""
