// autograd/tensor_type.cpp: define the heap type pyop.Tensor; pyop/autograd/tensor.py adds the rest of its methods.
#include <cstddef>  // offsetof
#include <vector>

#include "array/foreign/foreign.h"
#include "array/protocol/containers.h"
#include "array/protocol/stand_in.h"
#include "autograd/engine.h"
#include "autograd/grad_node.h"
#include "autograd/state.h"
#include "autograd/tensor_parts.h"
#include "autograd/turn.h"
#include "runtime/errors.h"
#include "runtime/refusal.h"
#include "runtime/up_calls.h"

namespace pyop {

PyTypeObject* tensor_type = nullptr;

namespace {

int check_can_require_grad(TensorObject* t) {
    if (is_differentiable(PyArray_DESCR(t->data))) return 0;
    PyErr_Format(
        PyExc_TypeError,
        "only a Tensor of floating-point or complex numbers can require a gradient, and this one is of dtype %S",
        PyArray_DESCR(t->data));
    return -1;
}

PyObject* tensor_new_py(PyTypeObject*, PyObject* args, PyObject* kwargs) {
    static const char* keywords[] = {"data", "requires_grad", "dtype", nullptr};
    PyObject *data, *dtype = Py_None;
    int requires_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|pO:Tensor", const_cast<char**>(keywords), &data, &requires_grad,
                                     &dtype))
        return nullptr;
    if (!is_tensor(data) && check_no_rules(data, "pyop.Tensor") < 0) return nullptr;
    if (is_watched(data) && is_differentiated(as_tensor(data))) return refuse_numbers("pyop.Tensor(x)");
    Ref array = is_tensor(data) ? to_array(data) : Ref::steal(foreign_array_new(data));
    if (array && PyArray_DESCR(as_array(array.get()))->type_num == NPY_OBJECT && !PyArray_Check(data) &&
        !is_tensor(data) && !PyArray_CheckScalar(data)) {
        PyErr_Format(PyExc_TypeError,
                     "a Tensor is made of an array, a number, or lists of numbers, and not of %s: %.200R; convert it "
                     "first (np.fromiter for a generator or a set, .toarray() for a sparse matrix)",
                     Py_TYPE(data)->tp_name, data);
        return nullptr;
    }
    if (array && dtype != Py_None) {
        PyArray_Descr* descr = nullptr;
        if (!PyArray_DescrConverter(dtype, &descr)) return nullptr;
        array = Ref::steal(PyArray_FromArray(as_array(array.get()), descr, NPY_ARRAY_FORCECAST));
    }
    if (!array) return nullptr;
    Ref t;
    if (is_tensor(data) && dtype == Py_None) {
        t = Ref::steal(as_object(tensor_alias_new(as_tensor(data))));
    } else {
        t = Ref::steal(as_object(tensor_new_steal(as_array(array.release()))));
    }
    if (!t || (requires_grad && check_can_require_grad(as_tensor(t.get())) < 0)) return nullptr;
    as_tensor(t.get())->requires_grad = requires_grad;
    return t.release();
}

void drop_extra(TensorObject* t) {
    TensorExtra* extra = std::exchange(t->extra, nullptr);
    if (!extra) return;
    for (PyObject* o : {extra->hooks, extra->post_hooks, extra->tangent})
        if (o) decref(o);
    release_run(extra->run);
    delete extra;
}

