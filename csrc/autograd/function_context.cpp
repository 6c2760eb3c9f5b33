// autograd/function_context.cpp: provide ctx to forward, setup_context, backward and jvp.
#include "autograd/engine.h"
#include "autograd/function.h"
#include "autograd/state.h"
#include "autograd/turn.h"
#include "runtime/errors.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

FunctionCall* call_of(PyObject* self, const char* method) {
    GradNode* node = as_grad_node(self);
    if (!node->call)
        PyErr_Format(PyExc_RuntimeError, "ctx.%s() belongs into forward or setup_context: the call is over", method);
    return node->call;
}

PyObject* save_for_backward(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    if (!call_of(self, "save_for_backward")) return nullptr;
    SavedArrays* saved = saved_new(args, n, "save_for_backward()");
    if (!saved) return nullptr;
    saved_free(std::exchange(as_grad_node(self)->saved, saved));
    Py_RETURN_NONE;
}

PyObject* save_for_forward(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    FunctionCall* call = call_of(self, "save_for_forward");
    SavedArrays* saved = call ? saved_new(args, n, "save_for_forward()") : nullptr;
    if (!saved) return nullptr;
    saved_free(std::exchange(call->for_forward, saved));
    Py_RETURN_NONE;
}

int check_arrays(PyObject* const* args, Py_ssize_t n, const char* who) {
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (is_tensor(args[i]) || PyArray_Check(args[i]) || PyArray_CheckScalar(args[i])) continue;
        PyErr_Format(PyExc_TypeError, "%s() takes arrays, but argument %zd is of type %s", who, i,
                     Py_TYPE(args[i])->tp_name);
        return -1;
    }
    return 0;
}

PyObject* mark_dirty(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    FunctionCall* call = call_of(self, "mark_dirty");
    if (!call || check_arrays(args, n, "mark_dirty") < 0) return nullptr;
    for (Py_ssize_t i = 0; i < n; ++i) {
        const Py_ssize_t argument = call->argument(args[i]);
        if (!call->recorded || argument < 0 || !is_tensor(call->args[argument])) continue;
        const TensorObject* t = as_tensor(call->args[argument]);
        if (!t->requires_grad || t->grad_fn) continue;
        PyErr_Format(PyExc_RuntimeError,
                     "%U changes argument %zd in place, but that is a leaf that requires a gradient, whose numbers the "
                     "gradient would no longer belong to. If forward wrote into it before mark_dirty(), it has been "
                     "changed already; do it under no_grad(), or on a copy.",
                     call->function->name, argument);
        return nullptr;
    }
    return guarded(
        [&] {
            call->dirty.clear();
            for (Py_ssize_t i = 0; i < n; ++i) call->dirty.push_back(Ref::borrow(args[i]));
            return Py_NewRef(Py_None);
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* mark_non_differentiable(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    FunctionCall* call = call_of(self, "mark_non_differentiable");
    if (!call || check_arrays(args, n, "mark_non_differentiable") < 0) return nullptr;
    return guarded(
        [&] {
            call->non_differentiable.clear();
            for (Py_ssize_t i = 0; i < n; ++i) call->non_differentiable.push_back(Ref::borrow(args[i]));
            return Py_NewRef(Py_None);
        },
        static_cast<PyObject*>(nullptr));
}

int truth(PyObject* value, const char* name, bool& flag) {
    if (!value || !PyBool_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s takes True or False, not %s", name,
                     value ? Py_TYPE(value)->tp_name : "nothing");
        return -1;
    }
    flag = value == Py_True;
    return 0;
}

PyObject* set_materialize_grads(PyObject* self, PyObject* value) {
    if (truth(value, "set_materialize_grads()", as_grad_node(self)->materialize) < 0) return nullptr;
    Py_RETURN_NONE;
}

template <bool GradNode::* flag>
PyObject* get_flag(PyObject* self, void*) {
    return PyBool_FromLong(as_grad_node(self)->*flag);
}
template <bool GradNode::* flag>
int set_flag(PyObject* self, PyObject* value, void* name) {
    return truth(value, static_cast<const char*>(name), as_grad_node(self)->*flag);
}

PyObject* saved_tensors(PyObject* self, void*) {
    GradNode* node = as_grad_node(self);
    FunctionCall* call = node->call;
    if (call && call->for_forward) {
        Ref tuple = Ref::steal(PyTuple_New(call->for_forward->count));
        for (uint32_t i = 0; tuple && i < call->for_forward->count; ++i) {
            PyObject* value = call->for_forward->items[i].value;
            const Py_ssize_t argument = value ? call->argument(value) : -1;
            // In a jvp that is itself recorded, what was an argument is the Tensor it came from.
            if (is_recording() && argument >= 0) value = call->args[argument];
            PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), Py_NewRef(value ? value : Py_None));
        }
        return tuple.release();
    }
    if (call && !call->in_jvp) return PyTuple_New(0);
    if (node->freed) {
        second_time_error(node);
        return nullptr;
    }
    return guarded([&] { return saved_unpack(node); }, static_cast<PyObject*>(nullptr));
}

