"""What is asked for, with every default resolved: pure values."""
