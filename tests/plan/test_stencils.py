"""Stencils by chance, written into arguments and into arrays of the function's own: the bits, the warnings, and what a
call that fails leaves behind."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import pyop

DTYPES = ["float64", "float32", "float64", "int32", "complex128", "longdouble", "bool"]


class Stencil:
    """A function made by chance; its text, and arguments for it."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        r = self.random
        self.ndim = int(r.choice([1, 2, 2, 2, 3, 3, 4]))
        self.dtype = np.dtype(str(r.choice(DTYPES)))
        longest = {1: 20000, 2: 260, 3: 40, 4: 12}[self.ndim]
        self.shape = tuple(int(r.integers(3, longest + 1)) for _ in range(self.ndim))
        self.step = tuple(int(r.choice([1, 1, 1, 1, 2])) for _ in range(self.ndim))
        # Of each axis: what is left out before and behind what is read together.
        self.around = tuple(int(r.choice([0, 1, 1])) for _ in range(self.ndim))
        lines = [self.write() for _ in range(int(r.integers(1, 4)))]
        if r.random() < 0.3:
            swap = "    u, v = v, u" if r.random() < 0.5 else "    u[0] = v[-1]"
            lines = [f"for _ in range({int(r.integers(1, 4))}):", *(f"    {line}" for line in lines), swap]
        own = r.random() < 0.3
        if own:
            lines.insert(0, "u = u * one")
        if r.random() < 0.4:
            lines.append(f"{r.choice(['u', 'v'])}[{int(r.integers(0, 2)) - 1}] = {r.choice(['one', 'v[0]', 'u[-1]'])}")
        if r.random() < 0.3 or own:  # what nobody reads need not be computed
            lines.append(f"return {r.choice(['u', 'u, v[1:]', 'u + v', 'u, v'])}")
        self.text = "def f(u, v, one):\n" + "".join(f"    {line}\n" for line in lines)

    def part(self, centre: bool = False) -> str:
        items = []
        for n, step, around in zip(self.shape, self.step, self.around, strict=True):
            shift = around if centre else int(self.random.integers(0, 2 * around + 1))
            end = shift - 2 * around
            behind = f":{step}" if step > 1 else ""
            items.append(f"{shift or ''}:{end or ''}{behind}" if n > 2 * around else f":{behind}")
        return ", ".join(items)

    def operand(self) -> str:
        kind = self.random.random()
        return "one" if kind < 0.15 else f"{self.random.choice(['u', 'v'])}[{self.part()}]"

    def write(self) -> str:
        r = self.random
        text = f"{r.choice(['u', 'v'])}[{self.part()}]"
        for _ in range(int(r.integers(0, 7))):
            operator = r.choice(["&", "|"] if self.dtype.kind == "b" else ["+", "-", "*", "+"])
            other = self.operand() if r.random() < 0.7 else f"({self.operand()} {operator} {self.operand()})"
            text = f"{text} {operator} {other}" if r.random() < 0.7 else f"({text}) {operator} {other}"
        sign = "" if r.random() < 0.8 or self.dtype.kind == "b" else r.choice(["+", "-", "*"])
        target = self.part(centre=bool(r.random() < 0.7))
        return f"{r.choice(['u', 'v'])}[{target}] {sign}= {text}"

    def arguments(self, seed: int):
        """Arrays of a kind by chance: plain, of a view, in Fortran order, sharing memory; with odd values."""
        r = np.random.default_rng(seed)
        arrays = []
        for _ in range(2):
            if self.dtype.kind == "b":
                x = r.integers(0, 2, self.shape).astype(self.dtype)
            elif self.dtype.kind == "i":
                x = r.integers(-9, 9, self.shape).astype(self.dtype)
            else:
                x = r.normal(size=self.shape).astype(self.dtype)
                if r.random() < 0.3:
                    with np.errstate(all="ignore"):
                        odd = np.array([np.inf, np.nan, -0.0, 1e-310, 1e300, 3e38, 1e-40]).astype(self.dtype)
                    x.reshape(-1)[r.integers(0, x.size, 3)] = r.choice(odd, 3)
            arrays.append(x)
        kind = r.choice(["plain"] * 4 + ["fortran", "view", "same", "shifted", "swapped", "misaligned"])
        if kind == "fortran":
            arrays = [np.asfortranarray(x) for x in arrays]
        elif kind == "view":
            wide = np.zeros((*self.shape[:-1], self.shape[-1] + 3), self.dtype)
            wide[..., 1:-2] = arrays[1]
            arrays[1] = wide[..., 1:-2]
        elif kind == "same":
            arrays[1] = arrays[0]
        elif kind == "shifted":
            both = np.zeros((self.shape[0] + 1, *self.shape[1:]), self.dtype)
            both[1:] = arrays[0]
            arrays = [both[1:], both[:-1]]
        elif kind == "swapped":
            arrays[0] = arrays[0].astype(self.dtype.newbyteorder())
        elif kind == "misaligned" and self.dtype.itemsize > 1:
            memory = np.zeros(arrays[0].nbytes + 1, np.uint8)[1:].view(self.dtype).reshape(self.shape)
            memory[...] = arrays[0]
            arrays[0] = memory
        return [*arrays, self.dtype.type(1)]


