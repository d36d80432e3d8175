"""The command line: which options there are, what the arguments ask for, and the help.

Pure: arguments go in, options and problems come out. `cli` prints, exits and reads the settings.
"""

from provision.command_line.arguments import CommandLine, read
from provision.command_line.options import Option, Options

__all__ = ["CommandLine", "Option", "Options", "read"]
