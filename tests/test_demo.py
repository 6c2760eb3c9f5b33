"""The demonstration runs on its real data, and its plan computes what plain Python computes, bit for bit."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the demo extra is not installed")
pytest.importorskip("rich", reason="the demo extra is not installed")

from pyop.demo import OPS, PLAIN, load, recognise
from pyop.demo.pipeline import components, with_kernels
from pyop.demo.run import compiled, same_bits
from pyop.demo.timing import record


@pytest.fixture(scope="module")
def digits():
    return load(120)


def test_plan_eager_and_plain_agree_bit_for_bit(digits):
    plan = compiled(digits)
    for image in digits.images:
        plain = recognise(image, digits.examples, PLAIN)
        assert same_bits(plain, recognise(image, digits.examples, OPS))
        assert same_bits(plain, plan(image))


def test_the_stage_in_cython_agrees_bit_for_bit(digits):
    plan = compiled(digits, with_kernels())
    for image in digits.images:
        assert same_bits(recognise(image, digits.examples, PLAIN), plan(image))


@pytest.mark.parametrize("diagonal", [False, True])
def test_components_in_cython(diagonal):
    """Any mask, at any strides, into any memory: the same numbers in the same order."""
    rng = np.random.default_rng(2)
    stage = with_kernels().components
    for shape in [(0, 0), (0, 3), (4, 0), (1, 1), (1, 9), (9, 1), (2, 2), (7, 5), (16, 16), (23, 31)]:
        for share in (0.3, 0.5, 0.6, 0.8, 1.0):
            mask = rng.random((2 * shape[0], 3 * shape[1])) < share
            for view in (mask[: shape[0], : shape[1]], mask[::-2, ::3], mask[::2, ::-3], mask.T[::3, ::2]):
                want = components(view, diagonal=diagonal).reshape(view.shape)
                got = stage(view, diagonal=diagonal)
                assert got.dtype == np.int64
                assert got.tobytes() == want.tobytes()


def test_same_bits_notices_a_difference():
    one = {"a": np.array([0.0, 1.0])}
    assert same_bits(one, {"a": np.array([0.0, 1.0])})
    assert not same_bits(one, {"a": np.array([-0.0, 1.0])})
    assert not same_bits(one, {"a": np.array([0, 1])})
    assert not same_bits(one, {"a": np.array([[0.0, 1.0]])})
    assert not same_bits(one, {"b": np.array([0.0, 1.0])})


def test_digits_are_read_well(digits):
    read = np.array([int(recognise(image, digits.examples, PLAIN)["digit"]) for image in digits.images])
    assert (read == digits.truth).mean() > 0.85


def test_compiling_merges_folds_and_prunes(digits):
    """The helpers of the pipeline ask for the same threshold, components and moments; the plan computes them once."""
    report = compiled(digits).report()
    calls = len(record(digits.images[0], digits.examples))
    assert report["merged"] >= calls // 2
    assert report["folded"] >= 1
    assert report["pruned"] >= 1
    assert report["instructions"] < report["nodes"]


def test_command_line_shows_the_comparison():
    environment = os.environ | {"COLUMNS": "120"}
    command = [sys.executable, "-W", "error", "-m", "pyop", "demo", "--records", "20", "--rounds", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    for text in (
        "UCI Machine Learning Repository",
        "CC BY 4.0",
        "compiled plan",
        "a stage in Cython",
        "merged",
        "folded",
        "pruned",
        "def recognise(",
        "What it became",
        "how each pixel would change its lean",
    ):
        assert text in done.stdout
    assert "All 20 results are equal bit for bit." in done.stdout


@pytest.mark.parametrize("missing", ["rich", "sklearn"])
def test_missing_extra_is_named(missing):
    code = f"import sys; sys.modules[{missing!r}] = None; from pyop.__main__ import main; sys.exit(main(['demo']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert missing in done.stderr
    assert "pyop-core[demo]" in done.stderr


def test_the_gradient_that_is_shown(digits):
    from pyop.demo.pipeline import moments
    from pyop.demo.shown import gradient_of_lean, picture

    image = np.asarray(digits.images[0], np.float64)
    slope = gradient_of_lean(image)
    step = np.zeros_like(image)
    step[2, 3] = 1e-4
    difference = (moments(image + step).slant - moments(image - step).slant) / 2e-4
    assert slope[2, 3] == pytest.approx(float(difference), rel=1e-5)
    assert len(picture(image, slope).splitlines()) == 8


def test_the_tree_has_every_instruction(digits):
    from pyop.demo.shown import tree_of

    plan = compiled(digits)
    tree = tree_of(plan)
    assert sum(len(branch.children) for branch in tree.children) == plan.report()["instructions"]
