// autograd/builtin_views.cpp: record operations that move no data. Their Tensors share the version of the memory.
#include "autograd/builtin.h"
#include "autograd/state.h"

namespace pyop {

namespace {

bool is_whole_bound(PyObject* o) { return o == Py_None || PyLong_CheckExact(o); }

// An index that makes a view, and whose parts do not change.
bool is_basic(PyObject* key) {
    if (is_whole_bound(key) || key == Py_Ellipsis) return true;
    if (PySlice_Check(key)) {
        const auto* slice = reinterpret_cast<const PySliceObject*>(key);
        return is_whole_bound(slice->start) && is_whole_bound(slice->stop) && is_whole_bound(slice->step);
    }
    if (!PyTuple_CheckExact(key)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
        PyObject* part = PyTuple_GET_ITEM(key, i);
        if (PyTuple_CheckExact(part) || !is_basic(part)) return false;
    }
    return true;
}

template <typename Make>
int view(Builtin which, PyObject* a, PyObject* constant, PyObject*& result, Make&& make) {
    BuiltinOperand operand{a};
    if (!is_tensor(a) || !builtin_operand(a, operand.tensor)) return 0;
    TensorObject* t = operand.tensor;
    if (check_view(t) < 0) return -1;
    operand.recorded = is_recording() && t->requires_grad;
    Ref value = Ref::steal(make(t->data));
    if (!value) return -1;
    // A reshaped array may be a view too, of a copy.
    const bool shares = is_exact_array(value.get()) && owner_of(as_array(value.get())) == owner_of(t->data);
    const int done = builtin_finish(which, &operand, 1, std::move(value), constant, result);
    if (done <= 0 || !shares) return done;
    TensorObject* made = as_tensor(result);
    if (tensor_share_version(made, t) < 0) {
        Py_CLEAR(result);
        return -1;
    }
    if (made->grad_fn) {
        made->is_view = true;
        made->view_version = tensor_version(made);
    }
    return 1;
}

}  // namespace

int builtin_getitem(PyObject* a, PyObject* key, PyObject*& result) {
    if (!is_basic(key)) return 0;
    return view(Builtin::Getitem, a, key, result,
                [&](PyArrayObject* array) { return PyObject_GetItem(as_object(array), key); });
}

int builtin_reshape(PyObject* a, PyObject* shape, PyObject*& result) {
    return view(Builtin::Reshape, a, nullptr, result,
                [&](PyArrayObject* array) { return PyObject_CallMethod(as_object(array), "reshape", "(O)", shape); });
}

int builtin_transpose(PyObject* a, PyObject*& result) {
    return view(Builtin::Transpose, a, nullptr, result,
                [](PyArrayObject* array) { return PyArray_Transpose(array, nullptr); });
}

}  // namespace pyop
