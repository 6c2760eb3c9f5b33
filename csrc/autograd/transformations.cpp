// autograd/transformations.cpp: answer what pyop.vjp and its kin, at arrays, ask of the record of the function they
// have called.
#include "autograd/transformations.h"

#include <unordered_set>
#include <vector>

#include "array/protocol/containers.h"
#include "autograd/engine.h"
#include "autograd/forward.h"
#include "autograd/state.h"
#include "autograd/tensor_parts.h"
#include "autograd/turn.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

// What a caller gives for a cotangent, in the dtype of the output. Empty with the error set.
Ref seed_for(TensorObject* output, PyObject* given) {
    PyArray_Descr* dtype = PyArray_DESCR(output->data);
    if (is_tensor(given) || (is_exact_array(given) && PyArray_DESCR(as_array(given)) == dtype))
        return Ref::borrow(given);
    if (check_nothing_lost(given) < 0) return {};
    Py_INCREF(reinterpret_cast<PyObject*>(dtype));
    return Ref::steal(PyArray_FromAny(given, dtype, 0, 0, NPY_ARRAY_FORCECAST | NPY_ARRAY_ENSUREARRAY, nullptr));
}

Ref zeros_of(PyObject* input, bool tensors) {
    ArrayInfo* info = tensor_info(as_tensor(input));
    Ref zeros = info ? zeros_like_info(*info) : Ref();
    if (!zeros || !tensors) return zeros;
    return Ref::steal(as_object(tensor_new_steal(as_array(zeros.release()))));
}

// Outputs may be anything, of which no gradient comes unless it is recorded; a seed may be None, for zero.
PyObject* pull(PyObject* outputs, PyObject* seeds, PyObject* inputs, bool create_graph, bool zeros) {
    std::vector<PyObject*> from;
    std::vector<PyObject*> with;
    std::vector<Ref> owned;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); ++i) {
        PyObject *output = PyList_GET_ITEM(outputs, i), *seed = PyList_GET_ITEM(seeds, i);
        if (!is_tensor(output) || !as_tensor(output)->requires_grad || seed == Py_None) continue;
        owned.push_back(seed_for(as_tensor(output), seed));
        if (!owned.back()) return nullptr;
        from.push_back(output);
        with.push_back(owned.back().get());
    }
    Ref wanted = Ref::steal(PyList_AsTuple(inputs));
    if (!wanted) return nullptr;
    const Py_ssize_t n = PyTuple_GET_SIZE(wanted.get());
    if (from.empty() || n == 0) {
        Ref found = Ref::steal(PyList_New(n));
        for (Py_ssize_t i = 0; found && i < n; ++i) {
            Ref none = zeros ? zeros_of(PyTuple_GET_ITEM(wanted.get(), i), create_graph) : Ref::borrow(Py_None);
            if (!none) return nullptr;
            PyList_SET_ITEM(found.get(), i, none.release());
        }
        return found.release();
    }
    RunOptions options;
    options.retain_graph = true;
    options.create_graph = create_graph;
    options.accumulate = false;
    options.allow_unused = true;
    options.zeros_for_unused = zeros;
    options.arrays = !create_graph;
    Ref found = Ref::steal(run_backward(from.data(), with.data(), from.size(), wanted.get(), options));
    return found ? PySequence_List(found.get()) : nullptr;
}

PyObject* pull_py(PyObject*, PyObject* args) {
    PyObject *outputs, *seeds, *inputs;
    int create, zeros;
    if (!PyArg_ParseTuple(args, "O!O!O!pp:pull", &PyList_Type, &outputs, &PyList_Type, &seeds, &PyList_Type, &inputs,
                          &create, &zeros))
        return nullptr;
    if (PyList_GET_SIZE(outputs) != PyList_GET_SIZE(seeds)) {
        PyErr_Format(PyExc_ValueError, "%zd outputs need as many cotangents, got %zd", PyList_GET_SIZE(outputs),
                     PyList_GET_SIZE(seeds));
        return nullptr;
    }
    return guarded([&] { return pull(outputs, seeds, inputs, create != 0, zeros != 0); },
                   static_cast<PyObject*>(nullptr));
}

