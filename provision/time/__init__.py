"""Waiting for Google Cloud: its clock, deadlines, retries."""
