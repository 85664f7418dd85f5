"""`omfb demo`: what omfb does, shown on data that come with it."""

from pathlib import Path

from ._errors import guarded, say
from ._report import Out, Seed, new_report, show


@guarded
def demo(out: Out = Path("results"), seed: Seed = 0) -> None:
    """Fill a table, a photograph and the paper's images, beside other methods, on one page."""
    with new_report(out, seed) as (folder, track):
        from ..demo.demo import demo as run
        from ..paper.experiments.images import load_images

        images = load_images()
        if images.warning:
            say(f"omfb: {images.warning}")
        outcomes = run(images, folder, seed=seed, track=track)
    show(outcomes, out)
