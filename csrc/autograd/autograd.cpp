// autograd/autograd.cpp: makes the types of this folder, and the two functions by which Python starts the engine.
#include "autograd/autograd.h"

#include <unordered_set>

#include "autograd/engine.h"
#include "autograd/forward.h"
#include "autograd/function_parts.h"
#include "autograd/modes.h"
#include "autograd/native.h"
#include "autograd/tensor_parts.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

PyObject* set_batched_type(PyObject*, PyObject* types) {
    PyObject *array, *scalar;
    if (!PyArg_ParseTuple(types, "OO", &array, &scalar)) return nullptr;
    Py_XSETREF(batched_types[0], Py_NewRef(array));
    Py_XSETREF(batched_types[1], Py_NewRef(scalar));
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

// The leaves that a gradient would go to, without `inputs`, which are leaves themselves. A list.
Ref other_leaves(PyObject* outputs, PyObject* inputs) {
    Ref found = Ref::steal(PyList_New(0));
    std::unordered_set<const void*> seen;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); ++i) seen.insert(PyTuple_GET_ITEM(inputs, i));
    std::vector<const GradNode*> stack;
    auto add = [&](PyObject* leaf) {
        return !leaf || !seen.insert(leaf).second || PyList_Append(found.get(), leaf) == 0;
    };
    for (Py_ssize_t i = 0; found && i < PyTuple_GET_SIZE(outputs); ++i) {
        PyObject* output = PyTuple_GET_ITEM(outputs, i);
        if (!is_tensor(output) || !as_tensor(output)->requires_grad) continue;
        const GradNode* node = as_tensor(output)->grad_fn;
        if (!node && !add(output)) return {};
        if (node && seen.insert(node).second) stack.push_back(node);
    }
    while (!stack.empty()) {
        const GradNode* node = stack.back();
        stack.pop_back();
        if (node->kind == GradNodeKind::Accumulate && !add(node->owner)) return {};
        for (Py_ssize_t i = 0; i < edge_count(node); ++i) {
            const GradNode* next = node->edges[i].node;
            if (next && seen.insert(next).second) stack.push_back(next);
        }
    }
    return found;
}

PyObject* other_leaves_py(PyObject*, PyObject* args) {
    PyObject *outputs, *inputs;
    if (!PyArg_ParseTuple(args, "O!O!:other_leaves", &PyTuple_Type, &outputs, &PyTuple_Type, &inputs)) return nullptr;
    return guarded([&] { return other_leaves(outputs, inputs).release(); }, static_cast<PyObject*>(nullptr));
}

PyMethodDef functions[] = {
    {"set_batched_type", set_batched_type, METH_O,
     "set_batched_type(types): the classes of what stands for them under vmap."},
    {"run_backward", run_backward_py, METH_VARARGS,
     "run_backward(outputs, seeds, inputs, retain_graph, create_graph, accumulate, allow_unused, zeros): the engine."},
    {"other_leaves", other_leaves_py, METH_VARARGS,
     "other_leaves(outputs, inputs): the leaves that a gradient would go to, without the inputs."},
    {},
};

}  // namespace

bool is_differentiated(TensorObject* t) {
    if (autograd_state.transformations) return true;
    if (!transformations_anywhere) return false;
    if (tensor_tangent(t)) return true;
    return guarded(
        [&] {
            const Ref outputs = Ref::steal(PyTuple_Pack(1, as_object(t))), none = Ref::steal(PyTuple_New(0));
            const Ref leaves = outputs && none ? other_leaves(outputs.get(), none.get()) : Ref();
            for (Py_ssize_t i = 0; leaves && i < PyList_GET_SIZE(leaves.get()); ++i)
                if (as_tensor(PyList_GET_ITEM(leaves.get(), i))->is_argument) return true;
            if (!leaves) PyErr_Clear();
            return !leaves;
        },
        true);
}

int autograd_init(PyObject* module) {
    if (grad_node_init(module) < 0 || tensor_init(module) < 0 || function_class_init(module) < 0 ||
        modes_init(module) < 0 || forward_init(module) < 0)
        return -1;
    Ref numpy = Ref::steal(PyImport_ImportModule("numpy"));
    if (!numpy || native_init(numpy.get()) < 0) return -1;
    return PyModule_AddFunctions(module, functions);
}

}  // namespace pyop
