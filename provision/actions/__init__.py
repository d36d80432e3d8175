"""The actions, as straight recipes: what happens in which order, and nothing else.

Each is a module of its own, so that a run loads only what its action needs.
"""
