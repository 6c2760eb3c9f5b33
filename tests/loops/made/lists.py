"""Functions whose loops change lists: appended to, popped from, indexed, counted, gone through, made anew, shared."""

from __future__ import annotations

import random

_KINDS = ("int", "float", "scalar", "pair", "truth", "mixed")
_HELPER = """
def keeps(items, x):
    items.append(x)
    return len(items)
def total(items):
    s = 0.0
    for v in items:
        s += float(v)
    return s
"""


class ListMaker:
    """Writes one function for a seed."""

    def __init__(self, seed: int) -> None:
        self.rg = random.Random(seed)
        self.lists = {name: self.pick(*_KINDS) for name in ("p", "q", "r")[: self.rg.randint(1, 3)]}
        self.counters: list[str] = []
        self.depth = 0
        self.names = 0
        self.through: list[str] = []  # lists that a loop goes through

    def pick(self, *items: str) -> str:
        return self.rg.choice(items)

    def rare(self, chance: float) -> bool:
        return self.rg.random() < chance

    # --- expressions

    def whole(self) -> str:
        i = self.rg.choice(self.counters) if self.counters else "3"
        name = self.rg.choice(list(self.lists))
        return self.pick(i, i, "k", "2", f"len({name})", f"int(abs(x[{i} % n]) * 3)", f"{i} % 3", f"{i} + k", "-1")

    def real(self) -> str:
        i = self.rg.choice(self.counters) if self.counters else "3"
        return self.pick(f"float(x[{i} % n])", "t", "0.5", f"t * float(a[{i} % n])", "t + 1.0", "c")

    def scalar(self) -> str:
        i = self.rg.choice(self.counters) if self.counters else "3"
        return self.pick(f"x[{i} % n]", f"a[{i} % n] * 0.5", "s", f"x[{i} % n] + s", f"np.abs(x[{i} % n])")

    def truth(self) -> str:
        return self.pick("True", "k > 3", "flag", f"len({self.rg.choice(list(self.lists))}) > 2")

    def item(self, kind: str) -> str:
        if self.rare(0.01):
            kind = self.pick(*_KINDS)
        if kind == "mixed":
            kind = self.pick("int", "float", "scalar")
        if kind == "pair":
            return f"({self.whole()}, {self.pick(self.real(), self.scalar())})"
        return {"int": self.whole, "float": self.real, "scalar": self.scalar, "truth": self.truth}[kind]()

    def test(self) -> str:
        i = self.rg.choice(self.counters) if self.counters else "3"
        name = self.rg.choice(list(self.lists))
        simple = self.pick(
            *(f"x[{i} % n] > {self.pick('0.0', '0.5', 's', 't')}", f"a[{i} % n] < 0.4", f"{i} % 2 == 0", "k < 4"),
            *(f"{name}", f"not {name}", f"len({name}) < {self.pick('3', '5', 'k')}", "flag", f"{i} > 2"),
        )
        return simple if self.rare(0.75) else f"{simple} {self.pick('and', 'or')} {self.test()}"

    def index(self, name: str) -> str:
        i = self.rg.choice(self.counters) if self.counters else "0"
        return self.pick("-1", "0", f"{i} % len({name})", "k % len(" + name + ")", f"-1 - {i} % len({name})", "-2", i)

    # --- statements

    def read(self, name: str, at: str) -> list[str]:
        """Read an item into what is carried."""
        kind, item = self.lists[name], f"{name}[{at}]"
        if kind == "pair":
            return [self.pick(f"s += {item}[1]", f"u, s = {item}", f"u = {item}", f"t = float({item}[1])")]
        if kind == "int":
            return [self.pick(f"k = {item} % 7", f"k += {item}", f"t = t * 0.5 + {item}", f"s = x[{item} % n]")]
        if kind == "truth":
            return [self.pick(f"flag = {item}", f"k += 1 if {item} else 0")]
        return [self.pick(f"s = s * 0.5 + {item}", f"t = float({item})", f"u = {item}", f"s = max(s, {item})")]

    def guarded(self, name: str, lines: list[str]) -> list[str]:
        if self.rare(0.04):
            return lines
        return [f"if {self.pick(name, name, f'len({name}) > 1', f'len({name}) != 0')}:", *("    " + x for x in lines)]

    def simple(self) -> list[str]:
        name = self.rg.choice(list(self.lists))
        kind = self.lists[name]
        if name in self.through:  # what grows while it is gone through has no end
            return self.guarded(name, self.read(name, self.index(name)))
        what = self.rg.random()
        if what < 0.35:
            grown = f"{name}.append({self.item(kind)})"
            return [f"if len({name}) < 25: {grown}" if len(self.counters) > 1 or self.through else grown]
        if what < 0.45:
            popped = self.pick(f"u = {name}.pop()", f"{name}.pop()", f"{name}.pop()")
            return self.guarded(name, [popped])
        if what < 0.6:
            return self.guarded(name, self.read(name, self.index(name)))
        if what < 0.7:
            return self.guarded(name, [f"{name}[{self.index(name)}] = {self.item(kind)}"])
        if what < 0.78 and kind in ("int", "float", "scalar"):
            return self.guarded(name, [f"{name}[{self.index(name)}] {self.pick('+', '-', '*')}= {self.item(kind)}"])
        if what < 0.79:
            return [self.pick(f"{name} = []", f"z = {name}", f"k = keeps({name}, 1)", f"t = total({name})")]
        if what < 0.8:
            return [self.pick(f"{name} = {name} + [1]", f"{name} += [2]", f"{name}.sort()", f"{name}.insert(0, 1)")]
        return [self.pick("k += 1", f"s = {self.scalar()}", f"t = {self.real()}", f"flag = {self.truth()}", "s *= 0.5")]

    def block(self, most: int = 2) -> list[str]:
        return [line for _ in range(self.rg.randint(1, most)) for line in self.statement()]

    def statement(self) -> list[str]:
        what = self.rg.random()
        if self.depth >= 3 or what < 0.5:
            return self.simple()
        self.depth += 1
        made = self.compound(what)
        self.depth -= 1
        return made

    def compound(self, what: float) -> list[str]:
        def inside(lines: list[str]) -> list[str]:
            return ["    " + line for line in lines]

        if what < 0.75:
            made = [f"if {self.test()}:", *inside(self.block())]
            if self.rare(0.5):
                made += ["else:", *inside(self.block())]
            if self.counters and self.rare(0.1):
                made += [f"if {self.test()}: {self.pick('continue', 'break')}"]
            return made
        if what < 0.82:
            name = self.rg.choice(list(self.lists))
            self.through.append(name)
            made = [f"for v in {name}:", *inside(self.pick_sum(name)), *inside(self.block(1))]
            self.through.pop()
            return made
        if what < 0.87:
            name = self.rg.choice(list(self.lists))
            return ["b = 0", f"while {name} and b < 9:", "    b += 1", f"    {name}.pop()", *inside(self.block(1))]
        if what < 0.91:
            self.names += 1
            name, kind = f"row{self.names}", self.pick(*_KINDS)
            self.lists[name] = kind
            made = [f"{name} = []", *self.loop(), self.pick(f"k = len({name})", f"s = s + len({name})", "k = k")]
            del self.lists[name]
            return made
        return self.loop()

    def pick_sum(self, name: str) -> list[str]:
        kind = self.lists[name]
        return {"pair": ["s += v[1]"], "truth": ["k += 1 if v else 0"]}.get(kind, ["s = s * 0.5 + v"])

    def loop(self) -> list[str]:
        i = "ijlm"[len(self.counters)] if len(self.counters) < 4 else "m"
        outer = self.counters[-1] if self.counters else "2"
        head = self.pick(
            *(f"for {i} in range(n):", f"for {i} in range(n):", f"for {i} in range(n - 1, -1, -1):"),
            *(f"for {i} in range({outer} % 3 + 1):", f"for {i}, e in enumerate(x):", f"for {i} in range(1, 12):"),
        )
        self.counters.append(i)
        body = self.block(3)
        self.counters.pop()
        return [head, *("    " + line for line in body)]

    def start(self, name: str, kind: str) -> str:
        if self.rare(0.5):
            return f"{name} = []"
        if self.rare(0.3):
            return f"{name} = [{self.item(kind)}] * {self.pick('4', 'n')}"
        return f"{name} = [{', '.join(self.item(kind) for _ in range(self.rg.randint(1, 3)))}]"

    def source(self) -> str:
        lines = ["n = len(x); s = x[0]; k = 0; t = 0.25; flag = True; u = 0; z = None; e = 0.0; v = 0; b = 0"]
        lines += ["i = j = l = m = 0"]
        lists = dict(self.lists)
        self.lists = {}
        for name, kind in lists.items():
            self.lists[name] = kind  # one of which nothing is read before it is bound
            lines += [f"{name} = []", self.start(name, kind)]
        for _ in range(self.rg.randint(1, 2)):
            lines += self.loop()
        results = ["s", "k", "t", "flag"]
        for name, kind in self.lists.items():
            if self.rare(0.3):
                lines += [f"{name}.append({self.item(kind)})"]
            if self.rare(0.2):
                lines += self.guarded(name, self.read(name, self.pick("0", "-1")))
            if self.rare(0.2):
                lines += [f"for v in {name}:", *("    " + line for line in self.pick_sum(name))]
            array = f"np.array({name}{self.pick('', ', dtype=float')})" if kind != "pair" else f"len({name})"
            results += [self.pick(name, name, array, f"len({name})")]
        if self.rare(0.1):
            results += ["z"]
        if self.rare(0.2):
            results += ["u"]
        body = "\n".join("    " + line for line in [*lines, f"return {', '.join(results)}"])
        return f"import numpy as np\n{_HELPER}\ndef f(x, a, c):\n{body}\n"


def program(seed: int) -> str:
    """Return the source of ``f(x, a, c)``."""
    return ListMaker(seed).source()
