"""Transform functions, and differentiate them: in graphs, and at arrays."""

# Before any part of it: an import of a part first waits for the package, and threads would wait for each other.
from .. import autograd  # noqa: F401
