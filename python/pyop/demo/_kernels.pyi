from typing import Final

# PyCapsules "pyop.kernel".
components: Final[object]
components_diagonal: Final[object]
