// autograd/hooks.cpp: run hooks, check what they return, and hand out the handles that remove them.
#include "autograd/hooks.h"

#include "autograd/engine.h"
#include "autograd/tensor_parts.h"
#include "autograd/turn.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

Ref values_of(PyObject* dict) { return Ref::steal(PyDict_Values(dict)); }

Ref name_of(PyObject* callable) {
    PyObject* name = PyObject_GetAttrString(callable, "__name__");
    if (!name) {
        PyErr_Clear();
        name = PyObject_Repr(callable);
    }
    return Ref::steal(name);
}

// What a hook returned instead of `gradient`. Empty with the error set.
Ref replacement(Ref result, PyObject* hook, const ArrayInfo& info, bool tensors) {
    const bool array = is_tensor(result.get()) || PyArray_Check(result.get()) || PyArray_CheckScalar(result.get());
    Ref name = name_of(hook);
    if (!name) return {};
    if (!array) {
        PyErr_Format(PyExc_TypeError, "a hook returns an array, a Tensor or None, but hook '%S' returned %s",
                     name.get(), Py_TYPE(result.get())->tp_name);
        return {};
    }
    Ref value = to_array(result.get());
    if (!value) return {};
    if (!has_shape_of(as_array(value.get()), info)) {
        Ref got = shape_text(PyArray_DIMS(as_array(value.get())), PyArray_NDIM(as_array(value.get())));
        Ref want = shape_text(info.shape, info.ndim);
        if (got && want)
            PyErr_Format(PyExc_ValueError, "hook '%S' changed the shape of the gradient from %U to %U", name.get(),
                         want.get(), got.get());
        return {};
    }
    Ref plain = tensors ? std::move(result) : std::move(value);
    return fit_gradient(std::move(plain), info, tensors, false, "hook", name.get(), 0);
}

}  // namespace

PyObject* hook_add_new(PyObject*& slot, PyObject* hook) {
    if (!PyCallable_Check(hook)) {
        PyErr_Format(PyExc_TypeError, "a hook is a callable, not %s", Py_TYPE(hook)->tp_name);
        return nullptr;
    }
    if (!slot && !(slot = PyDict_New())) return nullptr;
    PyObject* args[] = {slot, hook};
    return outside_new(up_calls.add_hook, args, 2);
}

int run_hooks(PyObject* hooks, Ref& gradient, const ArrayInfo& info, bool tensors) {
    if (!hooks || !gradient || PyDict_GET_SIZE(hooks) == 0) return 0;
    Ref list = values_of(hooks);
    if (!list) return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
        PyObject* hook = PyList_GET_ITEM(list.get(), i);
        PyObject* arg = gradient.get();
        Ref result = Ref::steal(outside_new(hook, &arg, 1));
        if (!result) return -1;
        if (result.get() == Py_None) continue;
        gradient = replacement(std::move(result), hook, info, tensors);
        if (!gradient) return -1;
    }
    return 0;
}

int run_output_hooks(GradNode* node, uint32_t index, Ref& gradient, bool tensors) {
    if (!node->extra || !gradient) return 0;
    const ArrayInfo* info = node->outputs[index].info;
    if (!info) return 0;
    // Indices, because a hook may add others.
    for (size_t i = 0; i < node->extra->output_hooks.size(); ++i) {
        if (node->extra->output_hooks[i].output != index) continue;
        Ref hooks = Ref::borrow(node->extra->output_hooks[i].hooks);
        if (run_hooks(hooks.get(), gradient, *info, tensors) < 0) return -1;
    }
    for (size_t i = 0; i < node->extra->output_hooks.size(); ++i) {
        const OutputHook& hook = node->extra->output_hooks[i];
        if (hook.output != index || !hook.retained) continue;
        Ref t = referent(hook.retained);
        if (!t) continue;
        if (accumulate_gradient(as_tensor(t.get()), gradient, tensors) < 0) return -1;
    }
    return 0;
}

