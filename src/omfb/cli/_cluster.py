"""Files that a Dask cluster learns from."""

from pathlib import Path
from typing import Any

from ._errors import UsageError
from ._options import PIPE, ReadingOptions


def at_scheduler(
    data: list[str], reading: ReadingOptions, model: Any, address: str, lanes: int | None
) -> Any:
    """The files as rounds of the cluster that has a scheduler at an address."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise UsageError("--scheduler needs Dask: pip install 'omfb[dask]'") from None
    from ..adapters.dask.by_rows import Rounds
    from ..core.checks import checked_count
    from ..estimators.parameters import plan_of
    from ..formats import MultiFileSource, Reading

    if PIPE in data:
        raise UsageError("--scheduler needs files that all workers can read, not standard input")
    plan = plan_of(model)
    if not plan.engine.adds_up(plan.rule):
        raise UsageError("--scheduler needs --memory 1, without --shrink and --smooth of a rule")
    try:
        lanes = None if lanes is None else checked_count("--lanes", lanes, "side by side")
        client = Client(address, timeout=10, set_as_default=False)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"--scheduler {address}: no scheduler answers ({error})") from None
    options = {name: value for name, value in reading._asdict().items() if name != "format"}
    paths = [Path(name).resolve() for name in data]  # workers have folders of their own
    return Rounds.of_files(MultiFileSource(paths, Reading.of(**options)), client, lanes)
