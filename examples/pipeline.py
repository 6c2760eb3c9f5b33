"""Read handwritten digits with a graph: NumPy expressions and loops that NumPy cannot express, compiled together.

The pipeline itself is `pyop/demo/pipeline.py`; `python -m pyop demo` measures it. This file shows how to use it:
trace, look at what compiling did, run it over the images, and find the ones it got wrong. It needs scikit-learn
for the data.

    python examples/pipeline.py
"""

import numpy as np

import pyop
from pyop.demo import OPS, PLAIN, load, recognise


def build(examples: np.ndarray) -> pyop.Graph:
    """The pipeline as a graph with one input, an image. The class examples are constants in it."""
    return pyop.trace(lambda image: recognise(image, examples, OPS), "float64[8, 8]")


def draw(image: np.ndarray) -> str:
    """An image as text, for looking at the mistakes."""
    return "\n".join("".join(" .:*#"[int(level) // 4] * 2 for level in row) for row in image)


def main() -> None:
    digits = load()
    plan = build(digits.examples).compile()
    print("compiling:", ", ".join(f"{count} {what}" for what, count in plan.report().items()))

    results = [plan(image) for image in digits.images]
    assert all(
        result["digit"] == recognise(image, digits.examples, PLAIN)["digit"]
        for image, result in zip(digits.images[:20], results, strict=False)
    )
    read = np.array([int(result["digit"]) for result in results])
    wrong = np.flatnonzero(read != digits.truth)
    print(f"{len(read) - len(wrong)} of {len(read)} digits read rightly")
    first = wrong[0]
    print(f"\na {digits.truth[first]} taken for a {read[first]}, with {int(results[first]['holes'])} holes:")
    print(draw(digits.images[first]))


if __name__ == "__main__":
    main()
