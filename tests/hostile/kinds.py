"""All kinds of trials by their names."""

from .arrays import try_array
from .commands import try_command
from .files import good_files, good_model, try_file, try_file_command
from .frames import try_frame
from .interrupts import try_interrupt
from .iterators import try_iterator
from .modelfiles import good_checkpoints, good_models, try_checkpoint, try_model_file
from .models import fitted_models
from .parameters import try_parameters
from .sparse import try_sparse
from .trial import Trial

KINDS: dict[str, Trial] = {
    "arrays": try_array,
    "sparse matrices": try_sparse,
    "frames": try_frame,
    "iterators": try_iterator,
    "parameters": try_parameters,
    "data files": try_file,
    "data files, by command": try_file_command,
    "model files": try_model_file,
    "checkpoints": try_checkpoint,
    "command lines": try_command,
    "interrupts": try_interrupt,
}


def warm_up() -> None:
    """Import, compile and fit once what every trial needs; processes are forked afterwards."""
    import omfb.cli  # noqa: F401

    for make in (fitted_models, good_files, good_model, good_models, good_checkpoints):
        make()
