"""Statuses of measured rows."""

MEASURED = ("ok", "slow")
"""Statuses of rows with a verified result and a time; ``slow`` rows stopped early (one launch)."""

UNVERIFIED = "unverified"
"""Status of timed rows whose variant is not verified. They may be shown, but are never used for
training, comparison or recommendation."""

TIMED = (*MEASURED, UNVERIFIED)
"""Statuses of rows that have a time."""

UNKNOWN = "unknown"
"""Reasons for throttling if the card cannot be queried."""

STATUSES = (*TIMED, "wrong", "failed", "timeout", "out_of_memory")
