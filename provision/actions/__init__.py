"""The actions: each lists the steps of one action in order, and contains nothing else.

Each has its own module, so that a run imports only what its action needs.
"""