// Whether `is` holds for a leaf that a gradient of one of the outputs would go to.
template <typename Predicate>
bool any_leaf(PyObject* const* outputs, Py_ssize_t n, const Predicate& is) {
    std::unordered_set<const GradNode*> seen;
    std::vector<const GradNode*> stack;
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (!is_tensor(outputs[i]) || !as_tensor(outputs[i])->requires_grad) continue;
        const GradNode* node = as_tensor(outputs[i])->grad_fn;
        if (!node && is(outputs[i])) return true;
        if (node && seen.insert(node).second) stack.push_back(node);
    }
    while (!stack.empty()) {
        const GradNode* node = stack.back();
        stack.pop_back();
        if (node->kind == GradNodeKind::Accumulate && node->owner && is(node->owner)) return true;
        for (Py_ssize_t i = 0; i < edge_count(node); ++i) {
            const GradNode* next = node->edges[i].node;
            if (next && seen.insert(next).second) stack.push_back(next);
        }
    }
    return false;
}

bool depends_on_others(PyObject* outputs, PyObject* inputs) {
    for (Py_ssize_t i = 0; any_forward_run() && i < PyList_GET_SIZE(outputs); ++i) {
        PyObject* output = PyList_GET_ITEM(outputs, i);
        if (is_tensor(output) && tensor_tangent(as_tensor(output))) return true;
    }
    return is_recording() && any_leaf(PySequence_Fast_ITEMS(outputs), PyList_GET_SIZE(outputs), [&](PyObject* leaf) {
               for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); ++i)
                   if (PyList_GET_ITEM(inputs, i) == leaf) return false;
               return !as_tensor(leaf)->is_opened;
           });
}

PyObject* depends_on_others_py(PyObject*, PyObject* args) {
    PyObject *outputs, *inputs;
    if (!PyArg_ParseTuple(args, "O!O!:depends_on_others", &PyList_Type, &outputs, &PyList_Type, &inputs))
        return nullptr;
    return guarded([&] { return PyBool_FromLong(depends_on_others(outputs, inputs)); },
                   static_cast<PyObject*>(nullptr));
}

PyObject* note_opened(PyObject*, PyObject* tensors) {
    if (!PyList_CheckExact(tensors)) {
        PyErr_SetString(PyExc_TypeError, "note_opened takes a list");
        return nullptr;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tensors); ++i) {
        PyObject* t = PyList_GET_ITEM(tensors, i);
        if (is_tensor(t)) as_tensor(t)->is_opened = true;
    }
    Py_RETURN_NONE;
}

PyObject* read_only(PyObject*, PyObject* arrays) {
    if (!PyTuple_CheckExact(arrays)) {
        PyErr_SetString(PyExc_TypeError, "read_only takes a tuple");
        return nullptr;
    }
    Ref found = Ref::steal(PyTuple_New(PyTuple_GET_SIZE(arrays)));
    for (Py_ssize_t i = 0; found && i < PyTuple_GET_SIZE(arrays); ++i) {
        PyObject* item = PyTuple_GET_ITEM(arrays, i);
        const bool changes = is_exact_array(item) && PyArray_ISWRITEABLE(as_array(item));
        PyObject* view = changes ? PyArray_View(as_array(item), nullptr, nullptr) : Py_NewRef(item);
        if (!view) return nullptr;
        if (changes) PyArray_CLEARFLAGS(as_array(view), NPY_ARRAY_WRITEABLE);
        PyTuple_SET_ITEM(found.get(), i, view);
    }
    return found.release();
}

PyMethodDef transformation_functions[] = {
    {"pull", in_turn<pull_py>, METH_VARARGS,
     "pull(outputs, cotangents, inputs, create_graph, zeros): one gradient an input, of its shape: arrays that are "
     "nobody else's, or with create_graph Tensors; None where there is none, or `zeros`."},
    {"depends_on_others", in_turn<depends_on_others_py>, METH_VARARGS,
     "depends_on_others(outputs, inputs): whether derivatives may be asked for by Tensors that no transformation has "
     "made: gradients would go to them, or these are in a run forward."},
    {"note_opened", in_turn<note_opened>, METH_O,
     "note_opened(tensors): a transformation has made them for arguments, and nobody else asks for derivatives by "
     "them."},
    {"read_only", read_only, METH_O, "read_only(arrays): a tuple, with views that nobody writes into for its arrays."},
    {},
};

}  // namespace

bool is_differentiated(TensorObject* t) {
    if (autograd_state.transformations) return true;
    if (!transformations_anywhere) return false;
    if (tensor_tangent(t)) return true;
    PyObject* output = as_object(t);
    return guarded([&] { return any_leaf(&output, 1, [](PyObject* leaf) { return as_tensor(leaf)->is_argument; }); },
                   true);
}

int transformations_init(PyObject* module) { return PyModule_AddFunctions(module, transformation_functions); }

}  // namespace pyop
