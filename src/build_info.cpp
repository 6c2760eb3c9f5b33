// src/build_info.cpp: what the extension was built with, for pyop.build_config().
#include <pybind11/pybind11.h>

#include "array/numpy.h"

namespace py = pybind11;

void register_build_info(py::module_& m) {
    py::dict info;
    info["version"] = PYOP_VERSION;
    info["build_type"] = PYOP_BUILD_TYPE;
    info["sanitizers"] = PYOP_SANITIZE;
    info["compiler"] = PYOP_COMPILER;
    info["cxx_standard"] = static_cast<long>(__cplusplus);
    info["python"] = PY_VERSION;
    info["numpy"] = PYOP_NUMPY_VERSION;
    info["cython"] = PYOP_CYTHON_VERSION;
    info["pybind11"] = PYBIND11_TOSTRING(PYBIND11_VERSION_MAJOR) "." PYBIND11_TOSTRING(
        PYBIND11_VERSION_MINOR) "." PYBIND11_TOSTRING(PYBIND11_VERSION_PATCH);
#ifdef NDEBUG
    info["assertions"] = false;
#else
    info["assertions"] = true;
#endif
    m.attr("build_info") = info;
    m.attr("__version__") = PYOP_VERSION;
}
