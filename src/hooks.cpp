// src/hooks.cpp: small functions of the core that the Python side calls: graphs, ops, attributes, origins.
#include <pybind11/pybind11.h>

#include "graph/build.h"
#include "op/op.h"
#include "runtime/origin.h"
#include "runtime/scoped_call.h"

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
        "op_argument",
        [](py::object op, Py_ssize_t k, py::object value) {
            if (Py_TYPE(op.ptr()) != pyop::op_type) throw py::type_error("op_argument(op, k, value)");
            const auto& declared = *pyop::as_op(op.ptr());
            const Py_ssize_t count = declared.declared().n_in();
            if (k < 0 || (count >= 0 && k >= count)) throw py::index_error("the op has no argument of that number");
            const pyop::OpCaller caller(declared);
            PyObject* array = pyop::argument_new(&declared.declared(), k, value.ptr(), caller);
            if (!array) throw py::error_already_set();
            return py::reinterpret_steal<py::object>(array);
        },
        py::arg("op"), py::arg("k"), py::arg("value"), "Argument k of an op as the ndarray that its function gets.");
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
