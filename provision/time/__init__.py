"""Time as Google Cloud has it: its clock, deadlines, retries."""