void tensor_dealloc(PyObject* self) {
    TensorObject* t = as_tensor(self);
    if (t->tracked) PyObject_GC_UnTrack(self);
    if (t->weakrefs) survive([&] { PyObject_ClearWeakRefs(self); });
    if (t->grad_fn) decref(as_object(t->grad_fn));
    if (t->grad) decref(t->grad);
    drop_extra(t);
    decref(as_object(t->data));
    unshare(t->info);
    drop_counter(t);
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
    TensorObject* t = as_tensor(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(t->grad_fn);
    Py_VISIT(t->grad);
    if (t->extra) {
        for (PyObject* o : {t->extra->hooks, t->extra->post_hooks, t->extra->tangent}) Py_VISIT(o);
    }
    return 0;
}

int tensor_clear(PyObject* self) {
    TensorObject* t = as_tensor(self);
    if (GradNode* node = std::exchange(t->grad_fn, nullptr)) decref(as_object(node));
    Py_CLEAR(t->grad);
    drop_extra(t);
    return 0;
}

PyObject* text_of_tensor(TensorObject* t) {
    Ref text = Ref::steal(PyObject_Repr(as_object(t->data)));
    if (!text) return nullptr;
    // "array(…)" becomes "Tensor(…)"
    Ref inner = Ref::steal(PyUnicode_Substring(text.get(), 6, PyUnicode_GET_LENGTH(text.get()) - 1));
    if (!inner) return nullptr;
    if (t->grad_fn) {
        Ref name = grad_node_name(t->grad_fn);
        return name ? PyUnicode_FromFormat("Tensor(%U, grad_fn=<%U>)", inner.get(), name.get()) : nullptr;
    }
    return PyUnicode_FromFormat("Tensor(%U%s)", inner.get(), t->requires_grad ? ", requires_grad=True" : "");
}

// For a function that is differentiated, a text that it may show, but not go by: that of an array would be another.
PyObject* tensor_repr(PyObject* self) {
    TensorObject* t = as_tensor(self);
    Ref text = Ref::steal(text_of_tensor(t));
    if (!text || !watching() || !autograd_state.transformations || !is_watched(t)) return text.release();
    return PyObject_CallOneArg(up_calls.shown_text, text.get());
}

// A scalar of NumPy is told apart by its value, a Tensor by its identity; but a function that is being differentiated
// has NumPy's arrays before its eyes, which have no hash.
Py_hash_t tensor_hash(PyObject* self) {
    TensorObject* t = as_tensor(self);
    if (!t->is_scalar && PYOP_UNLIKELY(watching()) && autograd_state.transformations && is_watched(t)) {
        PyErr_SetString(PyExc_TypeError, "unhashable type: 'numpy.ndarray'");
        return -1;
    }
    if (!t->is_scalar) return PyBaseObject_Type.tp_hash(self);
    if (is_watched(t)) {
        refuse_numbers("hash(x), as a key of a dict or an element of a set,");
        return -1;
    }
    Ref scalar = Ref::steal(PyArray_ToScalar(PyArray_DATA(t->data), t->data));
    return scalar ? PyObject_Hash(scalar.get()) : -1;
}

PyObject* or_none(PyObject* o) { return Py_NewRef(o ? o : Py_None); }

PyObject* get_grad(PyObject* self, void*) { return or_none(as_tensor(self)->grad); }

int set_grad(PyObject* self, PyObject* value, void*) {
    TensorObject* t = as_tensor(self);
    if (!value || value == Py_None) {
        Py_CLEAR(t->grad);
        return 0;
    }
    Ref array = to_array(value);
    ArrayInfo* info = array ? tensor_info(t) : nullptr;
    if (!info) return -1;
    if (!is_described_by(as_array(array.get()), *info) &&
        !(has_shape_of(as_array(array.get()), *info) &&
          PyArray_EquivTypes(PyArray_DESCR(as_array(array.get())), info->descr))) {
        Ref want = array_info_text(*info);
        Ref shape = shape_text(PyArray_DIMS(as_array(array.get())), PyArray_NDIM(as_array(array.get())));
        if (want && shape)
            PyErr_Format(PyExc_ValueError, "the gradient of a %U cannot be a %S array of shape %U", want.get(),
                         PyArray_DESCR(as_array(array.get())), shape.get());
        return -1;
    }
    Ref grad =
        is_tensor(value) ? Ref::borrow(value) : Ref::steal(as_object(tensor_new_steal(as_array(array.release()))));
    if (!grad) return -1;
    if (grad.get() == self) {
        PyErr_SetString(PyExc_ValueError, "a Tensor cannot be its own gradient");
        return -1;
    }
    Py_XSETREF(t->grad, grad.release());
    tensor_track(t);
    return 0;
}

PyObject* get_grad_fn(PyObject* self, void*) {
    if (check_view(as_tensor(self)) < 0) return nullptr;
    return or_none(as_object(as_tensor(self)->grad_fn));
}

PyObject* get_requires_grad(PyObject* self, void*) { return PyBool_FromLong(as_tensor(self)->requires_grad); }

int set_requires_grad(PyObject* self, PyObject* value, void*) {
    TensorObject* t = as_tensor(self);
    const int on = value ? PyObject_IsTrue(value) : -1;
    if (!value) PyErr_SetString(PyExc_TypeError, "requires_grad cannot be deleted");
    if (on < 0) return -1;
    if (t->grad_fn && !on) {
        PyErr_SetString(PyExc_RuntimeError,
                        "only a leaf can stop requiring its gradient; for a value without history use t.detach()");
        return -1;
    }
    if (on && check_can_require_grad(t) < 0) return -1;
    if (!t->grad_fn) t->requires_grad = on;
    if (on) t->is_scalar = false;  // a parameter: updated in place
    return 0;
}

PyObject* get_is_leaf(PyObject* self, void*) { return PyBool_FromLong(is_leaf(as_tensor(self))); }
PyObject* get_retains_grad(PyObject* self, void*) { return PyBool_FromLong(as_tensor(self)->retains_grad); }
PyObject* get_output(PyObject* self, void*) { return PyLong_FromUnsignedLong(as_tensor(self)->output); }
PyObject* get_version(PyObject* self, void*) { return PyLong_FromUnsignedLong(tensor_version(as_tensor(self))); }
PyObject* get_watched(PyObject* self, void*) { return PyBool_FromLong(is_watched(self)); }
PyObject* get_guarded(PyObject* self, void*) { return PyBool_FromLong(is_written_through(as_tensor(self))); }
PyObject* get_scalar(PyObject* self, void*) { return PyBool_FromLong(as_tensor(self)->is_scalar); }

int set_scalar(PyObject* self, PyObject* value, void*) {
    as_tensor(self)->is_scalar = value == Py_True && PyArray_NDIM(as_tensor(self)->data) == 0;
    return 0;
}

PyObject* get_argument(PyObject* self, void*) { return PyBool_FromLong(as_tensor(self)->is_argument); }
int set_argument(PyObject* self, PyObject* value, void*) {
    return tensor_set_argument(as_tensor(self), value == Py_True);
}

PyObject* get_opened(PyObject* self, void*) { return PyBool_FromLong(as_tensor(self)->is_opened); }
int set_opened(PyObject* self, PyObject* value, void*) {
    as_tensor(self)->is_opened = value == Py_True;
    return 0;
}

// What a function that asks with isinstance() would find: it must not go another way than with arrays.
PyObject* get_class(PyObject* self, void*) {
    TensorObject* t = as_tensor(self);
    if (!t->is_scalar) return Py_NewRef(reinterpret_cast<PyObject*>(&PyArray_Type));
    return Py_NewRef(reinterpret_cast<PyObject*>(PyArray_DESCR(t->data)->typeobj));
}

StandIn stand_in;

PyObject* tensor_getattro(PyObject* self, PyObject* name) { return stand_in.attribute(self, name, get_class); }

PyObject* get_tangent(PyObject* self, void*) { return or_none(tensor_tangent(as_tensor(self))); }

PyObject* get_of_array(PyObject* self, void* name) {
    return PyObject_GetAttrString(as_object(as_tensor(self)->data), static_cast<const char*>(name));
}

PyObject* tensor_numpy(PyObject* self, PyObject*) {
    return tensor_expose(as_tensor(self)) < 0 ? nullptr : Py_NewRef(as_object(as_tensor(self)->data));
}

// For what keeps no array.
PyObject* get_numbers(PyObject* self, void*) { return Py_NewRef(as_object(as_tensor(self)->data)); }

// The array, where it may be given away; else an error that says what was asked for.
PyObject* tensor_give(PyObject* self, PyObject* what) {
    if (is_watched(self)) return refuse_numbers(PyUnicode_AsUTF8(what));
    return tensor_numpy(self, nullptr);
}

PyObject* tensor_detach(PyObject* self, PyObject*) { return as_object(tensor_alias_new(as_tensor(self))); }

PyObject* tensor_requires_grad_(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    if (n > 1) {
        PyErr_SetString(PyExc_TypeError, "requires_grad_() takes one argument at most");
        return nullptr;
    }
    return set_requires_grad(self, n ? args[0] : Py_True, nullptr) < 0 ? nullptr : Py_NewRef(self);
}

// NumPy asks for an array. Silently giving up the history would be a wrong gradient later.
PyObject* tensor_array(PyObject* self, PyObject* args, PyObject* kwargs) {
    static const char* keywords[] = {"dtype", "copy", nullptr};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O", const_cast<char**>(keywords), &dtype, &copy)) return nullptr;
    TensorObject* t = as_tensor(self);
    if (is_watched(t))
        return refuse_numbers("conversion to an array, as np.asarray(x) and np.array([x[0], x[1]]) do it,");
    PyArray_Descr* descr = nullptr;
    if (dtype != Py_None && !PyArray_DescrConverter(dtype, &descr)) return nullptr;
    if (!descr && copy != Py_True) return tensor_numpy(self, nullptr);
    return PyArray_FromArray(t->data, descr, NPY_ARRAY_FORCECAST | (copy == Py_True ? NPY_ARRAY_ENSURECOPY : 0));
}

PyObject* tensor_register_hook(PyObject* self, PyObject* hook) { return tensor_add_hook(as_tensor(self), hook); }
PyObject* tensor_register_post(PyObject* self, PyObject* hook) { return tensor_add_post_hook(as_tensor(self), hook); }
PyObject* tensor_retain_grad(PyObject* self, PyObject*) {
    if (tensor_retain(as_tensor(self)) < 0) return nullptr;
    Py_RETURN_NONE;
}

PyObject* tensor_bump_py(PyObject* self, PyObject*) {
    tensor_bump(as_tensor(self));
    Py_RETURN_NONE;
}

PyObject* tensor_mark_view(PyObject* self, PyObject* base) {
    if (!is_tensor(base)) {
        PyErr_SetString(PyExc_TypeError, "the base of a view is a Tensor");
        return nullptr;
    }
    TensorObject* t = as_tensor(self);
    if (tensor_share_version(t, as_tensor(base)) < 0) return nullptr;
    t->is_view = true;
    t->view_version = tensor_version(t);
    Py_RETURN_NONE;
}

PyObject* tensor_backward(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
    static const char* names[] = {"gradient", "retain_graph", "create_graph", "inputs"};
    PyObject* values[4] = {Py_None, Py_None, Py_False, Py_None};
    if (n > 4) {
        PyErr_Format(PyExc_TypeError, "backward() takes at most 4 arguments, got %zd", n);
        return nullptr;
    }
    for (Py_ssize_t i = 0; i < n; ++i) values[i] = args[i];
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
        PyObject* key = PyTuple_GET_ITEM(kwnames, k);
        size_t i = 0;
        while (i < 4 && PyUnicode_CompareWithASCIIString(key, names[i]) != 0) ++i;
        if (i == 4 || static_cast<Py_ssize_t>(i) < n) {
            PyErr_Format(PyExc_TypeError, "backward() got an unexpected or repeated argument '%U'", key);
            return nullptr;
        }
        values[i] = args[n + k];
    }
    RunOptions options;
    const int create = PyObject_IsTrue(values[2]);
    const int retain = values[1] == Py_None ? create : PyObject_IsTrue(values[1]);
    if (create < 0 || retain < 0) return nullptr;
    options.create_graph = create;
    options.retain_graph = retain;
    Ref inputs;
    if (values[3] != Py_None) {
        inputs =
            is_tensor(values[3]) ? Ref::steal(PyTuple_Pack(1, values[3])) : Ref::steal(PySequence_Tuple(values[3]));
        if (!inputs) return nullptr;
    }
    return guarded([&] { return run_backward(&self, &values[0], 1, inputs.get(), options); },
                   static_cast<PyObject*>(nullptr));
}