int run_post_accumulate_hooks(TensorObject* t) {
    if (!t->extra || !t->extra->post_hooks) return 0;
    Ref list = values_of(t->extra->post_hooks);
    if (!list) return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
        PyObject* arg = as_object(t);
        Ref result = Ref::steal(outside_new(PyList_GET_ITEM(list.get(), i), &arg, 1));
        if (!result) return -1;
        if (result.get() != Py_None) {
            PyErr_Format(PyExc_TypeError, "a post-accumulate hook returns None, not %s",
                         Py_TYPE(result.get())->tp_name);
            return -1;
        }
    }
    return 0;
}

namespace {

// A hook's tuple of gradients instead of those in `current`.
int check_tuple(PyObject* result, Py_ssize_t n, PyObject* hook, const char* kind) {
    Ref name = name_of(hook);
    if (!name) return -1;
    if (!PyTuple_Check(result)) {
        PyErr_Format(PyExc_TypeError, "a node's %s returns a tuple of gradients or None, but '%S' returned %s", kind,
                     name.get(), Py_TYPE(result)->tp_name);
        return -1;
    }
    if (PyTuple_GET_SIZE(result) != n) {
        PyErr_Format(PyExc_ValueError, "%s '%S' returned %zd gradients where %zd are needed", kind, name.get(),
                     PyTuple_GET_SIZE(result), n);
        return -1;
    }
    return 0;
}

int replace_from(PyObject* item, PyObject* hook, const ArrayInfo* info, bool tensors, Ref& slot) {
    if (item == Py_None) {
        slot.reset();
        return 0;
    }
    if (item == slot.get()) return 0;
    if (!info || !slot) {
        PyErr_SetString(PyExc_RuntimeError, "a hook cannot replace a gradient that is None by another value");
        return -1;
    }
    slot = replacement(Ref::borrow(item), hook, *info, tensors);
    return slot ? 0 : -1;
}

}  // namespace

int run_prehooks(GradNode* node, PyObject** arrived, bool tensors) {
    if (!node->extra || !node->extra->prehooks || PyDict_GET_SIZE(node->extra->prehooks) == 0) return 0;
    Ref list = values_of(node->extra->prehooks);
    if (!list) return -1;
    const auto n = static_cast<Py_ssize_t>(node->output_count);
    for (Py_ssize_t h = 0; h < PyList_GET_SIZE(list.get()); ++h) {
        PyObject* hook = PyList_GET_ITEM(list.get(), h);
        Ref gradients = Ref::steal(PyTuple_New(n));
        if (!gradients) return -1;
        for (Py_ssize_t i = 0; i < n; ++i) {
            PyTuple_SET_ITEM(gradients.get(), i, Py_NewRef(arrived[i] ? arrived[i] : Py_None));
        }
        PyObject* arg = gradients.get();
        Ref result = Ref::steal(outside_new(hook, &arg, 1));
        if (!result) return -1;
        if (result.get() == Py_None) continue;
        if (check_tuple(result.get(), n, hook, "prehook") < 0) return -1;
        for (Py_ssize_t i = 0; i < n; ++i) {
            Ref slot = Ref::steal(std::exchange(arrived[i], nullptr));
            const int status =
                replace_from(PyTuple_GET_ITEM(result.get(), i), hook, node->outputs[i].info, tensors, slot);
            arrived[i] = slot.release();
            if (status < 0) return -1;
        }
    }
    return 0;
}

