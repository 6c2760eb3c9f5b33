"""A script: its text, the arguments of its calls, and what happens between them."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from .world import around, change, filled

ARRAYS, SCALARS = "AB", "ST"
# {A}: an array, {S}: a scalar, {o}: the object, {t}: the Python number; `A2` is a new array, `S2` a new scalar.
STATEMENTS = (
    "A2 = {A} * {t}",
    "A2 = {A} + {S}",
    "A2 = act({A})",
    "A2 = WAYS['f']({A})",
    "A2 = state.act({A})",
    "A2 = helper({A})",
    "A2 = part({A})",
    "A2 = inner({A})",
    "A2 = tanh({A}) * SCALE",
    "A2 = num.{ufunc}({A})",
    "A2 = abs({A}) + len({A})",
    "A2 = {A} * TABLE[0] + WAYS['n']",
    "A2 = {A} + state.n",
    "from CFG import scale\n    A2 = {A} * scale",
    "import CFG as c\n    A2 = c.act({A}) + c.scale",
    "from CFG import sub, act as own\n    A2 = own({A}) + sub.n",
    "c = __import__('CFG')\n    A2 = {A} - c.scale",
    "if {S} > {number}:\n        A2 = {A} + 1\n    else:\n        A2 = {A} - 1",
    "A2 = {A}.copy(); A2 += {A}",
    "A2 = np.asfortranarray({A}) * 1.0; A2 += {A}",
    "A2 = np.asfortranarray({A} * 1.0); A2 *= {A}; A2.reshape(-1)[{integer}] = 99",
    "A2 = {A}.T * 1.0; A2 -= {A}.T; A2 = A2.T",
    "A2 = {A}.ravel('K').reshape({A}.shape)",
    "A2 = {A}.astype(np.float32)",
    "A2 = {A}[:]",
    "A2 = {A}.reshape({A}.shape)",
    "A2 = np.broadcast_to({S}, {A}.shape)",
    "A2 = np.asarray({A})",
    "A2 = {A}.view()",
    "A2 = {o}.double",
    "A2 = {o}.a",
    "A2 = np.where({A} > {S}, {A}, {S})",
    "S2 = np.mean({A})",
    "S2 = {A}.sum()",
    "S2 = red({A}.ravel())",
    "S2 = {A}.flat[{integer}]",
    "S2 = {A}.item({integer})",
    "S2 = {o}.norm()",
    "S2 = {o}.b",
    "S2 = down({t})",
    "S2 = np.float64({S})",
    "S2 = {t} + np.int8(1)",
    "S2 = {t} * {number}",
    "S2 = np.allclose({A}, {A})",
    "S2 = np.array_equal({A}, {A}.T)",
    "S2 = ({A} > 0).any()",
    "S2 = 1.0 if np.allclose({A}, {A}) is True else 0.0",
    "S2 = 1.0 if isinstance({S}, float) else 2.0",
    "S2 = [10.0, 20.0][np.array_equal({A}, {A})]",
    "S2 = 1.0 if {A} is {A} else 2.0",
    "w = {S} * np.float64(1); w = w[...]; w *= 0",
    "w = np.atleast_1d({S}); w *= 3",
    "w = np.asarray({S} * np.float64(1)); w -= 1",
    "w = np.reshape({S}, 1); w += 1; S2 = w[0] + {S}",
    "w = np.mean({A}).reshape(1); w += 1",
    "w = {A}.sum()[None]; w[0] = 9",
    "{A}[0] = {S}",
    "{A} += 1",
    "{A}[{A} > {S}] = 0",
    "{o}.a = {A}",
    "{o}.b = {S}",
    "{o}.extra = {t}",
    "p = replace({o}, a={A}) if hasattr({o}, '__dataclass_fields__') else {o}",
    "p = type({o})({A}, {S}); A2 = p.double",
    "with scaled({S}) as by:\n        A2 = {A} * by",
    "try:\n        A2 = {A} * {o}.missing\n    except AttributeError:\n        A2 = {A} * 2",
    "for k in range({integer}):\n        {A}[k % 2] += k",
    "A2 = np.array([{S}, {t}, {S}])",
    "A2 = functools.reduce(operator.add, [{A}, {A}])",
    "A2 = sum([{A}, {A}])",
    "A2 = [v * 2 for v in ({A}, {A})][1]",
    "f2 = lambda v: v * SCALE\n    A2 = f2({A})",
    "A2 = {A} if {t} else {A} * 2",
    "S2 = len({A})",
    "S2 = {A}.shape[0] * {S}",
    "A2 = np.sqrt({A})",
    "A2 = {A} / np.sum({A} - {A})",
    "A2 = {A} * float(open(PATH).read())",
    "A2 = {A} + np.loadtxt(PATH)",
    "S2 = json.loads(Path(PATH).read_text())",
    "S2 = system.stat(PATH).st_size",
    "A2 = {A} * float(system.environ['A_SCRIPT'])",
    "from os import getenv as asked\n    S2 = len(asked('A_SCRIPT'))",
    "A2 = {A} * dice.random()",
    "A2 = {A} + roll()",
    "A2 = {A} + count()",
    "S2 = np.random.Generator(np.random.PCG64(3)).normal()",
    "import random as luck\n    S2 = luck.Random({integer}).random()",
    "A2 = {A} * 1.0; Dirty.apply(A2)",
    "A2 = Dirty.apply({A} * 2.0)",
    "w = {A} * 2.0; Dirty.apply(w[0]); A2 = w * w",
    "Dirty.apply({A})",
    "A2 = Noisy.apply({A}) - Noisy.apply({A})",
    "Noisy.apply({A})",
    "A2 = Seen.apply({A}) + Seen.apply({A})",
    "TABLE[1] = {t}\n    if {S} > 1:\n        raise ValueError('too large')",
    "WAYS['n'] = {number}; A2 = {A} * WAYS['n']",
    "state.m = {t}; S2 = np.linalg.det({A})",
    "state.n = {number}; A2 = {A} + state.n",
)
RESULTS = (
    "{A}",
    "{S}",
    "{o}",
    "{t}",
    "x",
    "y",
    "({A}, {A})",
    "[{A}, {S}]",
    "{'a': {A}, 'b': {S}}",
    "{1: {A}, 'k': True}",
    "type({o})({A}, {S})",
    "({o}, {A})",
    "{A}.T",
    "{A}[::-1]",
    "{A}.ravel('K')",
    "type({S}).__name__",
    "type({t}).__name__",
    "isinstance({S}, np.floating)",
    "bool({S} > 0)",
    "np.allclose({A}, {A})",
    "float({S})",
    "{A}.flags.c_contiguous",
    "{A}.dtype",
    "{A}.shape",
    "str({A}.dtype)",
    "({A}[0], {A}[1:])",
    "np.broadcast_to({S}, (2,))",
    "None",
    "Pt({A}, {S})",
)
ARGUMENTS = ("C", "F", "step", "neg", "same", "view", "ro", "f4", "int")
NUMBERS = ("2", "1.5", "True", "np.float64(2.5)", "np.int8(3)", "0", "-2.0", "np.float32(1.5)")


@dataclass(frozen=True)
class Script:
    """`head`, the body of ``f(x, y, t, o)``, what it returns, how `x` and `y` lie, three numbers, and changes."""

    head: str
    kind: str
    lines: tuple[str, ...]
    result: str
    layouts: tuple[str, str]
    numbers: tuple[str, ...]
    changes: tuple[str, ...]
    instance: str
    held: str  # where the object is: an argument, a global, or made in each call

    def text(self) -> str:
        made = f"    o = {self.instance.replace('A', 'x').partition(' ;')[0]}\n" if self.held == "made" else ""
        body = made + "".join(f"    {line}\n" for line in self.lines)
        parameters = "x, y, t, o" if self.held == "argument" else "x, y, t"
        return f"{self.head}\ndef f({parameters}):\n{body}    return {self.result}\n"

    @property
    def returns_all(self) -> bool:
        """Return whether nothing that may warn goes unread: what stays in `w` does."""
        kept = any(line.startswith("w = ") and not re.search(r"; [as]\d = ", line) for line in self.lines)
        return self.result.startswith("[[") and not kept


def script(seed: int) -> Script:
    """The script of a seed."""
    chance = random.Random(seed)
    head, kind = around(chance)
    arrays, scalars, lines = ["x", "y"], ["t", "1.5"], []

    def put(text: str) -> str:
        for place, names in (("{A}", arrays), ("{S}", scalars)):
            while place in text:
                text = text.replace(place, chance.choice(names), 1)
        return filled(text.replace("{o}", "o").replace("{t}", "t").replace("Pt(", f"{kind}("), chance)

    for k in range(chance.randint(1, 5)):
        line = put(chance.choice(STATEMENTS))
        if "A2" in line:
            line = line.replace("A2", f"a{k}")
            arrays += [f"a{k}"] * 3
        if "S2" in line:
            line = line.replace("S2", f"s{k}")
            scalars += [f"s{k}"] * 3
        lines.append(line)
    result = put(chance.choice(RESULTS))
    if chance.random() < 0.4:
        result = f"({result}, {put(chance.choice(RESULTS))})"
    if chance.random() < 0.4:
        result = f"[[{', '.join(sorted({*arrays, *scalars} - {'1.5'}))}], {result}]"
    layouts = chance.choice(ARGUMENTS[:4]), chance.choice(ARGUMENTS)
    number = chance.choice(NUMBERS)
    numbers = tuple(chance.choice(NUMBERS) if chance.random() < 0.3 else number for _ in range(3))
    changes = tuple(change(chance) if chance.random() < 0.7 else "pass" for _ in range(2))
    instance = chance.choice(("{kind}(A, 2.0)", "{kind}(A, 3)", "{kind}(A)")).replace("{kind}", kind)
    if chance.random() < 0.3:
        instance += " ;o.mark = 7"
    held = "argument" if kind in ("Point", "Pair") and chance.random() < 0.6 else chance.choice(("global", "made"))
    return Script(head, kind, tuple(lines), result, layouts, numbers, changes, instance, held)
