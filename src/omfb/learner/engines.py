"""All engines, by the names that files tell."""

from .bayes import BAYES
from .broyden import BROYDEN
from .engine import Engine

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (BROYDEN, BAYES)}
