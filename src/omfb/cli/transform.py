"""`omfb transform`, `omfb inverse` and `omfb score`."""

from ._errors import guarded
from ._models import blocks_of, check_width, load_model, open_for
from ._options import ColumnsOption, Data, Format, Header, Model, Out, open_data
from ._writing import table_to


@guarded
def transform(
    data: Data,
    model: Model,
    output: Out = "-",
    columns: ColumnsOption = None,
    header: Header = None,
    format: Format = None,
) -> None:
    """Write the codes of rows, which may have holes.

    For example:

        omfb transform ratings.csv -m model.omfb -o codes.csv
    """
    from ..streams import errors_about

    fitted = load_model(model)
    source = open_for(fitted, data, columns, header, format)
    code_names = [f"omfb{i}" for i in range(fitted.n_components)]
    with errors_about(source), table_to(output, code_names, fitted.dtype) as writer:
        for rows in blocks_of(source):
            writer.write(fitted.encode(rows)[0].astype(fitted.dtype, copy=False))


@guarded
def inverse(
    data: Data,
    model: Model,
    output: Out = "-",
    columns: ColumnsOption = None,
    header: Header = None,
    format: Format = None,
) -> None:
    """Write rows from their codes.

    For example:

        omfb inverse codes.csv -m model.omfb -o rows.csv
    """
    fitted = load_model(model)
    source = open_data(data, columns=columns, header=header, kind=format)
    check_width(source, fitted.n_components, "components")
    row_names = fitted.feature_names or [f"x{i}" for i in range(fitted.n_features)]
    with table_to(output, row_names, fitted.dtype) as writer:
        for codes in blocks_of(source):
            writer.write(fitted.decode(codes))


@guarded
def score(
    data: Data,
    model: Model,
    columns: ColumnsOption = None,
    header: Header = None,
    format: Format = None,
) -> None:
    """Print the share of the observed energy that the model explains; 1 is all of it.

    For example:

        omfb score ratings.csv -m model.omfb
    """
    from ..core.state import Info
    from ..streams import errors_about

    fitted = load_model(model)
    source = open_for(fitted, data, columns, header, format)
    total = Info(0.0, 0.0)
    with errors_about(source):
        for rows in blocks_of(source):
            total = total.plus(fitted.encode(rows)[1])
    print(1.0 - total.error**2)
