"""All kinds of trials by their names."""

import io
import tempfile
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

from .arrays import try_array
from .commands import try_command
from .files import good_files, good_model, try_file, try_file_command
from .frames import try_frame
from .interrupts import try_interrupt
from .iterators import try_iterator
from .kills import large_files, try_kill
from .modelfiles import good_checkpoints, good_models, try_checkpoint, try_model_file
from .models import fitted_models
from .parameters import try_parameters
from .rows import try_row
from .semantics import try_semantics
from .sparse import try_sparse
from .trial import Trial
from .weights import try_weights

KINDS: dict[str, Trial] = {
    "arrays": try_array,
    "sparse matrices": try_sparse,
    "frames": try_frame,
    "rows by name": try_row,
    "iterators": try_iterator,
    "parameters": try_parameters,
    "weights": try_weights,
    "what must not matter": try_semantics,
    "data files": try_file,
    "data files, by command": try_file_command,
    "model files": try_model_file,
    "checkpoints": try_checkpoint,
    "command lines": try_command,
    "interrupts": try_interrupt,
    "kills": try_kill,
}


def warm_up() -> None:
    """Import, compile and fit once what every trial needs; processes are forked afterwards."""
    for make in (fitted_models, good_files, good_model, good_models, good_checkpoints, large_files):
        make()
    from omfb.cli import app

    with tempfile.TemporaryDirectory() as folder, redirect_stderr(io.StringIO()):
        model = Path(folder) / "m.omfb"
        for name, data in good_files().items():
            path = Path(folder) / name
            path.write_bytes(data)
            model.write_bytes(good_model())
            for words in (
                ["fit", path, "-o", model],
                ["complete", path, "-m", model, "-o", Path(folder) / f"out{path.suffix}"],
                ["info", model],
            ):
                with suppress(SystemExit), redirect_stdout(io.StringIO()):
                    app([str(word) for word in words])
