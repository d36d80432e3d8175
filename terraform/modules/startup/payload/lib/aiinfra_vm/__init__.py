"""What the tool runs on a VM.

The standard library alone, and nothing newer than Python 3.7: it runs with whatever the image has.
"""
