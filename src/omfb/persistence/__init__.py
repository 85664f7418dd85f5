"""Model and checkpoint files: atomic, versioned, without pickle."""

from .atomic import check_replaceable, replaced
from .locking import LockedError, locked
from .modelfile import ModelFileError, read_model, write_model

__all__ = [
    "LockedError",
    "ModelFileError",
    "check_replaceable",
    "locked",
    "read_model",
    "replaced",
    "write_model",
]
