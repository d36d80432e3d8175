"""What happens to a deployment: it is planned, applied, adopted, swept, removed."""
