"""Errors that a user can mend: the message is one sentence that names the thing and the remedy."""


class CoT2Error(Exception):
    """Base of the errors that commands print without a traceback."""


class SpecError(CoT2Error, ValueError):
    """A value that cannot be run: out of range, unknown, or not of the needed type."""


class RecordError(CoT2Error):
    """A record or stored file that is missing, unreadable, truncated or foreign."""


class DeviceError(CoT2Error):
    """A device that was asked for and is not there."""


def brief(error: Exception) -> str:
    """An error of another library in at most one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
