"""All engines, by the names that files tell."""

from .bayes import BAYES
from .engine import BROYDEN, Engine

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (BROYDEN, BAYES)}