int run_posthooks(GradNode* node, PyObject** gradients, PyObject* arrived) {
    if (!node->extra || !node->extra->posthooks || PyDict_GET_SIZE(node->extra->posthooks) == 0) return 0;
    Ref list = values_of(node->extra->posthooks);
    if (!list) return -1;
    Py_ssize_t n = 0;
    for (Py_ssize_t i = 0; i < edge_count(node); ++i) n += node->edges[i].kind == ArgumentKind::Tensor;
    for (Py_ssize_t h = 0; h < PyList_GET_SIZE(list.get()); ++h) {
        PyObject* hook = PyList_GET_ITEM(list.get(), h);
        Ref made = Ref::steal(PyTuple_New(n));
        if (!made) return -1;
        for (Py_ssize_t i = 0, k = 0; i < edge_count(node); ++i) {
            if (node->edges[i].kind != ArgumentKind::Tensor) continue;
            PyTuple_SET_ITEM(made.get(), k++, Py_NewRef(gradients[i] ? gradients[i] : Py_None));
        }
        PyObject* args[] = {made.get(), arrived};
        Ref result = Ref::steal(outside_new(hook, args, 2));
        if (!result) return -1;
        if (result.get() == Py_None) continue;
        if (check_tuple(result.get(), n, hook, "hook") < 0) return -1;
        for (Py_ssize_t i = 0, k = 0; i < edge_count(node); ++i) {
            if (node->edges[i].kind != ArgumentKind::Tensor) continue;
            Ref slot = Ref::steal(std::exchange(gradients[i], nullptr));
            const bool tensors = slot && is_tensor(slot.get());
            const int status =
                replace_from(PyTuple_GET_ITEM(result.get(), k++), hook, node->edges[i].info, tensors, slot);
            gradients[i] = slot.release();
            if (status < 0) return -1;
        }
    }
    return 0;
}

PyObject* tensor_add_hook(TensorObject* t, PyObject* hook) {
    if (!t->requires_grad) {
        PyErr_SetString(PyExc_RuntimeError, "a hook can only be registered on a Tensor that requires a gradient");
        return nullptr;
    }
    if (check_view(t) < 0) return nullptr;
    if (!t->grad_fn) {
        TensorExtra* extra = tensor_extra(t);
        if (!extra) return nullptr;
        tensor_track(t);
        return hook_add_new(extra->hooks, hook);
    }
    NodeExtra* extra = grad_node_extra(t->grad_fn);
    if (!extra) return nullptr;
    for (OutputHook& known : extra->output_hooks) {
        if (known.output == t->output && known.hooks) return hook_add_new(known.hooks, hook);
    }
    PyObject* dict = nullptr;
    Ref handle = Ref::steal(hook_add_new(dict, hook));
    if (!handle) {
        Py_XDECREF(dict);
        return nullptr;
    }
    extra->output_hooks.push_back({t->output, dict, nullptr});
    return handle.release();
}

PyObject* tensor_add_post_hook(TensorObject* t, PyObject* hook) {
    if (!t->requires_grad || t->grad_fn) {
        PyErr_SetString(PyExc_RuntimeError,
                        "a post-accumulate hook can only be registered on a leaf that requires a gradient");
        return nullptr;
    }
    TensorExtra* extra = tensor_extra(t);
    if (!extra) return nullptr;
    tensor_track(t);
    return hook_add_new(extra->post_hooks, hook);
}

int tensor_retain(TensorObject* t) {
    if (!t->requires_grad) {
        PyErr_SetString(PyExc_RuntimeError, "retain_grad() needs a Tensor that requires a gradient");
        return -1;
    }
    if (!t->grad_fn || t->retains_grad) return 0;
    NodeExtra* extra = grad_node_extra(t->grad_fn);
    PyObject* weak = extra ? PyWeakref_NewRef(as_object(t), nullptr) : nullptr;
    if (!weak) return -1;
    extra->output_hooks.push_back({t->output, nullptr, weak});
    t->retains_grad = true;
    return 0;
}

int tensor_retain_again(TensorObject* t, GradNode* before) {
    if (!t->retains_grad) return 0;
    t->retains_grad = false;
    if (before && before->extra) {
        for (OutputHook& hook : before->extra->output_hooks) {
            if (hook.retained && referent(hook.retained).get() == as_object(t)) {
                decref(std::exchange(hook.retained, nullptr));
                break;
            }
        }
    }
    return t->requires_grad ? tensor_retain(t) : 0;
}

}  // namespace pyop
