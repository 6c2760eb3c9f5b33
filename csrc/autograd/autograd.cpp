#include "autograd/autograd.h"

#include "autograd/engine.h"
#include "autograd/function_parts.h"
#include "autograd/native.h"
#include "autograd/state.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

PyObject* is_recording(PyObject*, PyObject*) { return PyBool_FromLong(autograd_state.recording); }

PyObject* set_recording(PyObject*, PyObject* on) {
    const int value = PyObject_IsTrue(on);
    return value < 0 ? nullptr : PyBool_FromLong(std::exchange(autograd_state.recording, value != 0));
}

PyObject* set_anomaly(PyObject*, PyObject* args) {
    int on, check_nan;
    if (!PyArg_ParseTuple(args, "pp", &on, &check_nan)) return nullptr;
    PyObject* before =
        Py_BuildValue("(NN)", PyBool_FromLong(autograd_state.anomaly), PyBool_FromLong(autograd_state.check_nan));
    if (!before) return nullptr;
    autograd_state.anomaly = on;
    autograd_state.check_nan = check_nan;
    return before;
}

PyObject* change_forward_level(PyObject*, PyObject* by) {
    const long change = PyLong_AsLong(by);
    if (change == -1 && PyErr_Occurred()) return nullptr;
    autograd_state.forward_level += static_cast<int>(change);
    return PyLong_FromLong(autograd_state.forward_level);
}

PyObject* set_batched_type(PyObject*, PyObject* type) {
    Py_XSETREF(batched_type, Py_NewRef(type));
    Py_RETURN_NONE;
}

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

PyMethodDef functions[] = {
    {"is_recording", is_recording, METH_NOARGS, "is_recording(): whether computations with Tensors are recorded."},
    {"set_recording", set_recording, METH_O, "set_recording(on): on this thread; returns what it was."},
    {"set_anomaly", set_anomaly, METH_VARARGS, "set_anomaly(on, check_nan): on this thread; returns what it was."},
    {"change_forward_level", change_forward_level, METH_O, "change_forward_level(by): enters or leaves forward mode."},
    {"set_batched_type", set_batched_type, METH_O, "set_batched_type(type): the class of arrays under vmap."},
    {"run_backward", run_backward_py, METH_VARARGS,
     "run_backward(outputs, seeds, inputs, retain_graph, create_graph, accumulate, allow_unused, zeros): the engine."},
    {},
};

}  // namespace

int autograd_init(PyObject* module) {
    if (grad_node_init(module) < 0 || tensor_init(module) < 0 || function_class_init(module) < 0) return -1;
    Ref numpy = Ref::steal(PyImport_ImportModule("numpy"));
    if (!numpy || native_init(numpy.get()) < 0) return -1;
    return PyModule_AddFunctions(module, functions);
}

}  // namespace pyop
