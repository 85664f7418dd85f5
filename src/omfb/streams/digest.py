"""Digests of a stream's content, to recognise it when a fit resumes."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from ..core.weighted import WeightedRows

if TYPE_CHECKING:
    from .base import Source

# Content larger than this is sampled: parts of this total size are digested.
DIGEST_BYTES = 1 << 26
DIGEST_PARTS = 64


def content_digest(source: "Source") -> str:
    """A digest of a stream's content, reading at most about 64 MB of it.

    For a file, of its bytes and its first rows: the choice and order of columns are not in the
    bytes.
    """
    digest = hashlib.blake2b(digest_size=16)
    if source.path is not None:
        _digest_file(digest, source.path)
    for rows in _sampled(source):
        _digest_rows(digest, rows)
    return digest.hexdigest()


def _sampled(source: "Source") -> Iterator[Any]:
    """The first rows of a file; all rows of other streams, or parts spread over them."""
    row_bytes = max(source.n_features, 1) * source.dtype.itemsize
    length = max(1, DIGEST_BYTES // DIGEST_PARTS // row_bytes)
    if source.path is not None:
        starts = [None]
    elif source.n_rows is not None and source.n_rows * row_bytes <= DIGEST_BYTES:
        yield from (block.rows for block in source.blocks(length, False, np.random.RandomState(0)))
        return
    else:
        starts = source.starts(DIGEST_PARTS)
    for start in starts:
        for block in source.blocks(length, False, np.random.RandomState(0), start):
            yield block.rows
            break


def _digest_rows(digest: Any, rows: Any) -> None:
    if isinstance(rows, WeightedRows):
        for part in (rows.rows, rows.weights, rows.precisions):
            if part is not None:
                _digest_rows(digest, part)
        return
    if scipy.sparse.issparse(rows):
        rows = rows.tocsr()
        arrays = [rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)]
    else:
        arrays = [np.asarray(rows)]
    for array in arrays:
        digest.update(f"{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _digest_file(digest: Any, path: Path) -> None:
    size = path.stat().st_size
    digest.update(f"{size}".encode())
    length = DIGEST_BYTES // DIGEST_PARTS
    with path.open("rb") as stream:
        for part in range(DIGEST_PARTS):
            if size > DIGEST_BYTES:  # the last part ends where the file ends
                stream.seek((size - length) * part // (DIGEST_PARTS - 1))
            digest.update(stream.read(length))
