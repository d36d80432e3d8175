"""`python -m provision` is the program."""

from provision.cli import entrypoint

if __name__ == "__main__":
    entrypoint()
