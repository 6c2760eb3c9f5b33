"""Provide functions of SciPy for Tensors and Values too: with arrays each is SciPy's own, bit for bit.

The ufuncs of ``scipy.special`` take part in NumPy's protocols, so they work as they are. SciPy's other functions turn
their arguments into arrays at once, and no library can be asked before they do. Those that gradients meet most often
are here, under the names that they have in SciPy. Everything else of these modules is SciPy's, unchanged.

>>> import numpy as np, pyop
>>> from pyop.scipy import special
>>> pyop.grad(lambda x: special.logsumexp(x))(np.zeros(4))
array([0.25, 0.25, 0.25, 0.25])
"""

from __future__ import annotations

from . import linalg, signal, special, stats

__all__ = ["linalg", "signal", "special", "stats"]
