"""A simulated Google Cloud on loopback: Google's protocol, kept in one SQLite file."""
