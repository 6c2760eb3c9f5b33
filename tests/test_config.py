"""build_config, get_include and the command line around them."""

import importlib.metadata
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import pyop
from pyop.__main__ import main


def test_build_config_names_what_pyop_was_built_with():
    config = pyop.build_config()
    build, run = config["build"], config["run"]
    assert build["version"] == pyop.__version__
    for tool in ("compiler", "build_type", "python", "numpy", "pybind11", "cython"):
        assert build[tool], tool
    assert "sanitizers" in build
    assert run["numpy"] == np.__version__
    assert Path(run["extension"]).is_file()


def test_get_include_holds_the_headers():
    """tests/out_of_tree compiles them."""
    assert sorted(path.name for path in Path(pyop.get_include(), "pyop").glob("*.h"))


def test_info_prints_the_same_as_build_config(capsys):
    assert main(["info", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    paths = {"include": pyop.get_include(), "cmake": pyop.get_cmake_dir()}
    optional = printed.pop("optional")
    assert printed["run"].pop("machine code")
    assert printed == {**pyop.build_config(), "paths": paths}
    assert optional["rich"] == importlib.metadata.version("rich") if find_spec("rich") else optional["rich"] == ""
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"pyop {pyop.__version__}\n")
    assert pyop.build_config()["build"]["compiler"] in text


def test_module_runs_as_a_command():
    done = subprocess.run([sys.executable, "-m", "pyop", "info"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("pyop ")


def test_without_a_command_it_says_what_there_is(capsys):
    assert main([]) == 0
    assert "usage: python -m pyop" in capsys.readouterr().out
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"pyop {pyop.__version__}\n"


@pytest.mark.parametrize("arguments", [["nothing"], ["demo", "--records", "0"], ["demo", "--rounds", "some"]])
def test_wrong_command_line_is_explained(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "usage: python -m pyop" in capsys.readouterr().err