PyMethodDef tensor_methods[] = {
    {"numpy", in_turn<tensor_numpy>, METH_NOARGS,
     "numpy($self, /)\n--\n\nThe array, sharing its memory. What is done with it is not recorded."},
    {"detach", in_turn<tensor_detach>, METH_NOARGS,
     "detach($self, /)\n--\n\nA Tensor over the same memory, without history."},
    {"backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(in_turn<tensor_backward>)),
     METH_FASTCALL | METH_KEYWORDS,
     "backward($self, gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
     "Add the gradient of this Tensor to `.grad` of the leaves it was computed from.\n\n"
     "Parameters\n----------\n"
     "gradient : array_like, optional\n    Of this Tensor's shape. May be left out for a single real number: then it "
     "is one.\n"
     "retain_graph : bool, optional\n    Keep what was saved, for another backward. Default: `create_graph`.\n"
     "create_graph : bool\n    Record the backward pass itself, for derivatives of higher order.\n"
     "inputs : Tensor or sequence of Tensor, optional\n    Only these get a gradient. Default: all leaves.\n\n"
     "Examples\n--------\n"
     ">>> import numpy as np, pyop\n"
     ">>> class Square(pyop.Function):\n"
     "...     @staticmethod\n"
     "...     def forward(ctx, x):\n"
     "...         ctx.save_for_backward(x)\n"
     "...         return x * x\n"
     "...     @staticmethod\n"
     "...     def backward(ctx, g):\n"
     "...         (x,) = ctx.saved_tensors\n"
     "...         return 2 * g * x\n"
     ">>> x = pyop.Tensor(np.array([1.0, 2.0]), requires_grad=True)\n"
     ">>> Square.apply(x).backward(np.ones(2))\n"
     ">>> x.grad\n"
     "Tensor([2., 4.])"},
    {"requires_grad_", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(in_turn<tensor_requires_grad_>)),
     METH_FASTCALL, "requires_grad_($self, requires_grad=True, /)\n--\n\nSet requires_grad, and return the Tensor."},
    {"register_hook", in_turn<tensor_register_hook>, METH_O,
     "register_hook($self, hook, /)\n--\n\n"
     "Call `hook(grad)` when the gradient of this Tensor is known; what it returns, unless None, replaces the "
     "gradient. "
     "Returns a handle with remove()."},
    {"register_post_accumulate_grad_hook", in_turn<tensor_register_post>, METH_O,
     "register_post_accumulate_grad_hook($self, hook, /)\n--\n\n"
     "Call `hook(tensor)` after `.grad` of this leaf was updated. Returns a handle with remove()."},
    {"retain_grad", in_turn<tensor_retain_grad>, METH_NOARGS,
     "retain_grad($self, /)\n--\n\nKeep the gradient of this Tensor in `.grad` although it is no leaf."},
    {"__array__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(in_turn<tensor_array>)),
     METH_VARARGS | METH_KEYWORDS, "The array, for NumPy; refused where a history would be lost."},
    {"__array_ufunc__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(in_turn<tensor_array_ufunc>)),
     METH_VARARGS | METH_KEYWORDS, "NumPy's protocol: a ufunc on Tensors."},
    {"__array_function__", in_turn<tensor_array_function>, METH_VARARGS, "NumPy's protocol: a function on Tensors."},
    {"_give", in_turn<tensor_give>, METH_O, "_give(what): the array, unless its numbers must not leave the record."},
    {"_bump", in_turn<tensor_bump_py>, METH_NOARGS, "_bump(): counts a change in place."},
    {"_mark_view", in_turn<tensor_mark_view>, METH_O, "_mark_view(base): its memory is that of `base`."},
    {},
};

