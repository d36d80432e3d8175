"""What must hold between settings."""
