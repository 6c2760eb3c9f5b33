// src/memory_hooks.cpp: small functions of the core that the Python side calls: the bytes of arrays, files, generators.
#include <numpy/random/bitgen.h>
#include <pybind11/pybind11.h>

#include "array/memory/mapped.h"
#include "array/numpy.h"
#include "plan/captured.h"

namespace py = pybind11;

void register_memory_hooks(py::module_& m) {
    m.def(
        "generator_memory",
        [](py::object capsule, Py_ssize_t size) {
            auto* generator = static_cast<bitgen_t*>(PyCapsule_GetPointer(capsule.ptr(), "BitGenerator"));
            if (!generator) throw py::error_already_set();
            return py::memoryview::from_memory(generator->state, size);
        },
        py::arg("capsule"), py::arg("size"),
        "The state of a bit generator of NumPy, of `size` bytes: only for as long as the generator is alive.");
    m.def(
        "mapped_file",
        [](int fd, bool writable, bool own) {
            PyObject* array = pyop::mapped_file_new(fd, writable, own);
            if (!array) throw py::error_already_set();
            return py::reinterpret_steal<py::object>(array);
        },
        py::arg("fd"), py::arg("writable"), py::arg("own") = false,
        "The bytes of an open file as an array, in memory that all who have it mapped share; `own`: but for what is "
        "written.");
    m.def(
        "elements",
        [](py::object array) {
            if (!pyop::is_exact_array(array.ptr())) throw py::type_error("elements() takes an ndarray");
            PyObject* bytes = pyop::elements_new(pyop::as_array(array.ptr()));
            if (!bytes) throw py::error_already_set();
            return py::reinterpret_steal<py::object>(bytes);
        },
        py::arg("array"), "The elements of an array as bytes.");
    m.def(
        "same_elements",
        [](py::object array, py::bytes bytes) {
            if (!pyop::is_exact_array(array.ptr())) throw py::type_error("same_elements() takes an ndarray");
            const int same = pyop::same_elements(pyop::as_array(array.ptr()), bytes.ptr());
            if (same < 0) throw py::error_already_set();
            return same == 1;
        },
        py::arg("array"), py::arg("bytes"), "Whether the elements of an array are these.");
}
