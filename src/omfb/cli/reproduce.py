"""`omfb reproduce`."""


def reproduce() -> None:
    """Run the paper's experiments."""
