"""The settings: from text to one frozen model, in which each value is valid on its own.

`model` has all variables, and `reading` reads them from files and the environment. `spec.rules` has
the rules between settings; `intake` combines all of it.
"""
