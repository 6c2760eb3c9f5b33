"""Products, linear algebra, sorting, and functions that only Python can run."""

from __future__ import annotations

from .draw import INEXACT, RANKED, Draw, Made, kind, small


@kind(4)
def matmul(d: Draw) -> Made:
    a = d.value(lambda a: a.ndim > 0 and small(a))
    n = d.values[a].shape[-1] if d.values[a].ndim else 1
    if d.random() < 0.4:
        return d.pick(["$0 @ $0.T", "np.matmul($0, np.swapaxes($0, -1, -2))", "np.matmul($0.mT, $0)"]), (a,)
    b = d.value(lambda b: b.ndim > 0 and b.shape[-2:][0] == n)
    return d.pick(["np.matmul($0, $1)", "$0 @ $1"]), (a, b)


@kind(3)
def dot(d: Draw) -> Made:
    a = d.value(lambda a: a.ndim < 3 and small(a))
    n = d.values[a].shape[-1] if d.values[a].ndim else 1
    b = d.value(lambda b: b.ndim > 0 and b.shape[-2:][0] == n and small(b))
    texts = ["np.dot($0, $1)", "np.inner($0, $1)", "np.outer($0, $1)", "np.vdot($0, $1)", "np.kron($0, $1)"]
    return d.pick([*texts, "np.dot($0, $1)", "np.tensordot($0, $1, axes=1)"]), (a, b)


@kind(2)
def vecdot(d: Draw) -> Made:
    a = d.value(RANKED)
    n = d.values[a].shape[-1:]
    return f"np.{d.pick(['vecdot', 'vecdot', 'linalg.vecdot'])}($0, $1)", (a, d.value(lambda b: b.shape[-1:] == n))


@kind(3)
def einsum(d: Draw) -> Made:
    a = d.value(lambda a: a.ndim > 0 and small(a))
    rank, shape = d.values[a].ndim, d.values[a].shape
    if d.random() < 0.3:
        return (
            f"np.einsum({d.pick(['...i->...', 'i...->...i', '...ij->...ji', 'ii', 'ij->', '...i,...i->...i'])!r}, $0)",
            (a,),
        )
    b = d.value(lambda b: b.ndim > 0 and b.shape[:1] == shape[-1:] and small(b))
    letters = "ijk"[:rank]
    other = letters[-1:] + "lm"[: d.values[b].ndim - 1]
    return f"np.einsum({d.pick([f'{letters},{other}', '...i,i...->...', '...i,i->...'])!r}, $0, $1)", (a, b)


@kind(3)
def linalg(d: Draw) -> Made:
    a = d.value(lambda a: a.ndim > 1 and a.shape[-1] == a.shape[-2] and small(a))
    n = d.values[a].shape[-1] if d.values[a].ndim else 0
    if d.random() < 0.4:
        b = d.value(lambda b: b.ndim > 0 and b.shape[-2:][0] == n)
        return "np.linalg.solve($0, $1)", (a, b)
    name = d.pick(["inv", "det", "slogdet", "cholesky", "eigvalsh", "norm", "matrix_power"])
    return f"np.linalg.{name}($0{', 2' if name == 'matrix_power' else ''})", (a,)


@kind(1)
def norms(d: Draw) -> Made:
    a = d.value(INEXACT)
    return f"np.linalg.norm($0, axis={d.pick(['None', str(d.axis(a))])})", (a,)


@kind(3)
def order(d: Draw) -> Made:
    a = d.value(RANKED)
    texts = [f"np.sort($0, axis={d.axis(a)})", "np.argsort($0, kind='stable')", f"np.diff($0, axis={d.axis(a)})"]
    texts += ["np.searchsorted(np.sort($0), 1)", "np.sort($0, axis=None)", "np.unique($0)", "np.nonzero($0)"]
    return d.pick([*texts, "np.cumsum($0)[::-1]", "np.median($0)"]), (a,)


@kind(2)
def python_node(d: Draw) -> Made:
    """A function that only Python can run, between the others."""
    return d.pick(["opaque($0)", "opaque($0)", "opaque($0) * 2", "reversed_view($0)"]), (d.value(),)
