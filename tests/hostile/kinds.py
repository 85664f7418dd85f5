"""All kinds of trials by their names."""

from .arrays import try_array
from .frames import try_frame
from .iterators import try_iterator
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
}


def warm_up() -> None:
    """Import, compile and fit once what every trial needs; processes are forked afterwards."""
    fitted_models()
