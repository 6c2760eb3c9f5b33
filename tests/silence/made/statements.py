"""Statements that make arrays and numbers, and that write."""

from __future__ import annotations

import numpy as np

from .draw import Draw, kind

SIGNS = ["+", "-", "*"]


@kind(7)
def arithmetic(d: Draw) -> str:
    a = d.array()
    return f"{d.new()} = {a} {d.pick(SIGNS)} {d.beside(a)}"


@kind(3, smooth=False)
def other_arithmetic(d: Draw) -> str:
    a = d.array()
    power = ["**"] * (d.variables[a].dtype.kind not in "iub")  # what nobody reads does not raise in a plan
    return f"{d.new()} = {a} {d.pick(['/', '//', '%', '&', '|', '<', '==', '@', *power])} {d.beside(a)}"


@kind(3)
def function(d: Draw) -> str:
    names = ["np.sin({})", "np.exp({} * 0.1)", "np.tanh({})", "{} * {}", "-{}", "np.cumsum({})", "{} ** 2"]
    return f"{d.new()} = {d.pick(names).replace('{}', d.array())}"


@kind(2)
def copied(d: Draw) -> str:
    names = ["{}.copy()", "np.array({})", "+{}", "{}.flatten()", "np.copy({})", "{}[[0, -1]]", "{} * 1"]
    return f"{d.new()} = {d.pick(names).format(d.array())}"


@kind(2, smooth=False)
def converted(d: Draw) -> str:
    a = d.array()
    dtype = d.pick(["f4", "f8", "i8", "i1", "?", "c16"])
    return f"{d.new()} = {a}.astype({dtype!r}{d.pick(['', ', copy=False'])})"


@kind(3)
def made(d: Draw) -> str:
    a = d.array()
    makers = ["np.zeros({}.shape)", "np.zeros_like({})", "np.ones_like({})", "np.full({}.shape, 2.0)", "np.zeros(3)"]
    return f"{d.new()} = {d.pick(makers).format(a)}"


@kind(3)
def reduced(d: Draw) -> str:
    a = d.array()
    texts = ["{}.sum()", "{}.mean()", "np.sum({}, axis=0)", "{}.sum(keepdims=True)", "{}.max()", "np.dot({}, {})"]
    return f"{d.new()} = {d.pick(texts).replace('{}', a)}"


@kind(2)
def joined(d: Draw) -> str:
    a, b = d.ranked(), d.ranked()
    return f"{d.new()} = np.{d.pick(['concatenate', 'stack', 'vstack', 'hstack'])}([{a}, {b}])"


@kind(2)
def chosen(d: Draw) -> str:
    a = d.array()
    return f"{d.new()} = np.where({a} > 0, {a}, {d.beside(a)})"


@kind(2, smooth=False)
def compared(d: Draw) -> str:
    return f"{d.new()} = {d.array()} > {d.pick(['0', '0.5', '1'])}"


@kind(4)
def second_name(d: Draw) -> str:
    return f"{d.new()} = {d.pick([d.array(), f'keep({d.array()})', f'np.asarray({d.array()})'])}"


@kind(7)
def view(d: Draw) -> str:
    a = d.array()
    return f"{d.new()} = {a}[{d.basic_key(a)}]"


@kind(5)
def view_by_function(d: Draw) -> str:
    a = d.ranked()
    texts = ["{}.T", "{}.reshape(-1)", "{}.ravel()", "np.transpose({})", "np.squeeze({})", "np.expand_dims({}, 0)"]
    texts += ["np.flip({})", "np.broadcast_to({}, (2, *{}.shape))", "{}.view()", "np.atleast_2d({})", "first_rows({})"]
    texts += ["np.diagonal(np.atleast_2d({}))", "np.swapaxes(np.atleast_2d({}), 0, 1)", "np.split({}, 2)[0]"]
    return f"{d.new()} = {d.pick(texts).replace('{}', a)}"


@kind(1, smooth=False)
def part_of_complex(d: Draw) -> str:
    a = d.array()
    return d.pick([f"{d.new()} = {a}.real", f"{a}.real = {d.beside(a)}", f"{d.new()} = np.imag({a})"])


@kind(12)
def augmented(d: Draw) -> str:
    a = d.written()
    power = ["**"] * (d.variables[a].dtype.kind not in "iub")
    sign = d.pick(SIGNS if d.smooth else [*SIGNS, "/", "//", "%", "&", "|", "^", "<<", "@", *power])
    return f"{a} {sign}= {d.beside(a)}"


@kind(4)
def augmented_part(d: Draw) -> str:
    a = d.written()
    return f"{a}[{d.key(a)}] {d.pick(SIGNS)}= {d.number() if d.random() < 0.7 else d.beside(a)}"


@kind(10)
def assigned(d: Draw) -> str:
    a = d.written()
    key = d.key(a)
    value = d.pick([d.number(), f"{a}[{key}] * 2", d.beside(a), f"{d.array()}[{key}]"])
    return f"{a}[{key}] = {value}"


@kind(4)
def out_of_function(d: Draw) -> str:
    a, out = d.array(), d.written()
    where = d.pick(["", "", "", f", where={a} > 0"])
    one = f"np.{d.pick(['sin', 'negative', 'cos'])}({a}, out={out}{where})"
    two = f"np.{d.pick(['add', 'multiply', 'subtract'])}({a}, {d.beside(a)}, out={out}{where})"
    alike = np.shape(d.variables[a]) == np.shape(d.variables[out]) != ()  # else NumPy's cumsum ends the process
    text = d.pick([one, two, two, f"np.sum({a}, axis=0, out={out})", *[f"np.cumsum({a}, out={out})"] * alike])
    return f"{d.new()} = {text}" if d.random() < 0.4 else text


@kind(5)
def writing_function(d: Draw) -> str:
    a = d.written()
    b = d.beside(a)
    texts = [f"np.copyto({a}, {b})", f"{a}.fill({d.number()})", f"{a}.sort()", f"np.put({a}, [0, 1], {d.number()})"]
    texts += [f"np.putmask({a}, {a} > 0, {d.number()})", f"np.fill_diagonal({a}, {d.number()})", f"{a}.flat[0] = 3.0"]
    texts += [f"np.copyto({a}, {b}, where={a} > 0)", f"np.place({a}, {a} > 0, [1.0])", f"np.add.at({a}, [0, 0], 1.0)"]
    return d.pick(texts)


@kind(2, smooth=False)
def rarely_writing_function(d: Draw) -> str:
    a = d.written()
    texts = [f"{a}.partition(1)", f"np.nan_to_num({a}, copy=False)", f"np.clip({a}, -1, 1, out={a})"]
    texts += [f"{a}.shape = (-1,)", f"np.multiply.at({a}, [0], 2)", f"np.round({a}, 1, out={a})"]
    return d.pick([*texts, f"{a}.flags.writeable = False"])
