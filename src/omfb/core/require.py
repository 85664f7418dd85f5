"""What is read from files must be as only omfb can have written it."""


def demand(holds: bool, reason: str) -> None:
    """Refuse what does not hold by a ValueError; whoever reads the file says which one it is."""
    if not holds:
        raise ValueError(reason)
