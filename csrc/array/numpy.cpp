#define PYOP_IMPORTS_NUMPY
#include "array/numpy.h"

namespace pyop {

int numpy_init() {
    import_array1(-1);
    return 0;
}

}  // namespace pyop
