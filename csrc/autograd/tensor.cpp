// autograd/tensor.cpp: make Tensors, track them for the collector, and share versions.
#include "autograd/tensor.h"

#include <new>  // std::nothrow

#include "array/protocol/containers.h"
#include "autograd/fingerprint.h"
#include "autograd/grad_node.h"

namespace pyop {

TensorObject* tensor_new_steal(PyArrayObject* array) {
    TensorObject* t = PyObject_GC_New(TensorObject, tensor_type);
    if (!t) {
        Py_DECREF(as_object(array));
        return nullptr;
    }
    t->data = array;
    t->grad_fn = nullptr;
    t->sink = nullptr;
    t->grad = nullptr;
    t->info = nullptr;
    t->counter = nullptr;
    t->extra = nullptr;
    t->saves = nullptr;
    t->weakrefs = nullptr;
    t->version = 0;
    t->output = 0;
    t->view_version = 0;
    t->requires_grad = false;
    t->retains_grad = false;
    t->is_view = false;
    t->is_scalar = false;
    t->is_argument = false;
    t->is_opened = false;
    t->tracked = false;
    return t;
}

void tensor_track(TensorObject* t) {
    if (!t->tracked) {
        t->tracked = true;
        PyObject_GC_Track(t);
    }
}

TensorObject* tensor_alias_new(TensorObject* t) {
    TensorObject* alias = tensor_new_steal(as_array(Py_NewRef(as_object(t->data))));
    if (!alias) return nullptr;
    if (t->info) alias->info = share(t->info);
    alias->is_scalar = t->is_scalar;
    if (tensor_share_version(alias, t) < 0) {
        Py_DECREF(as_object(alias));
        return nullptr;
    }
    return alias;
}

void tensor_set_history(TensorObject* t, GradNode* node, uint32_t output) {
    Py_INCREF(as_object(node));
    GradNode* before = std::exchange(t->grad_fn, node);
    t->output = output;
    t->requires_grad = true;
    tensor_track(t);
    if (before) decref(as_object(before));
}

VersionCounter* tensor_counter(TensorObject* t) {
    if (!t->counter) {
        auto* counter = static_cast<VersionCounter*>(PyMem_Malloc(sizeof(VersionCounter)));
        if (!counter) {
            PyErr_NoMemory();
            return nullptr;
        }
        *counter = {1, t->version, 1, t->is_argument, false, false, 0};
        t->counter = counter;
    }
    return t->counter;
}

int tensor_share_version(TensorObject* t, TensorObject* base) {
    VersionCounter* counter = tensor_counter(base);
    if (!counter) return -1;
    if (base->grad_fn && !base->is_view) counter->has_history = true;
    if (t->counter == counter) return 0;
    // What shows it to others need not be a base of t's array.
    if (!is_private(base, 1)) counter->is_exposed = true;
    drop_counter(t);
    take_counter(t, counter);
    if (t->is_argument) ++counter->arguments;
    return 0;
}

int tensor_set_argument(TensorObject* t, bool on) {
    if (t->is_argument == on) return 0;
    const bool printed = on && !is_private(t);
    VersionCounter* counter = tensor_counter(t);
    if (!counter) return -1;
    t->is_argument = on;
    counter->arguments += on ? 1 : -1;
    if (!printed) return 0;
    TensorExtra* extra = tensor_extra(t);
    if (!extra) return -1;
    extra->print = fingerprint(t->data, Reading::Wholly);
    return 0;
}

int written_argument_error(PyArrayObject* argument) {
    Ref shape = shape_text(PyArray_DIMS(argument), PyArray_NDIM(argument));
    if (shape)
        PyErr_Format(
            PyExc_RuntimeError,
            "an argument of the function that is differentiated, a %S array of shape %U, has been written into "
            "by another array over its memory, which no derivative follows: let the function compute with a "
            "copy (x.copy()), or write after the derivative is taken",
            PyArray_DESCR(argument), shape.get());
    return -1;
}

int check_argument(const TensorObject* t) {
    if (!t->extra || !t->extra->print || fingerprint(t->data, Reading::Wholly) == t->extra->print) return 0;
    return written_argument_error(t->data);
}

PyArrayObject* owner_of(PyArrayObject* array) {
    while (PyArray_BASE(array) && is_exact_array(PyArray_BASE(array))) array = as_array(PyArray_BASE(array));
    return array;
}

bool is_unshared(const TensorObject* t, Py_ssize_t more) {
    const VersionCounter* counter = t->counter;
    Py_ssize_t others = 0;
    for (PyArrayObject* array = t->data;;) {
        const Py_ssize_t references = references_of(as_object(array));
        if (references < 0) return false;
        others += references - 1;
        PyObject* base = PyArray_BASE(array);
        if (!base) {
            if (!PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA)) return false;
            break;
        }
        if (!is_exact_array(base)) return false;
        array = as_array(base);
    }
    return others <= (counter ? static_cast<Py_ssize_t>(counter->references) - 1 : 0) + more;
}

void expose(VersionCounter* counter, PyArrayObject* array) {
    if (counter->is_exposed) return;
    counter->is_exposed = true;
    counter->print = fingerprint(owner_of(array), Reading::Wholly);
}

int tensor_expose(TensorObject* t) {
    const bool may_be_saved = t->saves || t->counter;
    VersionCounter* counter = tensor_counter(t);
    if (!counter) return -1;
    if (may_be_saved) expose(counter, t->data);
    counter->is_exposed = true;
    return 0;
}

TensorExtra* tensor_extra(TensorObject* t) {
    if (!t->extra) t->extra = new (std::nothrow) TensorExtra;
    if (!t->extra) PyErr_NoMemory();
    return t->extra;
}

int stale_view_error(TensorObject* t) {
    Ref name = grad_node_name(t->grad_fn);
    if (!name) return -1;
    PyErr_Format(PyExc_RuntimeError,
                 "this Tensor is a view (made by %U) of memory that was changed in place after the view was taken, so "
                 "its history is not that of its values: take the view again, or copy before changing",
                 name.get());
    return -1;
}

Ref to_array(PyObject* o) {
    if (is_tensor(o)) return Ref::borrow(as_object(as_tensor(o)->data));
    if (is_exact_array(o)) return Ref::borrow(o);
    return check_nothing_lost(o) < 0 ? Ref() : Ref::steal(PyArray_EnsureArray(Py_NewRef(o)));
}

}  // namespace pyop
