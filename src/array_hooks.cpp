// src/array_hooks.cpp: small functions of the core that the Python side calls: what may be an array, and becomes one.
#include <pybind11/pybind11.h>

#include <cstdint>

#include "array/foreign/device.h"
#include "array/foreign/dlpack.h"
#include "array/foreign/foreign.h"
#include "array/native/python_math.h"
#include "array/numpy.h"
#include "array/protocol/containers.h"

namespace py = pybind11;

void register_array_hooks(py::module_& m) {
    m.def(
        "own_rules",
        [](py::object container, bool sequences) -> py::object {
            const pyop::Rules rules = pyop::rules_of(container.ptr());
            if (rules == pyop::Rules::None || (rules == pyop::Rules::Sequences && !sequences)) return py::none();
            PyObject* text = pyop::rules_text_new(container.ptr(), rules);
            if (!text) throw py::error_already_set();
            return py::reinterpret_steal<py::object>(text);
        },
        py::arg("container"), py::arg("sequences") = false,
        "What an object would lose as a plain array, and what to write instead; None if nothing. `sequences`: the + "
        "and "
        "== of Python's sequences are rules, too.");
    m.def(
        "has_own_rules", [](py::object container) { return pyop::rules_of(container.ptr()) != pyop::Rules::None; },
        py::arg("container"), "Whether an object would lose something as a plain array, with Python's sequences.");
    m.def(
        "as_array",
        [](py::object value) {
            PyObject* array = pyop::foreign_array_new(value.ptr(), true);
            if (!array) throw py::error_already_set();
            return py::reinterpret_steal<py::object>(array);
        },
        py::arg("value"), "An ndarray of what every entry point takes as one: csrc/array/foreign/foreign.h.");
    m.def(
        "from_dlpack",
        [](py::object value, py::object copy, bool to_cpu) {
            const auto may = copy.is_none()      ? pyop::MayCopy::IfNeeded
                             : copy.cast<bool>() ? pyop::MayCopy::Always
                                                 : pyop::MayCopy::Never;
            PyObject* array = pyop::from_dlpack_new(value.ptr(), may, to_cpu);
            if (!array) throw py::error_already_set();
            return py::reinterpret_steal<py::object>(array);
        },
        py::arg("value"), py::arg("copy") = py::none(), py::arg("to_cpu") = false, "pyop.from_dlpack.");
    m.def(
        "is_on_device", [](py::object value) { return pyop::is_on_device(value.ptr()); }, py::arg("value"),
        "Whether this is an array on a device that is not the CPU.");
    m.def(
        "match_as_array",
        [](py::type type) {
            auto* t = reinterpret_cast<PyTypeObject*>(type.ptr());
            t->tp_flags |= PyArray_Type.tp_flags & Py_TPFLAGS_SEQUENCE;
            PyType_Modified(t);
        },
        py::arg("type"),
        "Lets `case [a, b]:` match instances of a class where it matches NumPy's arrays (from 2.5 on).");
    m.def(
        "hypot_address",
        [](int count, bool fused) {
            auto* two = fused ? pyop::hypot2_fused : pyop::hypot2_split;
            auto* three = fused ? pyop::hypot3_fused : pyop::hypot3_split;
            return count == 2 ? reinterpret_cast<std::uintptr_t>(two) : reinterpret_cast<std::uintptr_t>(three);
        },
        py::arg("count"), py::arg("fused"), "The address of `math.hypot` of two or three numbers.");
}
