"""Durations as Go writes them: "10s", "1m30s", "200ms"."""

import re

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


def seconds(text: str) -> float:
    """The duration in seconds; ValueError if it is none ("10", "1 minute")."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f'time: invalid duration "{text}"')
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def text(seconds: float) -> str:
    """Whole seconds as Go prints them ("20m0s")."""
    hours, rest = divmod(int(seconds), 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{left}s"
    return f"{minutes}m{left}s" if minutes else f"{left}s"
