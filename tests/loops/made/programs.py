"""Functions with random loops: branches, carried numbers, triangular bounds, swaps, writes into arguments.

With places, some of their variables are attributes of an object, or items of a list or dict.
"""

from __future__ import annotations

import random
import re

_SCALARS = ("s", "u", "q")
_ARRAYS = ("x", "y", "z", "w")
_PLACED = ("s", "u", "q", "y", "z", "w", "k", "t", "flag", "v", "row", "m", "new", "d", "late")
_INTS = (
    *("int(np.argmax(x))", "int((a > 0.4).sum())", "round(x[0] * 2)", "math.floor(a[1] * 5)", "n - int(a[0] * 3)"),
    *("int(x.sum()) % 4", "int(np.argmin(a)) + 1"),
)
_BOX = """
class Base:
    scale = 0.5
    def drift(self):
        self.held = self.held * 0.9 + 0.1
class Box(Base):
    def __init__(self, held):
        self.held = held
        self.count = 0
        self.mine = [held * 2.0, 0.5]
    def kick(self, by):
        self.held[1:] += self.scale * by
        self.count += 1
    def store(self, i):
        self.mine[0][i] = self.held[0]
        self.mine[1] = self.mine[1] + self.held[i] * 0.1
    @property
    def energy(self):
        return self.held[1] * self.scale
    @energy.setter
    def energy(self, x):
        self.held[1] = x
"""