PyGetSetDef getset[] = {
    {"grad", in_turn<get_grad>, in_turn<set_grad>, "The gradient added up so far, a Tensor, or None.", nullptr},
    {"grad_fn", in_turn<get_grad_fn>, nullptr, "The node that made this Tensor; None for a leaf.", nullptr},
    {"requires_grad", in_turn<get_requires_grad>, in_turn<set_requires_grad>,
     "Whether what is done with it is recorded.", nullptr},
    {"is_leaf", in_turn<get_is_leaf>, nullptr, "Whether it was made by the user and not by a recorded computation.",
     nullptr},
    {"retains_grad", in_turn<get_retains_grad>, nullptr, "Whether retain_grad() was called.", nullptr},
    {"output_nr", in_turn<get_output>, nullptr, "Which output of grad_fn it is.", nullptr},
    {"_version", in_turn<get_version>, nullptr, "How often its memory was changed in place, as far as pyop knows.",
     nullptr},
    {"__class__", in_turn<get_class>, nullptr, "That of the array or scalar it stands for; type(t) is Tensor.",
     nullptr},
    {"_watched", in_turn<get_watched>, nullptr, "Whether what is done with it is recorded or moved along.", nullptr},
    {"_numbers", in_turn<get_numbers>, nullptr, "The array, for who neither keeps it nor gives it to anybody.",
     nullptr},
    {"_guarded", in_turn<get_guarded>, nullptr, "Whether its memory is also that of something recorded.", nullptr},
    {"_scalar", in_turn<get_scalar>, in_turn<set_scalar>, "Whether NumPy would have a scalar here.", nullptr},
    {"_argument", in_turn<get_argument>, in_turn<set_argument>,
     "Whether it is an argument of a function being differentiated.", nullptr},
    {"_opened", in_turn<get_opened>, in_turn<set_opened>, "Whether a transformation has made it for an argument.",
     nullptr},
    {"_tangent", in_turn<get_tangent>, nullptr, "The tangent that moves along with it here, or None.", nullptr},
    {"shape", in_turn<get_of_array>, nullptr, "As of an array.", const_cast<char*>("shape")},
    {"dtype", in_turn<get_of_array>, nullptr, "As of an array.", const_cast<char*>("dtype")},
    {"ndim", in_turn<get_of_array>, nullptr, "As of an array.", const_cast<char*>("ndim")},
    {"size", in_turn<get_of_array>, nullptr, "As of an array.", const_cast<char*>("size")},
    {"nbytes", in_turn<get_of_array>, nullptr, "As of an array.", const_cast<char*>("nbytes")},
    {"itemsize", in_turn<get_of_array>, nullptr, "As of an array.", const_cast<char*>("itemsize")},
    {"strides", in_turn<get_of_array>, nullptr, "As of an array.", const_cast<char*>("strides")},
    {},
};

