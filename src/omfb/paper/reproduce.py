"""Run experiments and write their results: all of `omfb reproduce` but the terminal."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import figures as plots
from .environment import environment
from .experiments import EXPERIMENTS, faces_missing, faces_online
from .experiments.images import Images
from .experiments.outcome import Outcome, Track, untracked
from .report import page, shown_atoms
from .results_folder import write_numbers


def reproduce(
    names: list[str],
    images: Images,
    folder: Path,
    *,
    quick: bool = False,
    seed: int = 0,
    track: Track[Any] = untracked,
) -> list[Outcome]:
    """Run the experiments and write their results to a folder.

    Parameters
    ----------
    names : list of str
        Keys of `EXPERIMENTS`.
    images : Images
    folder : Path
        It exists. Figures as SVG and PNG, `results.json`, `results.csv` and `report.html` are
        written to it.
    quick : bool, default=False
        Fewer passes, iterations and masks.
    seed : int, default=0
    track : callable, default=untracked
        Shows progress.

    Returns
    -------
    outcomes : list of Outcome
    """
    outcomes = [EXPERIMENTS[name](images, quick=quick, seed=seed, track=track) for name in names]
    about = {**_about(images), "quick": quick, "seed": seed, "environment": environment()}
    figures = figures_of(outcomes, images)
    for name, figure in figures.items():
        for kind in ("svg", "png"):
            (folder / f"{name}.{kind}").write_bytes(plots.render(figure, kind))
    write_numbers(folder, about, outcomes)
    (folder / "report.html").write_text(page(outcomes, images, about, figures), encoding="utf-8")
    return outcomes


def _about(images: Images) -> dict[str, Any]:
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": images.name,
        "warning": images.warning,
        "images": len(images.rows),
        "shape": list(images.shape),
    }


def figures_of(outcomes: list[Outcome], images: Images) -> dict[str, Any]:
    """Figures by the name of their files."""
    figures: dict[str, Any] = {}
    for outcome in outcomes:
        if outcome.experiment == faces_online.NAME:
            figures["faces-online"] = _error_figure(outcome, len(images.rows))
        else:
            figures["faces-missing-snr"] = _snr_figure(outcome)
            pictures = {_caption(outcome, name): rows for name, rows in outcome.pictures.items()}
            figures["faces-missing"] = plots.pictures_figure(pictures, images.shape)
        atoms = {name: outcome.atoms[name] for name in shown_atoms(outcome)}
        figures[f"{outcome.experiment}-atoms"] = plots.atoms_figure(atoms, images.shape)
    return figures


def _caption(outcome: Outcome, name: str) -> str:
    """The name, and its SNR on the mask that is shown."""
    if name not in outcome.methods(faces_missing.SNR):
        return name
    return f"{name}\n{outcome.values(name, faces_missing.SNR)[0]:.2f} dB"


def _error_figure(outcome: Outcome, n_images: int) -> Any:
    curves = {}
    for name in faces_online.METHODS:
        errors = outcome.curve(name, faces_online.ERROR)
        seconds = outcome.curve(name, faces_online.SECONDS)
        curves[name] = plots.Curve(
            seconds=[seconds[passes][0] for passes in errors],
            rows=[passes * n_images for passes in errors],
            errors=[values[0] for values in errors.values()],
        )
    (optimum,) = outcome.values(faces_online.OPTIMUM, faces_online.ERROR)
    return plots.error_figure(curves, optimum)


def _snr_figure(outcome: Outcome) -> Any:
    names = (faces_missing.MEMORY, faces_missing.MULTIPLICATIVE, faces_missing.PAPER)
    curves = {name: outcome.curve(name, faces_missing.SNR) for name in names}
    mean = outcome.values(faces_missing.MEAN_IMAGE, faces_missing.SNR)
    return plots.snr_figure(curves, {faces_missing.MEAN_IMAGE: sum(mean) / len(mean)})
