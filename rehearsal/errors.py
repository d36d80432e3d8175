"""Why there can be no rehearsal; what happened, why, and what fixes it."""


class RehearsalError(Exception):
    """A rehearsal can't begin; `fix` is "" when the cause tells."""

    def __init__(self, what: str, *, why: str, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix


class UnknownScenario(RehearsalError):  # noqa: N818 - its name says what is wrong
    """No scenario has that name."""


class UnknownFault(RehearsalError):  # noqa: N818 - its name says what is wrong
    """A text is no fault."""


class CloudNotStarted(RehearsalError):  # noqa: N818 - its name says what is wrong
    """The simulated cloud ended before it served."""


class ProviderNotUsable(RehearsalError):  # noqa: N818 - its name says what is wrong
    """The google provider that a rehearsal is to run with can't be run."""
