// src/hooks.cpp: small functions of the core that the Python side calls: graphs, containers, refusals, attributes.
#include <numpy/random/bitgen.h>
#include <pybind11/pybind11.h>

#include "array/foreign/device.h"
#include "array/foreign/dlpack.h"
#include "array/foreign/foreign.h"
#include "array/memory/mapped.h"
#include "array/numpy.h"
#include "array/protocol/containers.h"
#include "graph/build.h"
#include "op/op.h"
#include "plan/captured.h"
#include "runtime/origin.h"
#include "runtime/refusal.h"
#include "runtime/scoped_call.h"
#include "runtime/up_calls.h"

namespace py = pybind11;

void register_hooks(py::module_& m) {
    m.def(
        "graph_being_built",
        [] {
            PyObject* graph = pyop::graph_being_built();
            return py::reinterpret_borrow<py::object>(graph ? graph : Py_None);
        },
        "The graph that is being built on this thread, or None.");
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
        "check_nothing_lost",
        [](py::object value) {
            if (pyop::check_nothing_lost(value.ptr()) < 0) throw py::error_already_set();
        },
        py::arg("value"), "A TypeError if a mask or a gradient would be lost in a plain array.");
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
        "op_argument",
        [](py::object op, Py_ssize_t k, py::object value) {
            if (Py_TYPE(op.ptr()) != pyop::op_type) throw py::type_error("op_argument(op, k, value)");
            const auto& declared = *pyop::as_op(op.ptr());
            const pyop::OpCaller caller(declared);
            PyObject* array = pyop::argument_new(&declared.declared(), k, value.ptr(), caller);
            if (!array) throw py::error_already_set();
            return py::reinterpret_steal<py::object>(array);
        },
        py::arg("op"), py::arg("k"), py::arg("value"), "Argument k of an op as the ndarray that its function gets.");
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
    m.def(
        "call_with_attribute",
        [](py::object owner, py::str name, py::object value, py::object fn, py::tuple args, py::dict kwargs) {
            PyObject* result =
                pyop::call_with_attribute(owner.ptr(), name.ptr(), value.ptr(), fn.ptr(), args.ptr(), kwargs.ptr());
            if (!result) throw py::error_already_set();
            return py::reinterpret_steal<py::object>(result);
        },
        py::arg("owner"), py::arg("name"), py::arg("value"), py::arg("fn"), py::arg("args"), py::arg("kwargs"),
        "fn(*args, **kwargs), with owner.name set to value until it is over.");
    m.def(
        "origin_here",
        [] {
            py::object text = py::reinterpret_steal<py::object>(pyop::origin_text(pyop::current_origin()).release());
            if (!text) throw py::error_already_set();
            return text;
        },
        "'file:line' of the innermost running frame that is not pyop's own.");
}
