"""All engines, by the names that files tell."""

from .broyden.engine import BROYDEN
from .engine import Engine
from .factor.engine import BAYES

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (BROYDEN, BAYES)}
