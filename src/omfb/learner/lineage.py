"""Lineage: the states that a learner has gone on from, for merges.

A state is remembered, by a digest, where another learner may go on from it: when it is copied,
pickled, saved or loaded, by both. So of a model that has gone on from another one, whatever way it
was copied, the lineage has the digest of that one.
"""

import hashlib
from typing import Any

import numpy as np

# States that are remembered, the last ones: a few kilobytes of a file.
LONGEST = 256

Lineage = tuple[str, ...]
"""Digests of states, the oldest first."""


def digest_of(state: Any) -> str | None:
    """A digest of the dictionary and the number of rows; None if it is sharded over a cluster."""
    C = state.C
    if not isinstance(C, np.ndarray):
        return None
    digest = hashlib.blake2b(f"{state.n_seen} {C.shape} {C.dtype}".encode(), digest_size=12)
    digest.update(np.ascontiguousarray(C).data)
    return digest.hexdigest()


def joined(*lineages: Lineage) -> Lineage:
    """Several lineages as one, each digest once."""
    return tuple(dict.fromkeys(digest for lineage in lineages for digest in lineage))[-LONGEST:]


def checked(lineage: Any) -> Lineage:
    """The lineage that a file holds; a ValueError if it cannot be one."""
    fits = isinstance(lineage, list) and len(lineage) <= LONGEST
    if not fits or not all(type(each) is str and len(each) == 24 for each in lineage):
        raise ValueError("its lineage")
    return tuple(lineage)
