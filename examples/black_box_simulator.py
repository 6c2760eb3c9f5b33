"""A simulator with noise as a graph: an adaptive integrator that NumPy cannot express, and an op with hidden state.

Lynx and hares (Lotka and Volterra), pushed about by weather. One step of the integrator is a black box: it
chooses its own step sizes, so no array expression says what it does. The weather comes from a random generator:
an op with `stateful=True` runs once for every node, in the order in which the nodes were made, although all of
these nodes look alike.

    python examples/black_box_simulator.py
"""

import numpy as np

import pyop

YEARS = 30


def growth(state: np.ndarray) -> np.ndarray:
    """Births and deaths a year."""
    hares, lynx = state
    return np.array([hares * (0.55 - 0.028 * lynx), lynx * (0.026 * hares - 0.84)])


@pyop.op("float64[2], float64[] -> float64[2]")
def integrate(state, span, *, tolerance: float = 1e-5):
    """Heun's method with step-size control. `tolerance` is a static parameter: a keyword, kept on the node."""
    left, step = float(span), float(span) / 8
    while left > 0.0:
        step = min(step, left)
        slope = growth(state)
        guess = state + step * slope
        better = state + step / 2 * (slope + growth(guess))
        error = np.abs(better - guess).max()
        if error <= np.sqrt(tolerance) * step:
            state, left = better, left - step
        step *= np.clip(0.9 * np.sqrt(tolerance) * step / max(error, 1e-300), 0.2, 2.0)
    return state


def weather_of(seed: int) -> pyop.Op:
    """An op that draws from its own generator: one factor for hares, one for lynx."""
    generator = np.random.default_rng(seed)

    @pyop.op("-> float64[2]", stateful=True)
    def weather():
        return generator.lognormal(0.0, 0.08, size=2)

    return weather


def simulate(start, span, weather):
    """Some years, one after another. Plain arrays or symbolic ones: the code is the same."""
    states = [start]
    for _ in range(YEARS):
        states.append(integrate(states[-1] * weather(), span, tolerance=1e-5))
    return np.stack(states)


def main() -> None:
    start, span = np.array([30.0, 4.0]), np.array(1.0)

    plan = pyop.trace(lambda start, span: simulate(start, span, weather_of(7)), "float64[2]", "float64[]").compile()
    compiled = plan(start, span)
    direct = simulate(start, span, weather_of(7))
    assert compiled.tobytes() == direct.tobytes()

    report = plan.report()
    print(f"{report['nodes']} nodes, {report['merged']} merged: {YEARS} draws of the weather stay {YEARS} draws")
    print("year  hares  lynx")
    for year in range(0, YEARS + 1, 5):
        hares, lynx = compiled[year]
        print(f"{year:4}  {hares:5.1f}  {lynx:4.1f}")


if __name__ == "__main__":
    main()