PyObject* raw_items(const SavedArrays* saved) {
    Ref tuple = Ref::steal(PyTuple_New(saved ? saved->count : 0));
    for (uint32_t i = 0; tuple && saved && i < saved->count; ++i) {
        PyObject* value = saved->items[i].value;
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), Py_NewRef(value ? value : Py_None));
    }
    return tuple.release();
}

PyObject* raw_list(const std::vector<Ref>& list) {
    Ref tuple = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
    for (size_t i = 0; tuple && i < list.size(); ++i)
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), list[i].new_ref());
    return tuple.release();
}

PyObject* to_save(PyObject* self, void*) {
    GradNode* node = as_grad_node(self);
    return node->call ? raw_items(node->saved) : PyTuple_New(0);
}
PyObject* saved_for_forward(PyObject* self, void*) {
    FunctionCall* call = as_grad_node(self)->call;
    return raw_items(call ? call->for_forward : nullptr);
}
PyObject* dirty_tensors(PyObject* self, void*) {
    FunctionCall* call = as_grad_node(self)->call;
    return call ? raw_list(call->dirty) : PyTuple_New(0);
}
PyObject* non_differentiable(PyObject* self, void*) {
    FunctionCall* call = as_grad_node(self)->call;
    return call ? raw_list(call->non_differentiable) : PyTuple_New(0);
}

// One bool an argument; where arguments are trees, Python's part makes one of each tree's leaves.
template <typename Predicate>
PyObject* by_argument(GradNode* node, Predicate&& predicate) {
    const Py_ssize_t n = edge_count(node);
    Ref tuple = Ref::steal(PyTuple_New(n));
    if (!tuple) return nullptr;
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, PyBool_FromLong(predicate(node->edges[i])));
    if (!node->extra || !node->extra->tree) return tuple.release();
    PyObject* args[] = {node->extra->tree, tuple.get()};
    return outside_new(up_calls.any_by_argument, args, 2);
}

PyObject* needs_input_grad(PyObject* self, void*) {
    GradNode* node = as_grad_node(self);
    const Run* run = autograd_state.node == node ? autograd_state.run : nullptr;
    return by_argument(node, [&](const GradEdge& edge) { return run ? run->wants(edge) : edge.node != nullptr; });
}
PyObject* is_variable_input(PyObject* self, void*) {
    return by_argument(as_grad_node(self), [](const GradEdge& edge) { return edge.kind == ArgumentKind::Tensor; });
}

PyObject* info_object(const ArrayInfo* info) {
    if (!info) return Py_NewRef(Py_None);
    Ref shape = Ref::steal(PyTuple_New(info->ndim));
    for (int i = 0; shape && i < info->ndim; ++i) PyTuple_SET_ITEM(shape.get(), i, PyLong_FromSsize_t(info->shape[i]));
    return shape ? PyTuple_Pack(2, info->descr, shape.get()) : nullptr;
}

PyObject* input_info(PyObject* self, void*) {
    GradNode* node = as_grad_node(self);
    Ref list = Ref::steal(PyList_New(0));
    for (Py_ssize_t i = 0; list && i < edge_count(node); ++i) {
        if (node->edges[i].kind != ArgumentKind::Tensor) continue;
        Ref item = Ref::steal(info_object(node->edges[i].info));
        if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
    }
    return list ? PyList_AsTuple(list.get()) : nullptr;
}
PyObject* output_info(PyObject* self, void*) {
    GradNode* node = as_grad_node(self);
    Ref tuple = Ref::steal(PyTuple_New(node->output_count));
    for (uint32_t i = 0; tuple && i < node->output_count; ++i) {
        PyObject* item = info_object(node->outputs[i].info);
        if (!item) return nullptr;
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), item);
    }
    return tuple.release();
}

