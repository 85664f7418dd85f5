"""Four months of hourly air quality in Beijing, with the gaps that the stations left."""

import gzip
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.utils import Bunch


def load_air(*, as_frame: bool = False) -> Any:
    """Load four months of hourly air quality and weather at twelve stations in Beijing.

    2928 hours (March to June 2013) of 11 variables at 12 stations; 2.0 % of the
    values are missing, as in the source. A part of the Beijing Multi-Site Air Quality data by
    Song Chen (UCI Machine Learning Repository, https://doi.org/10.24432/C5RK5G), under the licence
    CC BY 4.0. `DESCR` has the details.

    Parameters
    ----------
    as_frame : bool, default=False
        Whether `data` is a pandas DataFrame whose index holds the times.

    Returns
    -------
    air : Bunch
        data : ndarray of shape (2928, 132), or DataFrame
            NaN is missing.
        feature_names : list of str
            Variable and station, as in "PM2.5 Dongsi".
        times : ndarray of shape (2928,), datetime64
            The hour of each row.
        DESCR : str
            Source and meaning of the data.

    Examples
    --------
    >>> from omfb.datasets import load_air
    >>> air = load_air()
    >>> air.data.shape, air.feature_names[0], str(air.times[0])
    ((2928, 132), 'PM2.5 Aotizhongxin', '2013-03-01T00:00')
    """
    frame_of = _frame_maker() if as_frame else lambda values, times, names: values
    folder = files(__package__)
    text = gzip.decompress(folder.joinpath("air.csv.gz").read_bytes()).decode("ascii")
    header, *lines = text.splitlines()
    cells = np.array([line.split(",") for line in lines])
    values = np.where(cells[:, 1:] == "", "nan", cells[:, 1:]).astype(np.float64)
    times = cells[:, 0].astype("datetime64[m]")
    names = header.split(",")[1:]
    return Bunch(
        data=frame_of(values, times, names),
        feature_names=names,
        times=times,
        DESCR=folder.joinpath("air.md").read_text(encoding="utf-8"),
    )


def _frame_maker() -> Any:
    """A function that makes a frame of values, times and names."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        if error.name != "pandas":
            raise
        raise ImportError("as_frame=True needs pandas: pip install pandas") from None
    return lambda values, times, names: pd.DataFrame(
        values, pd.DatetimeIndex(times, name="time"), names
    )
