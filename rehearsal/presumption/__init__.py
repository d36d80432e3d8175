"""What an env.list presumes: things that it names, and that have to be there before a Create.

The names are read from the settings' texts as README describes them, and not by the program's own
parsers (ADR 9): a program that misreads a name looks for something that was not made.
"""