PyObject* function_of(PyObject* self, void*) {
    GradNode* node = as_grad_node(self);
    PyObject* cls = node->kind == GradNodeKind::Function ? as_function_class(node->owner)->cls : nullptr;
    return Py_NewRef(cls ? cls : Py_None);
}

PyObject* requires_grad(PyObject*, void*) { return Py_NewRef(Py_True); }

template <typename F>
PyCFunction fast(F* f) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

constexpr const char* kFlagNames[] = {"materialize_grads", "materialize_non_diff_grads", "pure_view"};

}  // namespace

PyMethodDef grad_node_context_methods[] = {
    {"save_for_backward", fast(in_turn<save_for_backward>), METH_FASTCALL,
     "save_for_backward($self, /, *arrays)\n--\n\nKeep arrays (or None) for backward, which finds them in "
     "`saved_tensors`."},
    {"save_for_forward", fast(in_turn<save_for_forward>), METH_FASTCALL,
     "save_for_forward($self, /, *arrays)\n--\n\nKeep arrays (or None) for jvp, which finds them in `saved_tensors`."},
    {"mark_dirty", fast(in_turn<mark_dirty>), METH_FASTCALL,
     "mark_dirty($self, /, *arrays)\n--\n\nSay that these arguments were changed in place. They must be returned."},
    {"mark_non_differentiable", fast(in_turn<mark_non_differentiable>), METH_FASTCALL,
     "mark_non_differentiable($self, /, *arrays)\n--\n\nSay that these outputs have no gradient."},
    {"set_materialize_grads", in_turn<set_materialize_grads>, METH_O,
     "set_materialize_grads($self, value, /)\n--\n\nWhether backward gets zeros (the default) or None for gradients "
     "that "
     "did not arrive."},
    {},
};

PyGetSetDef grad_node_context_getset[] = {
    {"saved_tensors", in_turn<saved_tensors>, nullptr,
     "What save_for_backward kept: arrays, or while recording Tensors with their history.", nullptr},
    {"to_save", in_turn<to_save>, nullptr, "What save_for_backward was given, during the call.", nullptr},
    {"saved_for_forward", in_turn<saved_for_forward>, nullptr, "What save_for_forward was given, during the call.",
     nullptr},
    {"dirty_tensors", in_turn<dirty_tensors>, nullptr, "What mark_dirty was given, during the call.", nullptr},
    {"non_differentiable", in_turn<non_differentiable>, nullptr,
     "What mark_non_differentiable was given, during the call.", nullptr},
    {"needs_input_grad", in_turn<needs_input_grad>, nullptr,
     "One bool an argument: whether its gradient is wanted. In backward, by the run that asks.", nullptr},
    {"is_variable_input", in_turn<is_variable_input>, nullptr, "One bool an argument: whether it is a Tensor.",
     nullptr},
    {"input_info", in_turn<input_info>, nullptr,
     "(dtype, shape) of each Tensor argument; None where no gradient is wanted.", nullptr},
    {"output_info", in_turn<output_info>, nullptr, "(dtype, shape) of each output; None where it is not an array.",
     nullptr},
    {"requires_grad", in_turn<requires_grad>, nullptr, "True.", nullptr},
    {"function", in_turn<function_of>, nullptr, "The Function this is a call of, or None.", nullptr},
    {"materialize_grads", get_flag<&GradNode::materialize>, set_flag<&GradNode::materialize>,
     "Zeros instead of None for gradients that did not arrive.", const_cast<char*>(kFlagNames[0])},
    {"materialize_non_diff_grads", get_flag<&GradNode::materialize_non_diff>, set_flag<&GradNode::materialize_non_diff>,
     "Zeros instead of None for outputs that have no gradient.", const_cast<char*>(kFlagNames[1])},
    {"_materialize_non_diff_grads", get_flag<&GradNode::materialize_non_diff>,
     set_flag<&GradNode::materialize_non_diff>, "The same, as torch spells it.", const_cast<char*>(kFlagNames[1])},
    {"pure_view", get_flag<&GradNode::pure_view>, set_flag<&GradNode::pure_view>,
     "The outputs are nothing but views of the arguments.", const_cast<char*>(kFlagNames[2])},
    {"_is_pure_view", get_flag<&GradNode::pure_view>, set_flag<&GradNode::pure_view>, "The same, as torch spells it.",
     const_cast<char*>(kFlagNames[2])},
    {},
};

}  // namespace pyop
