// autograd/function_outputs.cpp: turn what forward returned into what apply returns.
#include <algorithm>  // std::find

#include "array/protocol/containers.h"
#include "autograd/engine.h"
#include "autograd/function.h"
#include "autograd/function_parts.h"
#include "autograd/state.h"
#include "autograd/tensor_parts.h"
#include "runtime/ensure_tuple.h"
#include "runtime/items.h"

namespace pyop {

namespace {

bool holds_array(PyObject* o) {
    auto is_array = [](PyObject* item) { return is_tensor(item) || PyArray_Check(item) || PyArray_CheckScalar(item); };
    if (PyList_Check(o)) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i) {
            if (const Ref item = item_of(o, i); item && is_array(item.get())) return true;
        }
    } else if (PyDict_Check(o)) {
        const ObjectLock lock(o);
        PyObject *key, *value;
        Py_ssize_t at = 0;
        while (PyDict_Next(o, &at, &key, &value)) {
            if (is_array(value)) return true;
        }
    }
    return false;
}

// The memory that `array` is a view of, as far as its bases tell.
PyObject* root_of(PyObject* array) {
    while (is_exact_array(array) && PyArray_BASE(as_array(array))) array = PyArray_BASE(as_array(array));
    return array;
}

// The Tensor among the arguments whose memory a new array shares, or null.
TensorObject* base_among_arguments(const FunctionCall& call, PyArrayObject* array) {
    if (!PyArray_BASE(array)) return nullptr;
    PyObject* root = root_of(as_object(array));
    for (size_t i = 0; i < call.count; ++i) {
        if (is_tensor(call.args[i]) && root_of(as_object(as_tensor(call.args[i])->data)) == root)
            return as_tensor(call.args[i]);
    }
    return nullptr;
}

PYOP_COLD int in_place_error(const FunctionCall& call, const char* why) {
    PyErr_Format(PyExc_RuntimeError, "%U changed its argument in place, but %s", call.function->name, why);
    return -1;
}

struct Outputs {
    FunctionCall& call;
    GradNode* node;
    std::vector<PyObject*> seen;   // dirty arrays that were returned

    // An argument that forward changed and returned: the same Tensor, with its history continued here.
    Ref dirty(TensorObject* t, PyObject* array, uint32_t index, bool differentiable) {
        const bool again = std::find(seen.begin(), seen.end(), array) != seen.end();
        seen.push_back(array);
        if (again || (!differentiable && t->requires_grad)) return alias(t, index, differentiable);
        if (!differentiable) return Ref::borrow(as_object(t));
        if (t->is_view && t->grad_fn &&
            in_place_error(call,
                           "that is a view of another Tensor, whose history would not "
                           "know of the change: copy it first") < 0)
            return {};
        if (PyObject* grad = std::exchange(t->grad, nullptr)) decref(grad);
        Ref before = Ref::borrow(as_object(t->grad_fn));
        tensor_set_history(t, node, index);
        // What is kept in .grad is the gradient of the value that the Tensor stands for now.
        if (tensor_retain_again(t, as_grad_node(before.get())) < 0) return {};
        return Ref::borrow(as_object(t));
    }

    // An argument returned as it is: a new Tensor over the same memory.
    Ref alias(TensorObject* t, uint32_t index, bool differentiable) {
        TensorObject* made = tensor_alias_new(t);
        if (made && differentiable) {
            tensor_set_history(made, node, index);
            made->is_view = true;
            made->view_version = tensor_version(made);
        }
        return Ref::steal(as_object(made));
    }

