// deprecated.h: what CPython's documentation calls deprecated and its headers do not mark. Read by .ci/deprecated_api.
#pragma once

#include "precompiled.h"

#define PYOP_DEPRECATED(text) __attribute__((deprecated(text)))

extern "C" {
#if PY_VERSION_HEX >= 0x030C0000
PYOP_DEPRECATED("since 3.12: PyErr_GetRaisedException")
PyAPI_FUNC(void) PyErr_Fetch(PyObject**, PyObject**, PyObject**);
PYOP_DEPRECATED("since 3.12: PyErr_SetRaisedException")
PyAPI_FUNC(void) PyErr_Restore(PyObject*, PyObject*, PyObject*);
PYOP_DEPRECATED("since 3.12: PyErr_GetRaisedException")
PyAPI_FUNC(void) PyErr_NormalizeException(PyObject**, PyObject**, PyObject**);
PYOP_DEPRECATED("since 3.12: PyErr_DisplayException")
PyAPI_FUNC(void) PyErr_Display(PyObject*, PyObject*, PyObject*);
#endif
}
