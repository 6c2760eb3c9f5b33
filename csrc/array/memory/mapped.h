// array/memory/mapped.h: show the memory of an open file, which other processes may have mapped too, as an array.
#pragma once

#include "array/numpy.h"

namespace pyop {

// New: all bytes of the file, as uint8. The array has the mapping, and no descriptor, of which a process may have few.
// What is written goes into the file, or nowhere else (`own`: a page is copied when it is written first). Null: an
// OSError.
PyObject* mapped_file_new(int fd, bool writable, bool own);

}  // namespace pyop
