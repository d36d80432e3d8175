"""What the tool runs on a VM.

The standard library alone, and nothing newer than Python 3.7: it runs with whatever the image has.
"""


def counted(number: int, noun: str) -> str:
    """A number of things, such as "1 GPU" or "2 GPUs"."""
    return f"{number} {noun if number == 1 else noun + 's'}"
