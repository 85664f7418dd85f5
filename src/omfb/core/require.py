"""Checks of what is read from files, which must be as omfb writes it."""


def require(holds: bool, reason: str) -> None:
    """Raise a ValueError with the reason unless the condition holds; callers add the file."""
    if not holds:
        raise ValueError(reason)
