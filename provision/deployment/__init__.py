"""One deployment: what it is made of, where its state is, and what is kept beside that."""
