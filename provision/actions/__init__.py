"""The actions: each lists the steps of one action in order, and contains nothing else.

A run imports only what its action needs.
"""
