"""The specification of a cluster: what the settings ask for, with every default resolved."""
