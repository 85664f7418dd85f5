"""Versions, threads and hardware."""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("omfb", "numpy", "scipy", "scikit-learn", "numba", "matplotlib")


def environment() -> dict[str, Any]:
    """What the numbers may depend on; nothing that identifies the machine."""
    return {
        "python": platform.python_version(),
        **{package: _version(package) for package in PACKAGES},
        "threads": _threads(),
        "cores": os.cpu_count(),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _threads() -> dict[str, int]:
    from threadpoolctl import threadpool_info  # scikit-learn depends on it

    pools = {f"{pool['internal_api']}": int(pool["num_threads"]) for pool in threadpool_info()}
    return {**pools, "available": len(os.sched_getaffinity(0)) if sys.platform == "linux" else 0}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            models = [line.split(":", 1)[1] for line in lines if line.startswith("model name")]
        return models[0].strip()
    except (OSError, IndexError):
        return platform.processor()
