// autograd/autograd.cpp: make the types of this folder, and the two functions by which Python starts the engine.
#include "autograd/autograd.h"

#include "autograd/builtin.h"
#include "autograd/engine.h"
#include "autograd/fingerprint.h"
#include "autograd/forward.h"
#include "autograd/function_parts.h"
#include "autograd/modes.h"
#include "autograd/transformations.h"
#include "autograd/turn.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

PyObject* run_backward_py(PyObject*, PyObject* args) {
    PyObject *outputs, *seeds, *inputs;
    int retain, create, accumulate, allow_unused, zeros;
    if (!PyArg_ParseTuple(args, "O!O!Oppppp:run_backward", &PyTuple_Type, &outputs, &PyTuple_Type, &seeds, &inputs,
                          &retain, &create, &accumulate, &allow_unused, &zeros))
        return nullptr;
    if (PyTuple_GET_SIZE(outputs) != PyTuple_GET_SIZE(seeds)) {
        PyErr_Format(PyExc_ValueError, "%zd outputs need as many gradients to begin with, got %zd",
                     PyTuple_GET_SIZE(outputs), PyTuple_GET_SIZE(seeds));
        return nullptr;
    }
    RunOptions options;
    options.retain_graph = retain;
    options.create_graph = create;
    options.accumulate = accumulate;
    options.allow_unused = allow_unused;
    options.zeros_for_unused = zeros;
    return guarded(
        [&] {
            return run_backward(
                reinterpret_cast<PyTupleObject*>(outputs)->ob_item, reinterpret_cast<PyTupleObject*>(seeds)->ob_item,
                static_cast<size_t>(PyTuple_GET_SIZE(outputs)), inputs == Py_None ? nullptr : inputs, options);
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* fingerprint_py(PyObject*, PyObject* given) {
    PyObject* array;
    Py_ssize_t result;
    if (!PyArg_ParseTuple(given, "On:fingerprint", &array, &result)) return nullptr;
    if (!PyArray_Check(array)) return PyErr_Format(PyExc_TypeError, "fingerprint() takes an array");
    const Reading reading = reading_of(PyArray_NBYTES(as_array(array)), result);
    return PyLong_FromUnsignedLongLong(fingerprint(as_array(array), reading));
}

PyMethodDef autograd_functions[] = {
    {"fingerprint", fingerprint_py, METH_VARARGS,
     "fingerprint(array, bytes_of_result): other numbers have another one (fingerprint.h)."},
    {"run_backward", in_turn<run_backward_py>, METH_VARARGS,
     "run_backward(outputs, seeds, inputs, retain_graph, create_graph, accumulate, allow_unused, zeros): the engine."},
    {},
};

}  // namespace

int autograd_init(PyObject* module) {
    if (turn_init() < 0 || grad_node_init(module) < 0 || tensor_init(module) < 0 || function_class_init(module) < 0 ||
        modes_init(module) < 0 || forward_init(module) < 0 || transformations_init(module) < 0 ||
        plain_vjp_init(module) < 0)
        return -1;
    Ref numpy = Ref::steal(PyImport_ImportModule("numpy"));
    if (!numpy || builtin_init(numpy.get()) < 0) return -1;
    return PyModule_AddFunctions(module, autograd_functions);
}

}  // namespace pyop