    Ref fresh(PyObject* value, PyArrayObject* array, uint32_t index, bool differentiable) {
        TensorObject* base = is_tensor(value) ? as_tensor(value) : base_among_arguments(call, array);
        TensorObject* made = tensor_new_steal(as_array(Py_NewRef(as_object(array))));
        Ref owner = Ref::steal(as_object(made));
        if (made && !is_exact_array(value)) made->is_scalar = PyArray_CheckScalar(value);
        if (!made || (base && tensor_share_version(made, base) < 0)) return {};
        for (size_t i = 0; i < call.count && !made->info; ++i) {
            ArrayInfo* known = node->edges[i].info;
            if (known && is_described_by(array, *known)) made->info = share(known);
        }
        if (differentiable) {
            tensor_set_history(made, node, index);
            made->is_view = base && !is_tensor(value);
            made->view_version = tensor_version(made);
        }
        return owner;
    }

    // Output `index` as the caller gets it. Empty with the error set.
    Ref wrap(PyObject* value, uint32_t index) {
        if (value == Py_None) return Ref::borrow(value);
        Ref array;
        if (is_tensor(value)) {
            array = Ref::borrow(as_object(as_tensor(value)->data));
        } else if (is_exact_array(value)) {
            array = Ref::borrow(value);
        } else if (PyArray_Check(value) || PyArray_CheckScalar(value)) {
            if (check_nothing_lost(value) < 0) return {};
            array = Ref::steal(PyArray_EnsureArray(Py_NewRef(value)));
            if (!array) return {};
        } else {
            if (check_no_rules(value, "what forward returned") < 0) return {};
            if (!holds_array(value)) return Ref::borrow(value);
            PyErr_Format(PyExc_TypeError,
                         "forward of %U returned arrays inside a %s, which would lose their gradients: return an array "
                         "or a tuple of arrays",
                         call.function->name, Py_TYPE(value)->tp_name);
            return {};
        }
        const bool marked = FunctionCall::contains(call.non_differentiable, value) ||
                            FunctionCall::contains(call.non_differentiable, array.get());
        const bool differentiable = call.recorded && !marked && is_differentiable(PyArray_DESCR(as_array(array.get())));
        const Py_ssize_t argument = is_tensor(value) ? -1 : call.argument(array.get());
        Ref made;
        if (argument >= 0 && is_tensor(call.args[argument])) {
            TensorObject* t = as_tensor(call.args[argument]);
            made = call.is_dirty(array.get()) ? dirty(t, array.get(), index, differentiable)
                                              : alias(t, index, differentiable);
        } else {
            if (call.is_dirty(array.get())) seen.push_back(array.get());
            made = fresh(value, as_array(array.get()), index, differentiable);
        }
        if (!made || !call.recorded) return made;
        ArrayInfo* info = tensor_info(as_tensor(made.get()));
        if (!info) return {};
        node->outputs[index].info = share(info);
        node->outputs[index].differentiable = differentiable;
        return made;
    }
};

int finish_saved(FunctionCall& call, PyObject* const* raw, PyObject* const* made, size_t n) {
    SavedArrays* saved = call.node->saved;
    npy_intp bytes = 0;
    for (size_t k = 0; k < n; ++k) bytes += is_tensor(made[k]) ? PyArray_NBYTES(as_tensor(made[k])->data) : 0;
    for (uint32_t i = 0; i < saved->count; ++i) {
        SavedItem& item = saved->items[i];
        if (item.kind == SavedItem::None) continue;
        const Py_ssize_t argument = call.argument(item.value);
        bool done = false;
        if (argument < 0 || call.is_dirty(item.value)) {
            for (size_t k = 0; k < n && !done; ++k) {
                if (raw[k] != item.value || !is_tensor(made[k])) continue;
                const bool fresh =
                    call.is_fresh && argument < 0 && is_exact_array(raw[k]) && !PyArray_BASE(as_array(raw[k]));
                if (saved_set_output(item, as_tensor(made[k]), static_cast<uint32_t>(k), fresh) < 0) return -1;
                // A Tensor that forward returned: its array, so that the history of the result is not saved.
                if (is_tensor(item.value)) Py_SETREF(item.value, Py_NewRef(as_object(as_tensor(made[k])->data)));
                done = true;
            }
        }
        if (done) continue;
        if (argument >= 0 && is_tensor(call.args[argument])) {
            saved_set_input(item, as_tensor(call.args[argument]), bytes);
        } else {
            saved_finish(item, bytes);
            if (argument >= 0 && item.kind == SavedItem::Other) item.kind = SavedItem::Constant;
        }
    }
    return 0;
}

