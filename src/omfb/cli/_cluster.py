"""Files that a Dask cluster learns from."""

from pathlib import Path
from typing import TYPE_CHECKING

from ._errors import UsageError
from ._options import PIPE, ReadingOptions, as_reading

if TYPE_CHECKING:
    from ..adapters.dask.by_rows import RoundSource
    from ..estimators.base import BaseFactorizer


def check_cluster(
    data: list[str], model: "BaseFactorizer", address: str | None, n_tasks: int | None
) -> None:
    """Refuse what a cluster cannot learn, before the data are opened."""
    if address is None:
        if n_tasks is not None:
            raise UsageError("--n-tasks is for a cluster: add --scheduler ADDRESS, or drop it")
        return
    if PIPE in data:
        raise UsageError("--scheduler needs files that all workers can read, not standard input")
    if not _is_mergeable(model):
        omfb = "shrink" in model.get_params()
        only_omfb = ", without --shrink, --smooth, --positive and --alpha" if omfb else ""
        raise UsageError(f"--scheduler needs --forget-factor 1{only_omfb}")


def at_scheduler(
    data: list[str], reading: ReadingOptions, address: str, n_tasks: int | None
) -> "RoundSource":  # fmt: skip
    """The files as rounds of the cluster that has a scheduler at an address."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise UsageError("--scheduler needs Dask: pip install 'omfb[dask]'") from None
    from ..adapters.dask.by_rows import RoundSource
    from ..core.checks import checked_count
    from ..formats import MultiFileSource

    try:
        if n_tasks is not None:
            n_tasks = checked_count("--n-tasks", n_tasks, "how many learn at the same time")
        client = Client(address, timeout=10, set_as_default=False)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"--scheduler {address}: no scheduler answers ({error})") from None
    paths = [Path(name).resolve() for name in data]  # workers have folders of their own
    return RoundSource.of_files(MultiFileSource(paths, as_reading(reading)), client, n_tasks)


def _is_mergeable(model: "BaseFactorizer") -> bool:
    from ..core.engines import ENGINES

    config = model.checked_config()
    engine = next(each for each in ENGINES.values() if isinstance(config, each.config_type))
    return engine.is_mergeable(config)
