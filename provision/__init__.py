"""One env.list becomes a GPU cluster on Google Cloud, and goes away again."""

__version__ = "0.1.0"
