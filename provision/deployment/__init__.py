"""One deployment: its data, the protocol of the kinds of cluster, and the run folder."""
