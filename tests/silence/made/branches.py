"""Statements that ask what an array holds: truths, numbers of Python, indices."""

from __future__ import annotations

from .draw import Draw, kind


def question(d: Draw, a: str, b: str) -> str:
    e = f"{a}.flat[0]" if d.random() < 0.3 else f"{a}.ravel()[0]"
    # No ties: an imaginary step would decide them.
    texts = [
        f"{a}.sum() > 0.123",
        f"{e} > 0.123",
        f"{e} < {b}.sum() + 0.3",
        f"not {e} > 0.3",
        f"0.1 < {a}.mean() < 2.1",
    ]
    texts += [f"{a}.max() > {b}.min() + 0.3", f"({a} > 0.123).all()", f"np.any({a} < 0.123)"]
    texts += [f"{a}.sum() > 0.123 and {b}.sum() < 3.1", f"{e} > 0.123 or {b}.sum() > 1.1"]
    if not d.smooth:
        texts += [f"np.allclose({a}, {b})", f"np.array_equal({a}, {b})", f"{a}.sum() > 0", f"{e} == 0"]
    return d.pick(texts)


@kind(4)
def taken(d: Draw) -> str:
    a, b, c = d.array(lambda a: a.size), d.array(lambda a: a.size), d.written()
    new = d.new()
    sides = [f"{c} += 1.0", f"{c} *= 0.5", f"{c}[...] = {b}", f"{new} = {c} * 2", f"{c} = {c} + 1.0", f"{new} = {a}"]
    texts = [
        f"if {question(d, a, b)}:\n    {d.pick(sides)}\nelse:\n    {d.pick(sides)}",
        f"if {question(d, a, b)}:\n    {d.pick(sides)}\nelif {question(d, b, a)}:\n    {d.pick(sides)}",
        f"{new} = {a} if {question(d, a, b)} else {b}",
        f"{new} = {a} * (2.0 if {question(d, a, b)} else 3.0)",
        f"if {question(d, a, b)}:\n    if {question(d, b, c)}:\n        {c} += 1.0\n    {c} *= 2.0",
        f"{new} = early({c})",
        f"{new} = larger({a}, {b})\n{new} += 1.0",
    ]
    return d.pick(texts)


@kind(3, smooth=False)
def asked(d: Draw) -> str:
    a, b, c = d.array(lambda a: a.size), d.array(lambda a: a.ndim and a.size), d.written()
    new = d.new()
    texts = [
        f"{new} = int(np.argmax({b}.ravel()))",
        f"k = int(np.argmax({b}))\n{c}[k] = 0",
        f"{c}[np.argmin({b}) % len({c})] += 1",
        f"{new} = {b}[int({a}.ravel()[0]) % 2:]",
        f"for k in np.argsort({b}.ravel())[:2]:\n    {c}[k % 2] *= 2",
        f"for k in np.flatnonzero({b}.ravel() > 0):\n    {c}[0] += k",
        f"if {b}.argmax() == 0:\n    {c} += 1",
        f"{new} = max({b}.ravel()[0], {a}.ravel()[0])",
        f"{new} = min({b}.ravel())",
        f"{new} = abs(int({a}.sum()) % 3)\n{c}[{new} % 2] = 7",
        f"{new} = sorted({b}.ravel())",
        f"{new} = bool({a}.sum() > 0)",
        f"assert {a}.sum() < 1e9\n{c} += 1",
        f"if {a}.sum() > 1:\n    raise ValueError('too much')",
        f"{new} = {{True: {a}, False: {b}}}[bool({a}.sum() > 0)]",
        f"{new} = [{a}, {b}][int({a}.sum() > 0)]\n{new} += 1",
        f"with np.errstate(all='ignore'):\n    {c} /= {a}.sum()",
        f"{new} = {b}[{b} > 0]\nif {new}.size:\n    {c} += {new}[0]",
        f"{new} = len({b}[{b} > 0])",
        f"{new} = {b}.any() and {a}.all()",
    ]
    return d.pick(texts)


@kind(2)
def called_with_state(d: Draw) -> str:
    a, b, new = d.written(), d.array(), d.new()
    texts = [f"{new} = summed({a})", f"{new} = deep({a}, 2)", f"{new} = list(halves({a}))", f"exchange([{a}, {b}])"]
    texts += [
        f"{new} = {{'a': {a}, 'b': {b}}}\nexchange({new}, 'a', 'b')\n{new}['a'] += 1.0",
        f"{new} = Box({a}).step(1.0)",
    ]
    texts += [f"{new} = Field({a})\n{new} += {b}\n{new} = {new}.v", f"{new} = [w * 2.0 for w in halves({a})][-1]"]
    texts += [f"apply(lambda w: bump(w, 2.0), {a}, {a}[1:])", f"{new} = made_like({a})\n{new} += {b}"]
    return d.pick(texts)
