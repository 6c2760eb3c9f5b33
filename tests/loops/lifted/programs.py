"""Functions whose every expression tells when it is evaluated, under control flow of any kind."""

from __future__ import annotations

import random

_NAMES = ("a", "b", "c", "d")


class Maker:
    """Writes one function for a seed. ``_(k, x)`` notes that expression k was evaluated, and returns x."""

    def __init__(self, seed: int) -> None:
        self.rg = random.Random(seed)
        self.number = 0
        self.depth = self.nested = 0
        self.loops = 0
        self.functions = self.whiles = 0
        self.in_lambda = False

    def pick(self, *items: str) -> str:
        return self.rg.choice(items)

    def note(self, x: str) -> str:
        self.number += 1
        return f"_({self.number}, {x})"

    def value(self) -> str:
        k = self.rg.random()
        self.depth += 1
        try:
            if k < 0.45 or self.depth > 2:
                return self.note(self.pick(*_NAMES, "0", "1", "2", "-1", "x[0]", "x[1]", "o.v", "len(x)"))
            if k < 0.45:
                return f"({self.value()} {self.pick('+', '-', '*', '%', '//')} {self.value()})"
            if k < 0.6:
                return f"({self.value()} if {self.test()} else {self.value()})"
            if k < 0.68:
                return f"({self.value()} {self.pick('and', 'or')} {self.value()})"
            if k < 0.72:
                return f"({self.value()} < {self.value()} <= {self.value()})"
            if k < 0.76:
                return f"o.add({self.value()}, by={self.value()})"
            if k < 0.8:
                return f"x[{self.value()} % 3]"
            if k < 0.83:
                return f"(not {self.value()})"
            if k < 0.86 and not self.in_lambda:
                return f"({self.pick(*_NAMES)} := {self.value()})"
            if k < 0.89:
                return f"[{self.value()}, {self.value()}][{self.pick('0', '1', '-1')}]"
            if k < 0.92:
                return f"sum([{self.note('q')} for q in range({self.pick('0', '2', '3')}) if {self.note('q')} % 2])"
            if k < 0.94:
                return f"{self.pick('min', 'max')}({self.value()}, {self.value()})"
            if k < 0.96:
                return f"any({self.note('q')} > 1 for q in range(3))"
            if k < 0.98:
                self.in_lambda, before = True, self.in_lambda
                made = f"(lambda y: y if {self.test()} else {self.value()})({self.value()})"
                self.in_lambda = before
                return made
            return f"len(f'{{{self.value()}}}')"
        finally:
            self.depth -= 1

    def test(self) -> str:
        k = self.rg.random()
        self.depth += 1
        try:
            if k < 0.5 or self.depth > 2:
                return f"{self.value()} {self.pick('<', '>', '==', '!=', '>=')} {self.value()}"
            if k < 0.6:
                return f"{self.value()} < {self.value()} < {self.value()}"
            if k < 0.75:
                return f"({self.test()} {self.pick('and', 'or')} {self.test()})"
            if k < 0.82:
                return f"not {self.test()}"
            if k < 0.9:
                return f"truth({self.value()})"
            if k < 0.93:
                return f"isinstance({self.value()}, int)"
            if k < 0.96:
                return f"({self.value()}) {self.pick('is', 'is not')} None"
            return self.value()
        finally:
            self.depth -= 1

    def target(self) -> str:
        return self.pick(*_NAMES, *_NAMES, f"x[{self.value()} % 3]", "o.v", "a, b", "(c, (d, b))", "a, *t")

    def block(self) -> list[str]:
        self.nested += 1
        made = [line for _ in range(self.rg.choice((1, 1, 2))) for line in self.statement()]
        self.nested -= 1
        return [f"    {line}" for line in made]

    def statement(self) -> list[str]:
        k = self.rg.random()
        if self.nested > 2 or k < 0.25:
            return self.simple()
        if k < 0.45:
            made = [f"if {self.test()}:", *self.block()]
            while self.rg.random() < 0.3:
                made += [f"elif {self.test()}:", *self.block()]
            return [*made, "else:", *self.block()] if self.rg.random() < 0.5 else made
        if k < 0.68:
            return self.loop()
        if k < 0.74:
            return self.handled()
        if k < 0.79:
            return [f"with {self.pick('manager', 'manager', 'swallow')}({self.value()}) as a:", *self.block()]
        if k < 0.83:
            cases = [("0", ""), ("int()", f" if {self.test()}"), ("_", "")]
            return [
                f"match {self.value()}:",
                *[f"    {line}" for pattern, guard in cases for line in (f"case {pattern}{guard}:", *self.block())],
            ]
        if k < 0.86 and self.functions < 3:
            self.functions += 1
            name = f"g{self.functions}"
            loops, self.loops = self.loops, 0
            made = [
                f"def {name}(a, b=1):",
                "    c = d = 0",
                *self.block(),
                f"    return {self.value()}",
                f"a = {name}({self.value()})",
            ]
            self.loops = loops
            return made
        return self.leaving()

    def leaving(self) -> list[str]:
        k = self.rg.random()
        if self.loops and k < 0.6:
            return [self.pick("break", "continue", f"if {self.test()}: break", f"if {self.test()}: continue")]
        if k < 0.8:
            return [self.pick(f"return {self.value()}", "return", f"if {self.test()}: return {self.value()}")]
        if k < 0.9:
            return [f"assert {self.test()}, {self.value()}"]
        return [f"raise {self.pick('ValueError', 'KeyError')}({self.value()})"]

    def simple(self) -> list[str]:
        k = self.rg.random()
        if k < 0.5:
            target = self.target()
            if "," in target:
                value = f"({self.value()}, ({self.value()}, {self.value()}))"
                return [f"{target} = {value}"]
            return [f"{target} = {self.value()}"]
        if k < 0.75:
            target = self.pick(
                *_NAMES,
                f"x[{self.value()} % 3]",
                "o.v",
                "o.w[0]",
                f"x[:{self.note('1')}]",
                f"o[{self.value()}, {self.value()}:]",
            )
            return [f"{target} += {f'([1] if {self.test()} else [2])' if '[:' in target else self.value()}"]
        if k < 0.85:
            return [self.value()]
        if k < 0.9:
            return [f"{self.pick(*_NAMES)}: int = {self.value()}"]
        if k < 0.95:
            return [f"del {self.pick('x[-1:]', 'o.w[1:]')}"]
        return ["pass"]

    def loop(self) -> list[str]:
        self.loops += 1
        if self.rg.random() < 0.6:
            items = self.pick(
                "range(3)", "x[:3]", "enumerate(x[:2])", "reversed(range(4))", "zip(x[:3], range(3))", "gen(3)"
            )
            target = "i, a" if items.startswith(("enum", "zip")) else self.pick("i", "a", "o.v", "x[0]")
            made = [f"for {target} in {self.note(items) if self.rg.random() < 0.5 else items}:", *self.block()]
        else:
            test = self.pick("True", self.test(), self.test())
            self.whiles += 1
            n = f"n{self.whiles}"
            made = [f"{n} = 0", f"while {test}:", f"    {n} += 1", f"    if {n} > 4: break", *self.block()]
        self.loops -= 1
        if self.loops > 0 and self.rg.random() < 0.2:  # what is behind this loop leaves the one around it
            return [*made, "else:", f"    if {self.test()}: {self.pick('break', 'continue')}"]
        return [*made, "else:", *self.block()] if self.rg.random() < 0.35 else made

    def handled(self) -> list[str]:
        made = ["try:", *self.block()]
        if self.rg.random() < 0.7:
            made += [
                f"except {self.pick('ValueError', '(KeyError, AssertionError)', 'Exception')} as e:",
                *self.block(),
            ]
            if self.rg.random() < 0.4:
                made += ["else:", *self.block()]
            return [*made, "finally:", *self.block()] if self.rg.random() < 0.4 else made
        return [*made, "finally:", *self.block()]


def program(seed: int) -> str:
    """Return the source of a function ``f(x, a, o, _, gen, manager, swallow, truth)``."""
    maker = Maker(seed)
    body = [line for _ in range(maker.rg.choice((1, 2, 3))) for line in maker.statement()]
    head = ["def f(x, a, o, _, gen, manager, swallow, truth):", "    b, c, d, i = 1, 2, 0, 0"]
    return "\n".join([*head, *[f"    {line}" for line in body], f"    return a, b, c, d, {maker.value()}", ""])
