"""Hostile data files: good ones of every format, with some of their bytes changed."""

import functools
import gzip
import hashlib
import io
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.cli._models import load_estimator

from .models import WIDTH, content, demand_sound, good_rows
from .processes import Ended, demand_tidy, run
from .trial import ACCEPTED, CHANGED, NOT_FINITE, REFUSED, attempt, demand

TOKENS = [
    b"", b",", b"\n", b"\r", b'"', b"nan", b"inf", b"-inf", b"1e400", b"1e308", b"-1e308", b"0x10",
    b"1_0", b"NA", b"null", b"{}", b"[]", b"[[", b'{"a":', b"\x00", b"\xff\xfe", b"\xef\xbb\xbf",
    b"\x1b[2J", b"=1+1", b"9" * 400, b"\xc3", b"true", b"a\tb", b";", b"2020-01-01", b"1,5", b"'",
    b"\\u0000", b" ",
]  # fmt: skip
ENDINGS = (".csv", ".tsv", ".ndjson", ".npy", ".npz", ".parquet", ".arrow", ".csv.gz", ".csv.zst")


@functools.cache
def good_files() -> dict[str, bytes]:
    """A small file of each kind."""
    return files_of(good_rows()[:60])


def files_of(X: np.ndarray) -> dict[str, bytes]:
    """Files of the rows of each kind, with text and dates where there is room for them."""
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    mixed = frame.assign(place="x", day=pd.date_range("2020", periods=len(frame)).astype(str))
    sparse = scipy.sparse.csr_matrix(np.nan_to_num(X))
    made: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:

        def keep(name: str, write: Callable[[Path], Any]) -> None:
            path = Path(folder) / name
            write(path)
            made[name] = path.read_bytes()

        keep("a.csv", lambda path: frame.to_csv(path, index=False))
        keep("b.csv", lambda path: mixed.to_csv(path))
        keep("c.csv", lambda path: frame.to_csv(path, index=False, header=False, sep=";"))
        keep("a.tsv", lambda path: mixed.to_csv(path, index=False, sep="\t"))
        keep("a.csv.gz", lambda path: mixed.to_csv(path, index=False))
        made["a.csv.zst"] = pa.compress(frame.to_csv(index=False).encode(), "zstd", asbytes=True)
        keep("a.ndjson", lambda path: mixed.to_json(path, orient="records", lines=True))
        keep("b.ndjson", lambda path: path.write_text("".join(f"{row}\n" for row in X.tolist())
                                                       .replace("nan", "null")))  # fmt: skip
        keep("a.npy", lambda path: np.save(path, X))
        keep("b.npy", lambda path: np.save(path, np.asfortranarray(X.astype(np.float32))))
        keep("a.npz", lambda path: np.savez(path, X=X, other=np.arange(5)))
        keep("b.npz", lambda path: np.savez_compressed(path, X=X))
        keep("c.npz", lambda path: scipy.sparse.save_npz(path, sparse))
        keep("a.parquet", mixed.to_parquet)
        keep("b.parquet", lambda path: frame.to_parquet(path, compression=None))
        keep("a.arrow", lambda path: mixed.to_feather(path))
    return made


@functools.cache
def good_model() -> bytes:
    """A model of the columns of the good files."""
    frame = pd.DataFrame(good_rows(), columns=[f"f{i}" for i in range(WIDTH)])
    with tempfile.TemporaryDirectory() as folder:
        OMFBImputer(2, random_state=0).fit(frame).save(Path(folder) / "m.omfb")
        return (Path(folder) / "m.omfb").read_bytes()


def try_file(rng: np.random.Generator, folder: Path) -> list[str]:
    """Fit a model to a hostile file."""
    path = hostile_file(rng, folder)
    model = (OMFB, OnlineFactorAnalysis, OMFBImputer)[rng.integers(3)](
        2, random_state=0, max_iter=1
    )
    before = content(model)
    outcome, _ = attempt(lambda: model.fit(path))
    if outcome is ACCEPTED:
        demand_sound(model)
    else:
        demand(content(model) == before, CHANGED, "a fit was refused, and changed the model")
    return [outcome]


