"""The rehearsal."""
