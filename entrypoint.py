"""Start the program: `python entrypoint.py --help`."""

from provision.cli import entrypoint

if __name__ == "__main__":
    entrypoint()
