"""All engines, by the names that files tell."""

from .broyden.engine import BROYDEN
from .engine import Engine
from .factor.engine import FACTOR

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (BROYDEN, FACTOR)}