class Diffusion(Stencil):
    """Sums of shifted parts, less a product, times a number, added to the middle: as programs have them, or nearly."""

    def write(self) -> str:
        r = self.random
        if self.dtype.kind == "b" or r.random() < 0.2:
            return super().write()
        read, middle = r.choice(["u", "v"]), self.part(centre=True)
        centre = f"{read}[{middle}]"

        def times(what: str) -> str:
            number = r.choice(["one", "4", "0.1", "-2.5", "one", self.operand()])
            return f"{number} * {what}" if r.random() < 0.7 else f"{what} * {number}"

        text = " + ".join(f"{read}[{self.part()}]" for _ in range(int(r.integers(3, 8))))
        if r.random() < 0.7:
            text += f" - {times(centre if r.random() < 0.9 else self.operand())}"
        text = times(f"({text})")
        if r.random() < 0.7:
            other = centre if r.random() < 0.8 else self.operand()
            text = f"{other} + {text}" if r.random() < 0.7 else f"{text} + {other}"
        target = middle if r.random() < 0.8 else self.part(centre=True)
        if self.dtype.kind == "i":
            text = f"({text}).astype({self.dtype.name!r})"
        return f"{r.choice(['u', 'v'])}[{target}] {r.choice(['', '', '', '+', '*'])}= {text}"


@contextlib.contextmanager
def plain_warnings():
    """As a program has it that has changed nothing, but that warnings are kept."""
    with warnings.catch_warnings(record=True) as told, contextlib.redirect_stderr(io.TextIOWrapper(io.BytesIO())):
        warnings.resetwarnings()
        warnings.simplefilter("always")
        own, sys.__stderr__ = sys.__stderr__, sys.stderr
        try:
            yield told
        finally:
            sys.__stderr__ = own


def run(f, arguments, errors):
    """Results, and what was said, or raised."""
    with np.errstate(**errors), plain_warnings() as warned:
        try:
            result, told = f(*arguments), []
        except Exception as error:
            result, told = None, [type(error).__name__, str(error)[:60]]
    told += sorted(str(w.message).replace("scalar ", "") for w in warned)
    return result if isinstance(result, tuple) else (result,), told


def same(got, want):
    if want is None:
        return got is None
    mask = ~(np.isnan(want)) if want.dtype.kind in "fc" else np.ones(want.shape, bool)
    if got.dtype != want.dtype or got.shape != want.shape or not np.array_equal(got[mask], want[mask]):
        return False
    if want.dtype.kind == "f" and not np.array_equal(np.signbit(got[mask]), np.signbit(want[mask])):
        return False
    return want.dtype.kind not in "fc" or np.array_equal(np.isnan(got), np.isnan(want))


def check(seed: int, kind: type[Stencil] = Stencil) -> None:
    made = kind(seed)
    scope: dict = {"np": np}
    exec(made.text, scope)
    f = scope["f"]
    errors = {"all": str(made.random.choice(["ignore", "warn", "warn", "raise"]))}
    if made.dtype.kind == "c":  # which flags NumPy's product raises goes by how its operands lie
        errors = {"all": "ignore"}
    ways = [{}, {"threads": 2}] if made.random.random() < 0.3 else [{}]
    for way in ways:
        compiled = pyop.compile(f, **way)
        for turn in range(3):
            given, mine = made.arguments(10 * seed + turn), made.arguments(10 * seed + turn)
            wanted, said = run(f, given, errors)
            found, heard = run(compiled, mine, errors)
            text = f"seed {seed}, turn {turn}, {way}, {errors}, {made.shape} {made.dtype}\n{made.text}"
            assert heard == said, text
            assert len(found) == len(wanted), text
            for a, b in zip((*found, *mine[:2]), (*wanted, *given[:2]), strict=True):
                assert same(a, b), text


