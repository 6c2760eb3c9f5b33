// src/refusal_hooks.cpp: small functions of the core that the Python side calls: what a function may not lose or do in
// silence.
#include <pybind11/pybind11.h>

#include "array/foreign/foreign.h"
#include "array/protocol/containers.h"
#include "runtime/refusal.h"
#include "runtime/up_calls.h"

namespace py = pybind11;

void register_refusal_hooks(py::module_& m) {
    m.def(
        "check_nothing_lost",
        [](py::object value) {
            if (pyop::check_nothing_lost(value.ptr()) < 0) throw py::error_already_set();
        },
        py::arg("value"), "A TypeError if a mask or a gradient would be lost in a plain array.");
    m.def(
        "shown",
        [](py::object text, py::object what) {
            if (!pyop::watching()) return text;
            PyObject* given[] = {text.ptr(), what.ptr()};
            PyObject* shown = PyObject_Vectorcall(pyop::up_calls.shown_text, given, 2, nullptr);
            if (!shown) throw py::error_already_set();
            return py::reinterpret_steal<py::object>(shown);
        },
        py::arg("text"), py::arg("what"),
        "The text of a size, for whoever asks: refused to a function under trace that does more than show it.");
    m.def("watching", &pyop::watching, "Whether a function is traced, recorded or mapped on this thread.");
    m.def(
        "note_refusal", [](py::object exception) { pyop::note_refusal(exception.ptr()); }, py::arg("exception"),
        "Notes that a symbolic or recorded array is about to raise this.");
    m.def(
        "call_watched",
        [](py::object fn, py::tuple args, py::dict kwargs) {
            PyObject* result = pyop::call_watched(fn.ptr(), args.ptr(), kwargs.ptr());
            if (!result) throw py::error_already_set();
            return py::reinterpret_steal<py::object>(result);
        },
        py::arg("fn"), py::arg("args"), py::arg("kwargs"),
        "fn(*args, **kwargs), which fails with the first refusal in it even where the function caught that.");
}
