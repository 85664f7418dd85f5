"""The rule that the experiments put beside the paper's, given in full: nothing else is found."""

from typing import Any

WITH_MEMORY: dict[str, Any] = {
    "memory": 1.0, "lam": 1.0, "ridge": 0.0, "shrink": 0.0, "center": False, "scale": False,
}  # fmt: skip