PyMemberDef tensor_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
    {},
};

}  // namespace

int tensor_init(PyObject* module) {
    std::vector<PyType_Slot> slots = {
        {Py_tp_doc,
         const_cast<char*>(
             "Tensor(data, requires_grad=False, dtype=None)\n--\n\n"
             "An array with gradient bookkeeping.\n\n"
             "NumPy's operators and functions work on it; while it requires a gradient, what is done is recorded.\n\n"
             "Parameters\n----------\n"
             "data : array_like\n    Shared if it is an array, else converted.\n"
             "requires_grad : bool\n    Only for floating-point and complex numbers.\n"
             "dtype : dtype, optional\n    Converted to it.\n\n"
             "Raises\n------\n"
             "TypeError\n    `requires_grad` with a dtype that has no gradients.\n\n"
             "Examples\n--------\n"
             ">>> import numpy as np, pyop\n"
             ">>> x = pyop.Tensor(np.array([1.0, 2.0]), requires_grad=True)\n"
             ">>> x.shape, x.is_leaf, x.grad\n"
             "((2,), True, None)")},
        {Py_tp_new, reinterpret_cast<void*>(in_turn<tensor_new_py>)},
        {Py_tp_repr, reinterpret_cast<void*>(in_turn<tensor_repr>)},
        {Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
        {Py_tp_clear, reinterpret_cast<void*>(in_turn<tensor_clear>)},
        {Py_tp_dealloc, reinterpret_cast<void*>(in_turn<tensor_dealloc>)},
        {Py_tp_hash, reinterpret_cast<void*>(in_turn<tensor_hash>)},
        {Py_tp_getattro, reinterpret_cast<void*>(in_turn<tensor_getattro>)},
        {Py_tp_methods, tensor_methods},
        {Py_tp_getset, getset},
        {Py_tp_members, tensor_members},
    };
    if (tensor_operator_slots(slots) < 0) return -1;
    slots.push_back({0, nullptr});
    // Not immutable: pyop/autograd/tensor.py adds the methods that are NumPy functions.
    PyType_Spec spec = {"pyop._core.Tensor", sizeof(TensorObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                        slots.data()};
    tensor_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
    if (!tensor_type || stand_in.take_names(tensor_type) < 0) return -1;
    return PyModule_AddType(module, tensor_type);
}

}  // namespace pyop
