"""The file of a model or checkpoint: safetensors, with a JSON header in its metadata.

    8 bytes, JSON, bytes of the tensors                               (the safetensors format)
    __metadata__: {"omfb": header}

The header has the format's name and version, and a digest of itself and all tensors. The same model
gives the same file, byte for byte. Nothing is ever unpickled. A file is accepted only if its digest
is right, types and shapes fit each other, and all numbers are finite.
"""

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from .atomic import replaced

FORMAT = "omfb model"
VERSION = 3
# The limit of safetensors itself.
LARGEST_HEADER = 100_000_000
TYPES = {"F64": 8, "F32": 4, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}

Tensors = dict[str, NDArray[Any]]


class ModelFileError(ValueError):
    """A file that is not a complete model file of a known version."""


def write_model(
    path: str | os.PathLike[str], header: dict[str, Any], tensors: Tensors,
    like: str | os.PathLike[str] | None = None,
) -> None:  # fmt: skip
    """Write a model file to `path`, replacing it atomically; see `replaced` for `like`."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    text = _text({"format": FORMAT, "version": VERSION, **header})
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    # A single key: safetensors writes several in arbitrary order.
    metadata = {"omfb": f"{_digest(text, tensors)} {text}"}
    with replaced(path, like) as new:
        mode = new.stat().st_mode
        try:
            save_file(tensors, new, metadata)
        except SafetensorError as error:
            raise OSError(f"{path}: could not be written ({error}).") from error
        new.chmod(mode & 0o7777)


def read_model(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Tensors]:
    """The header and the tensors of a model file, as `write_model` got them."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    path = Path(path)
    # Opened only once: another process may replace the file at any time.
    with path.open("rb") as stream:
        digest, _, text = _metadata(path, stream).partition(" ")
        header = _header(path, text)
        stream.seek(0)
        try:
            loaded = load(stream.read())
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"{path}: a damaged model file ({error}).") from error
    # The loaded arrays are read-only, but learning writes into them.
    tensors = {name: np.array(loaded.pop(name), order="C") for name in list(loaded)}
    if _digest(text, tensors) != digest:
        raise ModelFileError(
            f"{path}: a damaged model file (its contents do not match its digest). "
            f"Use an older copy, or fit again."
        )
    for name, tensor in tensors.items():
        if tensor.dtype.kind == "f" and not name.startswith("head"):
            _check_finite(path, name, tensor)
    return header, tensors


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file has the outer form of a model file, of any version, damaged or not."""
    path = Path(path)
    with path.open("rb") as stream:
        try:
            _outer(path, stream)
        except ModelFileError:
            return False
    return True


def _metadata(path: Path, stream: BinaryIO) -> str:
    """Our header, after a check of the safetensors header around it."""
    text, tensors, size = _outer(path, stream)
    _check_layout(path, tensors, size)
    return text


def _outer(path: Path, stream: BinaryIO) -> tuple[str, dict[str, Any], int]:
    """Our header, the entries of the tensors, and the size of their bytes."""
    size = os.fstat(stream.fileno()).st_size
    prefix = stream.read(8)
    length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else 0
    if not 2 <= length <= min(LARGEST_HEADER, size - 8):
        raise ModelFileError(f"{path}: not an omfb model file, or cut short.")
    outer = _parsed(path, stream.read(length))
    metadata = outer.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not isinstance(metadata.get("omfb"), str):
        raise ModelFileError(f"{path}: not an omfb model file.")
    return str(metadata["omfb"]), outer, size - 8 - length


def _check_layout(path: Path, tensors: dict[str, Any], size: int) -> None:
    """Check that tensors have known types, the size of their shapes, and lie within the file."""
    end = 0
    for name, entry in sorted(tensors.items(), key=_begin):
        try:
            dtype, shape, (begin, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
            count = TYPES[dtype]
            for length in shape:
                if type(length) is not int or length < 0:
                    raise ValueError
                count *= length
            good = begin == end and stop - begin == count and stop <= size
        except (KeyError, TypeError, ValueError):
            good = False
        if not good:
            shown = name[:20].encode("ascii", "backslashreplace").decode()
            raise ModelFileError(f"{path}: a damaged model file (tensor {shown!r}), or cut short.")
        end = stop
    if end != size:
        raise ModelFileError(f"{path}: a damaged model file (of the wrong length).")


def _begin(item: tuple[str, Any]) -> float:
    try:
        return float(item[1]["data_offsets"][0])
    except (KeyError, TypeError, ValueError, IndexError, OverflowError):
        return -1.0


def _header(path: Path, text: str) -> dict[str, Any]:
    header = _parsed(path, text)
    if header.get("format") != FORMAT:
        raise ModelFileError(f"{path}: not an omfb model file.")
    version = header.get("version")
    if type(version) is int and version > VERSION:
        raise ModelFileError(
            f"{path}: written by a newer omfb (format {version}, this one reads {VERSION}). "
            f"Upgrade: pip install --upgrade omfb"
        )
    if type(version) is int and 0 < version < VERSION:
        raise ModelFileError(
            f"{path}: written by an older omfb (format {version}, this one reads {VERSION}). "
            f"Fit again."
        )
    if version != VERSION or type(version) is not int:
        raise ModelFileError(f"{path}: a damaged model file (version {version!r}).")
    return header


def _parsed(path: Path, text: str | bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise ModelFileError(f"{path}: not an omfb model file (no header can be read).")
    return parsed


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _text(header: dict[str, Any]) -> str:
    return json.dumps(header, allow_nan=False, sort_keys=True)


def _digest(text: str, tensors: Tensors) -> str:
    """Digest of the header's text (not its values: damage may leave these equal) and tensors."""
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\n{name} {tensor.dtype.str} {tensor.shape}\n".encode())
        digest.update(tensor.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _check_finite(path: Path, name: str, tensor: NDArray[Any]) -> None:
    if not np.isfinite(tensor).all():
        raise ModelFileError(f"{path}: a damaged model file (NaN or infinity in {name!r}).")