class Maker:
    """Writes one function for a seed."""

    def __init__(self, seed: int, placed: bool = False, numbers: bool = False, states: bool = False) -> None:
        self.placed = placed
        self.states = states  # variables that are None or a text
        self.numbers = numbers  # of Python: math, int, float, items of lists
        self.rg = random.Random(seed)
        self.depth = 0
        self.counters: list[str] = []

    def pick(self, *items: str) -> str:
        return self.rg.choice(items)

    def index(self) -> str:
        if not self.counters or self.rg.random() < 0.1:
            return self.pick("0", "-1", "2", "k % 5")
        i = self.rg.choice(self.counters)
        return self.pick(i, i, i, f"{i} - 1", f"-{i}", f"({i} + 1) % n", f"{i} % 3", f"n - 1 - {i}", f"{i} // 2")

    def span(self) -> str:
        i = self.rg.choice(self.counters) if self.counters else "3"
        return self.pick(f"{i}:", f":{i}", "1:", ":-1", "::2", f"{i} - 1:{i} + 2", ":", f"{i}:{i} + 2", "::-1")

    def element(self) -> str:
        if self.rg.random() < 0.25:
            return f"m[{self.index()}, {self.index()}]"
        return f"{self.rg.choice(_ARRAYS)}[{self.index()}]"

    def number(self) -> str:
        """Return a number as Python makes it of others."""
        i = self.rg.choice(self.counters) if self.counters else "3"
        return self.pick(
            f"math.{self.pick('sin', 'atan', 'tanh', 'exp')}({self.pick('s', 'u', 't', 'c', self.element(), i)})",
            f"math.sqrt({self.pick('abs(s)', 'c', 'x[2] * x[2]', 's', self.element())})",
            f"math.{self.pick('atan2', 'copysign', 'pow')}({self.pick('s', self.element())}, {self.pick('t', '2')})",
            f"float({self.pick('s', 'k', self.element(), 'y.sum()', i)})",
            f"int({self.pick('s', self.element(), f'{self.element()} * 7', 'k', 'flag')})",
            f"{self.pick('round', 'math.floor', 'math.ceil')}({self.pick('s', self.element(), 'u')})",
            f"table[{self.pick('k % 3', i + ' % 3', f'int(abs({self.element()})) % 3', f'{i} // 4')}]",
            f"pair[{self.pick('k % 2', i + ' % 2')}]",
            f"abs({self.pick('k - 3', i + ' - 4', 's', 'u - 1')})",
            f"({self.pick('t', 'c', self.element())} ** {self.pick('2', '3', '0.5')})",
            f"({self.pick('k', i)} {self.pick('//', '%')} {self.pick('2', '3', '7')})",
            f"({self.test()})",
            f"({self.pick('k', i)} {self.pick('&', '|', '^')} {self.pick('k', i, '3', '-2')})",
            f"({self.pick('k', i)} {self.pick('>>', '<<')} {self.pick('1', '2')})",
        )

    def scalar(self) -> str:
        k = self.rg.random()
        i = self.rg.choice(self.counters) if self.counters else "n"
        if self.numbers and k > 0.75:
            return self.number()
        if k < 0.35:
            return self.element()
        if k < 0.6:
            return self.rg.choice(_SCALARS)
        if k < 0.7:
            return self.pick(i, "k", "k", f"{i} * 0.5", f"({i} + k)", "c", "t", "f32[2]", "b[1]", f"b[{self.index()}]")
        if k < 0.78:
            one, two = self.scalar(), self.scalar()
            return self.pick(f"min({one}, {two})", f"max(0.0, {one})", f"max({one}, {two}, 1)", f"min({i}, 3)")
        if k < 0.84:
            return self.pick(
                f"np.dot(x[:{i}], y[:{i}])", f"(m[{self.index()}] @ y)", f"x[{self.span()}].sum()", "abs(s)"
            )
        if k < 0.88:
            return f"({self.scalar()} if {self.test()} else {self.scalar()})"
        op = self.pick("+", "-", "*", "+", "*", "/")
        right = self.scalar() if op != "/" else self.pick("2.0", "3", "1.5")
        return f"({self.scalar()} {op} {right})"

    def test(self) -> str:
        i = self.rg.choice(self.counters) if self.counters else "k"
        plain = self.pick(
            f"{self.scalar()} > {self.pick('0.3', '0', 's', 'u')}",
            f"{self.scalar()} <= {self.element()}",
            f"{i} % 2 == 0",
            f"{i} > 2",
            f"{i} != k",
            f"{self.element()} == {self.element()}",
            "flag",
            "not flag",
        )
        if self.rg.random() < 0.2:
            return f"{plain} {self.pick('and', 'or')} {self.test()}"
        return plain

    def truths(self) -> str:
        """Return a statement with the values of ``and``, ``or`` and ``not``, whichever operand they are."""
        word = self.pick("and", "or")
        return self.pick(
            f"flag = {self.test()}",
            f"flag = ({self.test()}) {word} ({self.test()})",
            f"flag = not ({self.test()})",
            f"late = {self.scalar()} {word} {self.scalar()}",
            f"late = ({self.test()}) {word} {self.scalar()}",
            f"flag = 0.1 < {self.scalar()} <= {self.pick('0.7', 's', 'c')}",
            f"late = {self.scalar()} if {self.test()} else {self.pick('0', 'True', '1.5')}",
        )

    def of_states(self) -> list[str]:
        """Return a statement with what is None or something else, or one of a few texts."""
        i = self.rg.choice(self.counters) if self.counters else "k"
        what = self.pick("s", "u", i, "k", "t", self.element(), "float(s)", "None", "y * 0.5", "(s, u)")
        asks = self.pick("found is None", "found is not None", "found", "not found")
        asks = "None is found" if self.rg.random() < 0.02 else asks  # not lifted
        tests = [asks, f"{asks} {self.pick('and', 'or')} {self.test()}", f"({self.test()}) and {asks}"]
        tests += [f"mode {self.pick('==', '!=')} {self.pick('first', 'second', 'third')!r}"] * 2
        tests += ["mode == 'first' and found is not None", "mode is None", "mode in ('first', 'third')"]
        return self.rg.choice(
            [
                [f"if {self.rg.choice(tests)}:", *self.indented(1), "else:", *self.indented(1)],
                [f"if {asks}:", f"    {self.pick('found', 'first_one')} = {what}"],
                [
                    "if found is not None:",
                    f"    {self.pick('s += found', 'u = found', 'q = found * 2', 'found = None')}",
                ],
                [
                    "if found is None:",
                    f"    found = {what}",
                    "else:",
                    f"    {self.pick('s = s + found', 'found += 1')}",
                ],
                [f"if {self.test()}:", f"    mode = {self.pick('first', 'second', 'third')!r}"],
                [f"mode = 'second' if {self.test()} else mode"],
                [f"if {self.test()}:", f"    found = {what}"],
                [self.pick("mode = None", "first_one = found", "mode = 'first'", "found = None", f"found = {what}")],
            ]
        )

    def statement(self) -> list[str]:
        if self.states and self.rg.random() < 0.3:
            return self.of_states()
        if self.numbers and self.rg.random() < 0.12:
            return [self.truths()]
        if self.placed and self.rg.random() < 0.15:
            return [self.of_the_object()]
        k = self.rg.random()
        if k < 0.2:
            return [f"{self.element()} {self.pick('=', '+=', '*=', '=')} {self.scalar()}"]
        if k < 0.4:
            name = self.rg.choice(_SCALARS)
            return [f"{name} {self.pick('=', '+=', '-=', '=')} {self.scalar()}"]
        if k < 0.48:
            name = self.rg.choice(_ARRAYS[1:])
            what = self.pick(
                "y * 0.5", "z + y", "w - x", "y * s", "np.sin(z)", "x.copy()", "y", "z", "np.where(y > z, y, z)"
            )
            return [f"{name} = {what}"]
        if k < 0.52:
            return [self.pick("y, z = z, y", "z, w = w, z", "s, u = u, s", "s, u = u, s + u", "x, y = y, x")]
        if k < 0.58:
            return [f"{self.rg.choice(_ARRAYS)}[{self.span()}] {self.pick('=', '+=', '*=')} {self.scalar()}"]
        if k < 0.62:
            return [
                self.pick("k += 1", "k += 2", "k -= 1", "t += 0.5", "t = t * 0.5", "flag = not flag", "flag = s > u")
            ]
        if k < 0.65:
            return [
                self.pick("v *= 0.9", "v = y[2:]", "v[0] = s", "row = m[1]", "row += 0.1", "f32[1] = s", "b[2] = k")
            ]
        if k < 0.67:
            return [
                self.pick("y += z", "z -= 0.5", "x *= 0.9", "f32 *= 0.5", "f32 = f32 * t", "d = (s, u)", "s = d[0]")
            ]
        if k < 0.82:
            lines = [f"if {self.test()}:", *self.indented(1)]
            if self.rg.random() < 0.5:
                lines += ["else:", *self.indented(1)]
            elif self.rg.random() < 0.2 and self.depth:
                lines += ["elif " + self.test() + ":", "    " + self.pick("continue", "s = 0.0", "u = 1.0")]
            return lines
        if k < 0.87 and self.depth:
            return [f"if {self.test()}:", "    " + self.exit()]
        if k < 0.9 and self.depth:
            return [self.pick("new = y * 0.5", "new = s + 1.0", "y, new = new, y", "y = new", "z = new", "new = y + z")]
        if self.depth < 2:
            return self.loop() if self.rg.random() < 0.7 else self.while_loop()
        return [f"s = {self.scalar()}"]

    def of_the_object(self) -> str:
        i = self.index()
        return self.pick(
            *("o.drift()", "o.kick(s)", f"o.kick({self.element()})", f"o.store({i})", "s = o.energy", "o.energy = u"),
            *(f"o.held[{i}] += {self.scalar()}", "o.held = y", "y = o.held", "o.count += 2", "o.held, z = z, o.held"),
            *(
                "o.mine[0] = o.held",
                "o.mine.append(s)",
                "o.fresh = s",
                "o.scale = 0.25",
                "q = o.count",
                "o.held = z * s",
            ),
        )

    def exit(self) -> str:
        return self.pick(
            "continue",
            "break",
            "break",
            f"return s, u, q, z, w, m, f32, b, k, t, flag, {self.pick('y', 'new', 's * 2', self.element())}",
            f"return y, s, u, q, z, w, m, f32, b, k, t, flag, i, {self.element()}",
            "raise ValueError('late')",
        )

    def behind(self) -> list[str]:
        return ["else:", *self.indented(1)] if self.rg.random() < 0.15 else []

    def while_loop(self) -> list[str]:
        """One that ends, for it counts."""
        name = f"p{self.depth}"
        most = self.pick("3", "9", "12", "20", "n")
        test = self.rg.choice([f"{name} < {most} and ({self.test()})", f"({self.test()}) and {name} < {most}"])
        lines = [f"{name} = 0", f"while {self.rg.choice([f'{name} < {most}', test, 'True'])}:", f"    {name} += 1"]
        if lines[1] == "while True:":
            lines += [f"    if {name} > {most}{self.pick('', f' or {self.test()}')}:", "        break"]
        self.counters.append(name)
        self.depth += 1
        lines += self.indented(3 if self.depth == 1 else 2)
        self.depth -= 1
        self.counters.pop()
        return [*lines, *self.behind()]

    def indented(self, most: int) -> list[str]:
        return ["    " + line for _ in range(self.rg.randint(1, most)) for line in self.statement()]

    def loop(self) -> list[str]:
        name = "ijl"[self.depth] if self.rg.random() > 0.06 else "i"
        outer = self.rg.choice(self.counters) if self.counters else None
        bounds = ["n", "1, n", "n - 1, -1, -1", "9", "0, n, 2", "3", "2, 9"]
        if outer:
            bounds += [outer, f"{outer} + 1, n", f"{outer}, n", f"{outer}, -1, -1", f"{outer} - 1", f"n - {outer}"] * 2
        head = f"for {name} in range({self.rg.choice(bounds)}):"
        k = self.rg.random()
        if k < 0.08:
            head = f"for {name}, e in enumerate({self.pick('x', 'y', 'm')}):"
        elif k < 0.14:
            head = f"for {name} in reversed(range({self.rg.choice(bounds)})):"
        elif k < 0.2:
            head = f"for {name}, (e, g) in enumerate(zip(x, {self.pick('y', 'z')})):"
        self.counters.append(name)
        self.depth += 1
        body = self.indented(3 if self.depth == 1 else 2)
        if self.depth == 1 and self.rg.random() < 0.15:
            body.append("    " + self.pick("box[0] = s", "box[1] = y", "late = s", "g = s", "first = s * 2"))
        if self.rg.random() < 0.1:
            body.append(f"    new = {self.pick('y * s', 'x + z', 's * 0.5')}")
            body += [f"    if {self.test()}:", "        " + self.exit()]
            body.append(f"    {self.pick('y', 'z', 's')} = new")
        self.depth -= 1
        self.counters.pop()
        return [head, *body, *self.behind()]

    def source(self) -> str:
        first = self.pick("s = 0.0", "s = 0", "s = x[0]", "s = 1.5", "s = 0.0")
        second = self.pick("u = 0.0", "u = x[1]", "u = 2", "u = q = 0.0")
        lines = ["import numpy as np", "def f(x, a, c):", "    n = len(x)", "    q = x[2]; e = g = 0.0"]
        if self.numbers:
            lines[:1] = ["import math", "import numpy as np"]
            lines += [
                f"    table = {self.pick('[1, 5, 2]', '[0.5, 2.0, -1.0]', '[x[0], x[1], x[2]]')}; pair = (True, False)"
            ]
        if self.states:
            lines += [f"    found = first_one = {self.pick('None', 'None', 's0', '0')}; mode = 'first'"]
            lines[-1] = lines[-1].replace("s0", "x[1]")
        lines += ["    if n < 0: first = new = 0.0"]
        count = self.pick("0", "0", *_INTS) if self.numbers else "0"
        lines += [f"    {first}; {second}; k = {count}; t = 0.25; flag = {self.pick('True', 'False')}; late = 1.0"]
        lines += ["    y = x * 0.5 + 0.1; z = a + 1.0; w = np.zeros(n); m = np.outer(x, x); i = j = l = 0"]
        lines += [
            "    v = y[1:]; row = m[0]; p0 = p1 = 0; f32 = x.astype(np.float32); b = np.arange(n); d = (x[0], x[1])"
        ]
        if self.rg.random() < 0.6:
            lines += ["    new = y + 1.0"]
        if self.rg.random() < 0.3:
            lines += ["    " + self.pick("w = y", "z = a", "y = x", "w = z[:]", "y = a")]
        boxed = self.rg.random() < 0.2
        lines += ["    box = [y, z]"] if boxed else ["    box = [0.0, x[0]]"]
        for _ in range(self.rg.choice((1, 1, 2))):
            loop = self.loop() if self.rg.random() < 0.7 else self.while_loop()
            lines += ["    " + line for line in loop]
        last = self.pick("new", "p0", "first", "v", "row", "late", "box[0]", "i", "j", "box[1]", "d", "e", "g", "i")
        if self.states:
            last += ", found, first_one, mode"
        if self.placed:
            lines.insert(2, "    o = Box(x * 0.7); L = [None] * 4; D = {}")
            last += ", o.held, o.count, o.mine, o.scale"
        lines += [f"    return s, u, q, y, z, w, m, f32, b, k, t, flag, {last}"]
        return self.with_places("\n".join(lines) + "\n") if self.placed else "\n".join(lines) + "\n"

    def with_places(self, source: str) -> str:
        names = self.rg.sample(_PLACED, self.rg.randint(0, 5))
        places = (
            [f"L[{j}]" for j in range(4)] + [f"D['{name}']" for name in names] + [f"o.{name}" for name in names] * 2
        )
        for name in names:
            place = places.pop(self.rg.randrange(len(places)))
            source = re.sub(rf"(?<![.'\w]){name}(?![\w'(])", place, source)
        return source.replace("def f", f"{_BOX}def f", 1)


def program(seed: int, placed: bool = False, numbers: bool = False, states: bool = False) -> str:
    """The source of ``f(x, a, c)``."""
    return Maker(seed, placed, numbers, states).source()
