"""The demo in small: a part of the table, a corner of the photograph, some tiles."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the report needs omfb[plot]")

from omfb.demo import air, demo, figures, photograph
from omfb.paper.experiments.images import photographs


@pytest.fixture(scope="session")
def small() -> air.Table:
    """Six weeks of four stations, the one that is shown among them."""
    table = air.table_with_gaps(0)
    hours, columns = slice(1000, 2000), slice(22, 66)
    return air.Table(
        table.truth[hours, columns],
        {kind: mask[hours, columns] for kind, mask in table.hidden.items()},
        table.names[columns],
        table.times[hours],
    )


@pytest.fixture(scope="session")
def folder(tmp_path_factory, small) -> Path:
    """The whole report."""
    folder = tmp_path_factory.mktemp("demo")
    images = photographs()
    tiles = replace(images, rows=images.rows[::10], n_components=5, warning="No faces <b>here</b>")
    corner = photograph.photograph()[80:160, 100:220]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(air, "table_with_gaps", lambda seed: small)
        patch.setitem(air.PEERS, air.ITERATIVE, {"n_nearest_features": 10, "max_iter": 2})
        patch.setattr(photograph, "photograph", lambda: corner)
        patch.setattr(figures, "DETAIL", np.s_[:16, :24])
        demo.demo(tiles, folder)
    return folder
