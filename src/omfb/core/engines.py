"""All engines, by the names that model files hold."""

from typing import Any

from .broyden.config import BroydenConfig
from .broyden.engine import BROYDEN
from .engine import Engine
from .factor.config import FactorConfig
from .factor.engine import FACTOR

AnyEngine = Engine[Any, Any]
AnyConfig = BroydenConfig | FactorConfig

ENGINES: dict[str, AnyEngine] = {engine.name: engine for engine in (BROYDEN, FACTOR)}
