"""What a loop carried last time is foreseen: programs whose next trace carries something else."""

import numpy as np
import pytest

import pyop
from pyop._tree import flatten
from pyop.loops import rolled

pytestmark = pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
X = np.linspace(-1.0, 1.0, 12)


def told(tree):
    leaves, form = flatten(tree)
    return form, [(type(x), np.asarray(x).dtype, np.asarray(x).shape, np.asarray(x).tobytes()) for x in leaves]


def by_flag(x, adds):
    s, y = 0.0, x.copy()
    for k in range(10):
        if adds:
            s = s + x[k]
        else:
            y[k] = s + 1.0
    return s, y


def by_kind(x, start):
    s = start
    for k in range(10):
        s = s * 0.5 + k
    return s


def one_array_or_two(x, same):
    y = x.copy()
    z = y if same else x.copy()
    for k in range(1, 10):
        y[k] = z[k - 1] + 1.0
    return y, z


def two_names(x, same):
    y = x * 1.0
    z = y if same else x * 2.0
    for _ in range(10):
        y = y + 1.0
        z = z * 0.5
    return y, z


def shown_by_another(x, column):
    table = np.zeros((3, len(x)), x.dtype)
    row = table[1] if column else x.copy()
    for k in range(10):
        row[k] = k + x[k]
    return table, row


def known_at_first(x, start):
    n, last = start, 0.0
    while n < 9:
        last = x[n]
        n += 2
    return n, last


def never_entered(x, start):
    held = [1.0, 2.0]
    total = 0.0
    for k in range(8):
        while len(held) > start:
            total = x[k]
            held.pop()
    return total, held


def left_at_once(x, limit):
    held, k = [x[0], 0.5 * x[1]], 0
    for i in range(9, -1, -1):  # noqa: B007
        held.append(x[0])
        k += 1
        if len(held) > limit:
            break
    return k, held, i


def nested(x, scale):
    y = x * scale
    for i in range(9):
        for j in range(9):
            y[j] = y[j] * 0.5 + y[j + 1]
            for k in range(8):
                y[k] = y[k] + 0.25 * y[i]
    return y


PROGRAMS = {
    by_flag: (True, False, True),
    by_kind: (0, 0.0, np.float32(1.0), 1 + 2j, True, np.int8(3)),
    one_array_or_two: (True, False, True),
    two_names: (True, False, True),
    shown_by_another: (False, True, False),
    known_at_first: (0, 1, 20, 8, 9),
    never_entered: (0, 5, 1),
    left_at_once: (1, 20, 4),
    nested: (1.0, 2, np.float32(0.5)),
}
CASES = [(f, scale) for f, scales in PROGRAMS.items() for scale in (scales, scales[::-1])]


@pytest.mark.parametrize(("f", "given"), CASES, ids=lambda x: getattr(x, "__name__", ""))
@pytest.mark.parametrize("dtypes", ["dfl", "lfd", "Dd?"])
def test_each_trace_has_numpys_bits(f, given, dtypes):
    for dtype in dtypes:
        for value in given:
            x, same = ((3 * X).astype(dtype) for _ in range(2))
            try:
                wanted = f(same, value)
            except (TypeError, IndexError) as error:
                with pytest.raises(type(error)):
                    pyop.compile(f, static=[1])(x, value)
                continue
            assert told(pyop.compile(f, static=[1])(x, value)) == told(wanted)
            assert told(pyop.compile(f)(x, value)) == told(wanted)


def test_each_body_of_a_nest_runs_but_one_time_more_than_the_one_around_it(monkeypatch):
    runs = {}
    hand_out = rolled.Rolled._hand_out

    def counted(self):
        runs[self.key] = runs.get(self.key, 0) + 1
        return hand_out(self)

    def f(x):
        y = x * 1.5
        for i in range(9):
            for j in range(9):
                y[j] = y[j] * 0.5 + y[j + 1]
                for k in range(8):
                    y[k] = y[k] + 0.25 * y[i]
        return y

    monkeypatch.setattr(rolled.Rolled, "_hand_out", counted)
    assert told(pyop.compile(f)(X)) == told(f(X))
    assert sorted(runs.values()) == [2, 3, 4]
    runs.clear()
    pyop.compile(f)(X)
    assert sorted(runs.values()) == [1, 1, 1]