@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("start", range(0, 240, 40))
@pytest.mark.parametrize("kind", [Stencil, Diffusion])
def test_by_chance(start, kind):
    for seed in range(start, start + 40):
        check(seed, kind)


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore::pyop.RetraceWarning")
@pytest.mark.parametrize("start", range(1000, 21000, 500))
@pytest.mark.parametrize("kind", [Stencil, Diffusion])
def test_by_chance_for_long(start, kind):
    for seed in range(start, start + 500):
        check(seed, kind)


def heat(u, out):
    inner = u[1:-1, 1:-1]
    out[1:-1, 1:-1] = inner + 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * inner)


def arrays(n=90):
    random = np.random.default_rng(1)
    return random.random((n, n + 3)), random.random((n, n + 3))


@pytest.mark.parametrize("way", [{}, {"threads": 2}])
@pytest.mark.parametrize("n", [20, 90, 600])
def test_into_an_argument(n, way):
    compiled = pyop.compile(heat, **way)
    with plain_warnings():
        for dtype in (np.float64, np.float32):
            u, out = (x.astype(dtype) for x in arrays(n))
            want = out.copy()
            heat(u, want)
            for _ in range(2):
                compiled(u, out)
                np.testing.assert_array_equal(out, want)


def test_no_array_of_the_size_of_an_argument_is_made():
    import tracemalloc

    u, out = arrays(900)
    compiled = pyop.compile(heat)
    with plain_warnings():
        compiled(u, out)
        tracemalloc.start()
        try:
            compiled(u, out)
            assert tracemalloc.get_traced_memory()[1] < u.nbytes / 10
        finally:
            tracemalloc.stop()


def endings():
    """How a floating-point error may end in an exception."""
    yield "raise", np.errstate(over="raise"), lambda: None
    yield "error", contextlib.nullcontext(), lambda: warnings.simplefilter("error")
    yield "one category", contextlib.nullcontext(), lambda: warnings.filterwarnings("error", category=Warning)

    def replaced(*_):
        raise RuntimeError("not now")

    yield "shown by another", contextlib.nullcontext(), lambda: setattr(warnings, "showwarning", replaced)


@pytest.mark.parametrize(("name", "state", "prepare"), list(endings()), ids=lambda x: x if isinstance(x, str) else "")
def test_a_call_that_fails_has_written_nothing(name, state, prepare):
    compiled = pyop.compile(heat)
    u, out = arrays()
    compiled(u, out)
    u[-3, 5] = 1e308  # times four
    before = out.copy()
    with plain_warnings(), state:
        prepare()
        with pytest.raises((FloatingPointError, RuntimeWarning, RuntimeError)):
            compiled(u, out)
    np.testing.assert_array_equal(out, before)


def test_a_warning_does_not_stop_it():
    compiled = pyop.compile(heat)
    u, out = arrays()
    compiled(u, out)
    u[-3, 5] = 1e308
    want = out.copy()
    with np.errstate(all="ignore"):
        heat(u, want)
    with plain_warnings() as told:
        compiled(u, out)
    assert [str(w.message) for w in told] == ["overflow encountered in multiply"]
    np.testing.assert_array_equal(out, want)


CLOSED = """
import sys
import numpy as np
import pyop

def f(u, out):
    out[1:-1] = u[1:-1] * 4.0 - u[2:]

u, out = np.ones((100, 100)), np.ones((100, 100))
compiled = pyop.compile(f)
compiled(u, out)
u[-3, 5] = 1e308
before = out.copy()
sys.stderr.close()
try:
    compiled(u, out)
except ValueError:
    print((out == before).all())
"""


def test_nor_has_one_whose_warning_cannot_be_shown():
    done = subprocess.run([sys.executable, "-c", CLOSED], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip() == "True"


def two_at_once(u, v):
    du = u[1:-1, 1:-1] - v[1:-1, 1:-1]
    u[1:-1, 1:-1] = u[1:-1, :-2] + du
    v[1:-1, 1:-1] = v[2:, 1:-1] - du


def moved(u, v):
    u[1:] = u[:-1]
    v[:-1] = u[1:]


def in_place(u, v):
    u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[1:-1, 2:] + u[:-2, 1:-1] + u[1:-1, :-2])


