"""The settings: from an env.list to one frozen model, with everything that is wrong said at once.

`model` has every variable, `reading` the rules by which files and environments are read, `rules`
and its siblings what must hold between settings.
"""

from provision.settings.loading import Loaded, load
from provision.settings.model import Settings

__all__ = ["Loaded", "Settings", "load"]
