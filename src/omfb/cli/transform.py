"""`omfb transform`, `omfb inverse` and `omfb score`."""

from ._errors import guarded, refuse_overwriting
from ._models import blocks_of, check_width, load_model, open_for
from ._options import Data, Model, Out, Quiet, ReadingOptions, open_data, reads_data
from ._writing import table_to


@guarded
@reads_data
def transform(
    data: Data,
    model: Model,
    output: Out = "-",
    quiet: Quiet = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Write the codes of rows, which may have missing values.

    For example:

        omfb transform table.csv -m model.omfb -o codes.csv
    """
    from ..streams import errors_about

    refuse_overwriting([data, model], [output])
    loaded = load_model(model)
    fitted = loaded.learner
    source = open_for(loaded, data, reading, quiet)
    code_names = [f"omfb{i}" for i in range(fitted.engine.n_components(fitted.state))]
    with errors_about(source), table_to(output, code_names, fitted.dtype, source.path) as writer:
        for rows in blocks_of(source):
            writer.write(fitted.encode(rows))


@guarded
@reads_data
def inverse(
    data: Data,
    model: Model,
    output: Out = "-",
    quiet: Quiet = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Write rows from their codes.

    For example:

        omfb inverse codes.csv -m model.omfb -o rows.csv
    """
    from ..streams import errors_about

    refuse_overwriting([data, model], [output])
    fitted = load_model(model).learner
    n_components = fitted.engine.n_components(fitted.state)
    source = open_data(data, reading, model_width=n_components, quiet=quiet)
    check_width(source, n_components, "components")
    row_names = fitted.feature_names or [f"x{i}" for i in range(fitted.n_features)]
    with errors_about(source), table_to(output, row_names, fitted.dtype, source.path) as writer:
        for codes in blocks_of(source):
            writer.write(fitted.decode(codes))


@guarded
@reads_data
def score(
    data: Data,
    model: Model,
    quiet: Quiet = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Print how well held-out entries are predicted: 1 is exactly, 0 no better than the mean.

    An eighth of the columns of each row is held out and predicted from the others.

    For example:

        omfb score table.csv -m model.omfb
    """
    from ..core.info import Info
    from ..streams import errors_about

    loaded = load_model(model)
    source = open_for(loaded, data, reading, quiet)
    total = Info(0.0, 0.0)
    with errors_about(source):
        for rows in blocks_of(source):
            total = total.plus(loaded.learner.score_held_out(rows))
    print(total.score)
