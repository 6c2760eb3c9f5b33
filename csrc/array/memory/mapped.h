// array/memory/mapped.h: the memory of an open file, which other processes may have mapped too, as an array.
#pragma once

#include "array/numpy.h"

namespace pyop {

// New: all bytes of the file, as uint8. The array has the mapping, and no descriptor, of which a process may have few.
// Null: an OSError.
PyObject* mapped_file_new(int fd, bool writable);

}  // namespace pyop