def try_file_command(rng: np.random.Generator, folder: Path) -> list[str]:
    """Give a hostile file to a command."""
    path = hostile_file(rng, folder)
    (folder / "m.omfb").write_bytes(good_model())
    ending = ENDINGS[rng.integers(len(ENDINGS))] if rng.random() < 0.3 else "".join(path.suffixes)
    using = [path.name, "-m", "m.omfb", "-o", f"out{ending}"]
    commands: list[list[object]] = [
        ["fit", path.name, "-o", "new.omfb", "-r", 2, "--max-iter", 1],
        ["complete", *using],
        ["complete", *using, "--std"],
        ["transform", *using],
        ["score", path.name, "-m", "m.omfb"],
        ["info", path.name],
    ]
    words = commands[rng.choice(len(commands), p=[0.35, 0.35, 0.1, 0.1, 0.05, 0.05])]
    before = digests(folder)
    ended = run(words, folder)
    return [judged(ended, folder, before)]


def judged(ended: Ended, folder: Path, before: dict[str, str]) -> str:
    """Files that were there stay as they were; a failure leaves nothing, success nothing odd."""
    demand_tidy(ended)
    after = digests(folder)
    kept = {name: after.get(name) for name in before}
    demand(kept == before, CHANGED, f"files have changed: {ended.err[:200]}")
    new = set(after) - set(before)
    if ended.code:
        demand(not new, CHANGED, f"a failure left {sorted(new)}: {ended.err[:200]}")
        return REFUSED
    odd = [name for name in new if name.startswith(".")]
    demand(not odd, CHANGED, f"left behind: {odd}")
    if (folder / "new.omfb").exists():
        demand_sound(load_estimator(folder / "new.omfb"))
    if (folder / "out.npy").exists() and b"NUMPY" in (folder / "out.npy").read_bytes()[:6]:
        filled = np.load(folder / "out.npy")
        whole = filled.dtype.kind != "f" or bool(np.isfinite(filled).all())
        demand(whole, NOT_FINITE, "what the command has filled in")
    return ACCEPTED


def digests(folder: Path) -> dict[str, str]:
    """What each file of a folder holds."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.is_file()
    }


def hostile_file(rng: np.random.Generator, folder: Path) -> Path:
    """Write a hostile file into the folder."""
    files = good_files()
    name = list(files)[rng.integers(len(files))]
    whole = files[name]
    choice = rng.random()
    if choice < 0.55:
        data = mutated(rng, whole)
    elif choice < 0.8:
        data = inside(rng, name, whole)
    elif choice < 0.9:
        other = list(files.values())[rng.integers(len(files))]
        cut = int(rng.integers(len(whole)))
        data = whole[:cut] + other[int(rng.integers(len(other))) :]
    elif choice < 0.95:
        data = rng.bytes(int(rng.integers(0, 300)))
    else:
        data = whole
    path = folder / name
    path.write_bytes(data)
    return path


def mutated(rng: np.random.Generator, data: bytes) -> bytes:
    """Some bytes changed, cut, doubled, or replaced by something odd."""
    changed = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 2, 5, 30]))):
        at = int(rng.integers(len(changed) + 1))
        # Headers are where formats say what they are: begin and end get more than their share.
        if rng.random() < 0.5:
            at = int(rng.integers(min(len(changed) + 1, 200)))
            at = at if rng.random() < 0.5 else max(0, len(changed) - at)
        kind = rng.integers(6)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << int(rng.integers(8))
        elif kind == 1 and at < len(changed):
            changed[at] = int(rng.integers(256))
        elif kind == 2:
            del changed[at : at + int(rng.choice([1, 2, 4, 8, 100, 10**6]))]
        elif kind == 3:
            changed[at:at] = changed[at : at + int(rng.choice([1, 8, 100]))]
        elif kind == 4:
            token = TOKENS[rng.integers(len(TOKENS))]
            changed[at : at + int(rng.integers(0, 2)) * len(token)] = token
        else:
            changed[at : at + 8] = int(rng.integers(-(2**63), 2**63)).to_bytes(
                8, "little", signed=True
            )
    return bytes(changed)


def inside(rng: np.random.Generator, name: str, whole: bytes) -> bytes:
    """A change below the compression, whose sums are right again."""
    if name.endswith(".gz"):
        return gzip.compress(mutated(rng, gzip.decompress(whole)), 1)
    if name.endswith(".npz"):
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(out, "w") as new:
            for member in old.namelist():
                data = old.read(member)
                data = mutated(rng, data) if rng.random() < 0.5 else data
                if rng.random() < 0.95:
                    new.writestr(member, data)
        return out.getvalue()
    return mutated(rng, whole)
