"""One deployment: what it is made of, and the folder that a run works in."""