int check_dirty(const FunctionCall& call, const Outputs& outputs) {
    for (const Ref& array : call.dirty) {
        if (std::find(outputs.seen.begin(), outputs.seen.end(), array.get()) != outputs.seen.end()) continue;
        PyErr_Format(PyExc_RuntimeError,
                     "forward of %U marked an argument as dirty and did not return it: an argument changed in place "
                     "must be among the outputs",
                     call.function->name);
        return -1;
    }
    return 0;
}

}  // namespace

PyObject* function_finish(FunctionCall& call, Ref result) {
    GradNode* node = call.node;
    if (!call.any_tensor && call.any_array) return result.release();  // arrays in, arrays out
    if (PyList_Check(result.get()) || PyDict_Check(result.get())) {
        if (holds_array(result.get())) {
            PyErr_Format(
                PyExc_TypeError,
                "forward of %U returned a %s, which would lose the gradients of its arrays: return an array or "
                "a tuple of arrays",
                call.function->name, Py_TYPE(result.get())->tp_name);
            return nullptr;
        }
    }
    for (const Ref& array : call.dirty) {
        const Py_ssize_t argument = call.argument(array.get());
        if (argument >= 0 && is_tensor(call.args[argument])) tensor_bump(as_tensor(call.args[argument]));
    }
    PyObject* single = result.get();
    const bool many = PyTuple_Check(single);
    PyObject* const* raw = many ? reinterpret_cast<PyTupleObject*>(single)->ob_item : &single;
    const size_t n = many ? static_cast<size_t>(PyTuple_GET_SIZE(single)) : 1;
    if (call.recorded && grad_node_set_outputs(node, static_cast<uint32_t>(n)) < 0) return nullptr;
    Outputs outputs{call, node, {}};
    Ref made;
    PyObject* one = nullptr;
    PyObject* const* items = &one;
    if (many) {
        made = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(n)));
        if (!made) return nullptr;
        for (size_t i = 0; i < n; ++i) {
            Ref item = outputs.wrap(raw[i], static_cast<uint32_t>(i));
            if (!item) return nullptr;
            PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), item.release());
        }
        items = reinterpret_cast<PyTupleObject*>(made.get())->ob_item;
    } else {
        made = outputs.wrap(single, 0);
        if (!made) return nullptr;
        one = made.get();
    }
    if (!call.dirty.empty() && check_dirty(call, outputs) < 0) return nullptr;
    if (node->saved) {
        if (!call.recorded) {
            if (!call.any_tangent) saved_free(std::exchange(node->saved, nullptr));
        } else if (finish_saved(call, raw, items, n) < 0) {
            return nullptr;
        }
    }
    if (PYOP_UNLIKELY(call.any_tangent) && function_forward_mode(call, made.get()) < 0) return nullptr;
    return made.release();
}

int record_saves(FunctionCall& call, PyObject* result) {
    const auto outputs = PyTuple_Check(result) ? PyTuple_GET_SIZE(result) : 1;
    std::vector<PyObject*> arrays;
    for (size_t i = 0; i < call.count; ++i) arrays.push_back(call.arrays[i]);
    for (Py_ssize_t i = 0; i < outputs; ++i) {
        PyObject* item = PyTuple_Check(result) ? PyTuple_GET_ITEM(result, i) : result;
        arrays.push_back(PyArray_Check(item) || PyArray_CheckScalar(item) ? item : Py_None);
    }
    call.node->saved = saved_new(arrays.data(), static_cast<Py_ssize_t>(arrays.size()), "a recorded call");
    return call.node->saved ? 0 : -1;
}

}  // namespace pyop
