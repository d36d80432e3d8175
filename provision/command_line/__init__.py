"""The command line: the options, the parser for the arguments, and the help.

These are pure functions from arguments to options and problems. `cli` prints, exits and reads the
settings.
"""

from provision.command_line.arguments import CommandLine, read
from provision.command_line.options import OF_A_JOB, Option, Options

__all__ = ["OF_A_JOB", "CommandLine", "Option", "Options", "read"]
