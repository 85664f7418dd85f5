"""Replaced files keep their permissions; copies of private files stay private."""

import errno
import os
import re

import pytest

from omfb.persistence import replaced
from omfb.persistence.atomic import glob_escaped, remove_leftovers

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")


def mode(path):
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o664])
def test_a_replaced_file_keeps_its_permissions(tmp_path, bits):
    path, other = tmp_path / "x.csv", tmp_path / "other.csv"
    path.write_text("old")
    other.write_text("not looked at")
    path.chmod(bits)
    with replaced(path, like=other) as new:
        assert mode(new) == bits  # before anything is in it
        new.write_text("new")
    assert (mode(path), path.read_text()) == (bits, "new")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_replaced_file_keeps_its_owner(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("old")
    os.chown(path, 12345, 12345)
    with replaced(path) as new:
        new.write_text("new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12345)


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o755])
def test_a_new_file_gets_the_permissions_of_the_one_it_is_made_from(tmp_path, bits):
    private, path = tmp_path / "private.csv", tmp_path / "filled.csv"
    private.write_text("1,2\n")
    private.chmod(bits)
    with replaced(path, like=private) as new:
        assert mode(new) == bits & 0o666
        new.write_text("1,2\n")
    assert mode(path) == bits & 0o666  # data are not executable


def test_a_pipe_has_no_permissions_to_give(tmp_path):
    usual = tmp_path / "usual"
    usual.write_text("")
    with replaced(tmp_path / "filled.csv", like="/dev/null") as new:
        new.write_text("")
    assert mode(tmp_path / "filled.csv") == mode(usual)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG])
def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path, number):
    path = tmp_path / "filled.csv"
    path.write_text("old")
    with pytest.raises(OSError, match=re.escape(str(path))), replaced(path):
        raise OSError(number, os.strerror(number))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["filled.csv"]


def test_leftovers_of_a_file_are_removed_and_nothing_else(tmp_path):
    names = [".a[1].csv.0123abcd.tmp", ".a1.csv.0123abcd.tmp", ".a[1].csv.tmp", "a[1].csv"]
    for name in names:
        (tmp_path / name).write_text("")
    remove_leftovers(tmp_path / "a[1].csv")
    assert sorted(os.listdir(tmp_path)) == sorted(names[1:])
    assert glob_escaped("a*?[b") == "a[*][?][[]b"
