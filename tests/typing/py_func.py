"""The entry points of TensorFlow's py_func, as a user writes them; see public_api.py."""

import numpy as np
import numpy.typing as npt

import pyop


def both(x: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.float32], str]:
    return x, "text"


with pyop.Graph() as g:
    x = g.input("float32", name="x")
    value, text = pyop.py_func(both, [x], [np.float32, "string"])
    single = pyop.py_func(np.sinh, (x,), np.dtype("f4"), stateful=False, name="sinh")
    node = pyop.py_func(lambda v: print(v), [x], [])
    nested = pyop.contrib.py_func(
        lambda a, *, b: {"y": a * b},
        args=[x],
        kwargs={"b": x},
        output_types={"y": "float32"},
        output_shapes={"y": []},
    )
g.run([value, node, nested["y"]], {x: 1.0})


@pyop.numpy_function(Tout=np.float64)
def double(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return x * 2.0


doubled = double(np.ones(2))
also = pyop.numpy_function(np.cosh, [np.zeros(2)], float)