def border(u, v):
    v[1:-1, 1:-1] = u[1:-1, 1:-1] * 0.5 + u[2:, 1:-1]
    v[0], v[-1] = v[1], 0.0
    v[:, 0] = v[:, -1]


def both_orders(u, v):
    old = v.copy()
    v[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1]
    return old, v


def whole(u, v):
    v[...] = u * 2.0 + v


def one_row(u, v):
    v[1:-1, 1:-1] = u[0, 1:-1] * 2.0


@pytest.mark.parametrize("f", [two_at_once, moved, in_place, border, both_orders, whole, one_row])
@pytest.mark.parametrize("way", [{}, {"threads": 2}, {"optimize": False}])
def test_programs(f, way):
    compiled = pyop.compile(f, **way)
    for n in (5, 40, 90):
        for quiet in (contextlib.nullcontext, plain_warnings):
            given, mine = arrays(n), arrays(n)
            want = f(*given)
            with quiet():
                for _ in range(2):
                    again = [x.copy() for x in mine]
                    got = compiled(*again)
            for a, b in zip((*again, *(got or ())), (*given, *(want or ())), strict=True):
                np.testing.assert_array_equal(a, b)
            assert got is None or got[-1] is again[1]


def test_threads_that_write_into_arrays_of_their_own():
    compiled = pyop.compile(heat)
    u, out = arrays(300)
    want = out.copy()
    heat(u, want)
    wrong: list[int] = []

    def work():
        mine = out.copy()
        for _ in range(20):
            compiled(u, mine)
        wrong.append(int((mine != want).sum()))

    with plain_warnings():
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == [0, 0]


@pytest.mark.parametrize(("f", "kernel"), [(heat, "add+add+add+multiply+subtract"), (in_place, "add+add+add")])
def test_what_runs(f, kernel):
    u, out = arrays(40)
    compiled = pyop.compile(f)
    compiled(u, out)
    assert f"kernel {kernel}" in str(compiled.plan_for(u, out).explain())


def jacobi(u):
    u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[1:-1, 2:] + u[:-2, 1:-1] + u[1:-1, :-2])


def far_before(u):
    u[3:, 2:] = u[:-3, :-2] + u[1:-2, 1:-1]


def next_to_it(u):
    u[1:, 1:] = u[:-1, :-1] * 2.0 + u[1:, :-1]


def from_all_sides(u):
    u[1:-1, 1:-1, 1:-1] = u[:-2, :-2, :-2] - u[2:, 2:, 2:] * u[1:-1, :-2, 2:]


def along(u):
    u[2:-1] = u[:-3] + u[3:] - u[1:-2]


def half_before(u):
    n = u.shape[0] // 2
    u[n:] = u[:n] + 1.0


@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        (jacobi, [(9, 10), (40, 700), (200, 33), (30, 2100), (300, 301)]),
        (far_before, [(11, 12), (90, 91), (200, 600)]),
        (next_to_it, [(10, 10), (90, 513), (400, 20)]),
        (from_all_sides, [(5, 10, 11), (12, 30, 31), (20, 40, 60)]),
        (along, [(12,), (1500,), (5000,)]),
        (half_before, [(20,), (4000,), (30, 40), (600, 30)]),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
@pytest.mark.parametrize("way", [{}, {"threads": 2}])
@pytest.mark.parametrize("errors", ["warn", "ignore", "raise"])
def test_what_is_read_is_written(f, shapes, way, errors):
    for shape in shapes:
        compiled = pyop.compile(f, **way)
        u = np.random.default_rng(3).random(shape)
        for dtype in (np.float64, np.float32):
            for value in (1.0, np.inf, np.finfo(dtype).max):
                given = u.astype(dtype)
                given.reshape(-1)[given.size // 2] = value
                mine = given.copy()
                for _ in range(2):
                    _, said = run(f, (given,), {"all": errors})
                    _, heard = run(compiled, (mine,), {"all": errors})
                    assert set(heard) == set(said)
                    np.testing.assert_array_equal(mine, given)


def test_no_array_of_what_is_written_is_made():
    import tracemalloc

    u, _ = arrays(900)
    compiled = pyop.compile(jacobi)
    with plain_warnings():
        compiled(u)
        tracemalloc.start()
        try:
            compiled(u)
            assert tracemalloc.get_traced_memory()[1] < u.nbytes / 10
        finally:
            tracemalloc.stop()
