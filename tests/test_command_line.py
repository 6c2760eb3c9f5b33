"""python -m pyop profile, explain, bench and check, on files as users have them; what the logger is told."""

import json
import logging
import os
import subprocess
import sys

import numpy as np
import pytest

import pyop
from pyop.__main__ import main

MODULE = """
import numpy as np, pyop

WEIGHTS = np.array([1.0, 2.0, 3.0])

@pyop.op("float64[n] -> float64[n]")
def near(x):
    return x + 1

def smooth(x, k=2.0):
    return np.sin(x) * k + WEIGHTS

def counts(x):
    return x * 2 if float(x[0]) > 0 else x

def changes(x):
    x += 1
    return x.sum()

def constant():
    return np.arange(3.0) * 2

def noisy(x):
    return x + np.random.default_rng().random()

@pyop.compile
def ready(x):
    return near(near(x)) * 2

if __name__ == "__main__":
    import sys
    ready(np.ones(3)); ready(np.ones(3))
    print("arguments", sys.argv[1:])
    sys.exit(3)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    name = f"users_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    yield name
    sys.modules.pop(name, None)
    sys.path[:] = [p for p in sys.path if p != str(tmp_path)]


def test_profile_of_a_script(here, capsys, tmp_path):
    before = sys.argv, list(sys.path)
    assert main(["profile", "-o", "t.json", f"{here}.py", "a", "--b"]) == 3
    assert (sys.argv, sys.path) == before
    said = capsys.readouterr().out
    assert "arguments ['a', '--b']" in said
    assert [line.split()[:3] for line in said.splitlines() if line.startswith("near")] == [["near", "node", "4"]]
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert main(["profile", "--by", "line", "-m", here]) == 3
    assert f"{here}.py:" in capsys.readouterr().out
    assert main(["profile", "nowhere.py"]) == 2
    assert "nowhere.py" in capsys.readouterr().err
    assert main(["profile", "-m", "nowhere_at_all"]) == 2


def test_profile_in_a_process_of_its_own(here):
    done = subprocess.run(
        [sys.executable, "-m", "pyop", "profile", f"{here}.py"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (3, "")
    assert "user code" in done.stdout


@pytest.mark.parametrize(("name", "example"), [("smooth", "np.ones(3)"), ("ready", "np.ones(3)"), ("near", None)])
def test_explain_and_bench(here, capsys, name, example):
    given = ["--example", example] if example else []
    assert main(["explain", f"{here}:{name}", *given]) == 0
    assert capsys.readouterr().out.strip()
    assert main(["bench", f"{here}:{name}", "--rounds", "2", *given]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["way", "plain", "compiled", "2"]
    assert lines[1].split()[-1] == "1.000"


def test_functions_without_arguments_need_no_example(here, capsys):
    assert main(["bench", f"{here}:constant", "--rounds", "1"]) == 0
    assert main(["explain", f"{here}:smooth"]) == 2
    assert "takes x: say with what" in capsys.readouterr().err
    assert main(["explain", f"{here}:WEIGHTS"]) == 2
    assert "not a function" in capsys.readouterr().err
    assert main(["explain", f"{here}:nothing"]) == 2
    assert main(["explain", f"{here}:smooth", "--example", "np.on(3)"]) == 2
    assert "--example: AttributeError" in capsys.readouterr().err


def verdicts(report):
    return {f.what: f.verdict for f in report.findings}


def test_check_of_plain_functions(here, capsys):
    assert main(["check", f"{here}:smooth", "--example", "np.ones(3)"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("function 'smooth': passed")
    assert "reads WEIGHTS: pyop.trace freezes" in said
    assert main(["check", f"{here}:noisy", "--example", "np.ones(3)"]) == 1
    assert main(["check", here]) == 0
    assert "op 'near': passed" in capsys.readouterr().out
    users = sys.modules[here]
    report = pyop.check(users.counts, np.ones(3))
    assert verdicts(report)["numbers"] == "FAIL"
    assert "float" in next(f.text for f in report.findings if f.what == "numbers")
    report = pyop.check(users.changes, np.ones(3))
    assert "writes into argument 0" in str(report)
    assert verdicts(pyop.check(users.ready, np.ones(3)))["compiled"] == "pass"


def test_check_finds_a_wrong_gradient():
    wrong = pyop.op("float64[n] -> float64[n]", name="wrong")(lambda x: x * x)
    wrong.vjp(lambda ct, x: ct * x)
    report = pyop.check(lambda x: wrong(x) + 1, np.ones(3))
    assert verdicts(report)["gradient"] == "FAIL"
    assert "central differences" in str(report)


def test_check_tells_how_far_it_is():
    told = []
    pyop.check(pyop.op("float64[n] -> float64[n]")(abs), progress=lambda done, total: told.append((done, total)))
    assert told == [(k, 6) for k in range(7)]
    with pytest.raises(TypeError, match="progress= takes"):
        pyop.check(np.sin, np.ones(3), progress=3)


def test_the_logger_is_told_what_is_traced_and_why(caplog):
    f = pyop.compile(lambda x, y: x * 2 + y, max_plans=2)
    with caplog.at_level(logging.INFO, "pyop"):
        for n in (3, 4, 4, 5):
            f(np.ones(n), np.ones(3)[:1])
    said = [record.getMessage() for record in caplog.records]
    assert "the first call" in said[0]
    assert said[1].endswith("trace 2: x is float64[4]")
    assert "evicted" in said[2] + said[3]
    assert len(said) == 4
    caplog.clear()

    @pyop.compile
    def odd(x):
        return x if os.getpid() and hash(x.tobytes()) else -x

    with caplog.at_level(logging.INFO, "pyop"), pytest.warns(pyop.RetraceWarning):
        odd(np.ones(3))
    assert any("runs as it is" in record.getMessage() for record in caplog.records)


def test_logging_is_not_loaded_by_a_trace():
    code = "import sys, numpy as np, pyop; sys.modules.pop('logging', None)  # of an editable install\n"
    code += "pyop.compile(lambda x: x + 1)(np.ones(3)); print('logging' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
