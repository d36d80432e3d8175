"""The settings: from text to one frozen model, in which every value is good by itself.

`model` has every variable, `reading` the rules by which files and environments are read. What must
hold between settings stands in `spec.rules`; `intake` brings it all together.
"""
