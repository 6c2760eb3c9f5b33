"""Files are written atomically, by everything that writes one: nothing at another name is touched."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
import threading
from contextlib import suppress

import numpy as np
import pytest

import pyop
from pyop.__main__ import main
from pyop.atomic_file import write_file

GRAPH = pyop.trace(lambda x: np.sin(x) + 1.0, "float64[n]")


def profiled():
    twice = pyop.op("float64[n] -> float64[n]", name="twice")(lambda x: x + x)
    with pyop.profile() as p:
        twice(np.ones(2))
    return p


def shown(path):
    with tempfile.TemporaryDirectory() as folder:
        GRAPH.save(f"{folder}/model")
        main(["show", f"{folder}/model", "--html", str(path)])


WRITERS = {
    "save": GRAPH.save,
    "export": lambda path: pyop.onnx.export(GRAPH, path),
    "to_html": GRAPH.to_html,
    "plan.to_html": GRAPH.compile().to_html,
    "trace.json": lambda path: profiled().save(path),
    "p.speedscope.json": lambda path: profiled().save(path),
    "p.pstats": lambda path: profiled().save(path),
    "show --html": shown,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_writer_goes_through_links_and_keeps_modes(name, tmp_path):
    write, folder = WRITERS[name], tmp_path / "elsewhere"
    folder.mkdir()
    precious, link = folder / "precious", tmp_path / name
    link.symlink_to("elsewhere/precious")
    write(link)  # made where a link leads that leads nowhere yet
    assert link.is_symlink()
    assert precious.stat().st_size > 50
    precious.write_bytes(b"old")
    precious.chmod(0o640)
    write(link)
    assert link.is_symlink()
    assert precious.read_bytes() != b"old"
    assert stat.S_IMODE(precious.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == sorted([name, "elsewhere"])
    assert os.listdir(folder) == ["precious"]


@pytest.mark.parametrize("name", WRITERS)
def test_nothing_is_written_through_a_link_at_a_temporary_name(name, tmp_path, monkeypatch):
    precious, path = tmp_path / "precious", tmp_path / name
    precious.write_text("precious")
    guessed = [tmp_path / f"{name}.part-{os.getpid()}", tmp_path / f".pyop-{bytes(8).hex()}.part"]
    for link in guessed:
        link.symlink_to(precious)
    monkeypatch.setattr(os, "urandom", bytes)
    with suppress(FileExistsError):  # the command prints it
        WRITERS[name](path)
    assert not path.exists()
    assert precious.read_text() == "precious"
    assert all(link.is_symlink() for link in guessed)


def test_modes_of_new_files_are_those_of_open(tmp_path):
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "made", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o640


def test_what_is_no_regular_file_stays_what_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, b"through")
    reader.join()
    assert read == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(IsADirectoryError) as error:
        write_file(tmp_path, b"")
    assert error.value.filename == str(tmp_path)


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / os.fsdecode(b"m\xff.onnx")
    write_file(os.fsencode(path), b"old")

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space") as error:
        write_file(path, b"new")
    assert error.value.filename == str(path)
    monkeypatch.setattr(os, "access", lambda *args: False)
    with pytest.raises(PermissionError):  # as open(path, "wb") of a file that may only be read
        write_file(path, b"new")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        write_file(tmp_path / "a", b"new")
    assert path.read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == sorted(["a", "b", path.name])
