// autograd/gradients.cpp: fit single gradients to their arrays, add them, and put them into .grad.
#include "autograd/builtin.h"
#include "autograd/engine.h"
#include "autograd/state.h"
#include "autograd/turn.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

PyArrayObject* numbers(PyObject* gradient) {
    return is_tensor(gradient) ? as_tensor(gradient)->data : as_array(gradient);
}

// The sum over what broadcasting repeated, where that is all there is to do; else the gradient as it is.
Ref unbroadcast(Ref gradient, const ArrayInfo& info) {
    PyArrayObject* array = numbers(gradient.get());
    const int lead = PyArray_NDIM(array) - info.ndim;
    if (PyArray_DESCR(array) != info.descr || lead < 0) return gradient;
    for (int i = 0; i < info.ndim; ++i) {
        if (info.shape[i] != PyArray_DIM(array, lead + i) && info.shape[i] != 1) return gradient;
    }
    // From the last axis, so that the numbers of the others stay.
    for (int i = info.ndim - 1; i >= -lead; --i) {
        array = numbers(gradient.get());
        if (i >= 0 && PyArray_DIM(array, lead + i) == info.shape[i]) continue;
        gradient = Ref::steal(PyArray_EnsureArray(PyArray_Sum(array, lead + i, NPY_NOTYPE, nullptr)));
        if (!gradient) return {};
    }
    PyArray_Dims shape{const_cast<npy_intp*>(info.shape), info.ndim};
    return Ref::steal(PyArray_Newshape(as_array(gradient.get()), &shape, NPY_CORDER));
}

}  // namespace

Ref zeros_like_info(const ArrayInfo& info) {
    Py_INCREF(reinterpret_cast<PyObject*>(info.descr));
    return Ref::steal(PyArray_Zeros(info.ndim, info.shape, info.descr, 0));
}

Ref fit_gradient(Ref gradient, const ArrayInfo& info, bool tensors, bool take_real, const char* what, PyObject* name,
                 Py_ssize_t index) {
    if (PYOP_LIKELY(is_described_by(numbers(gradient.get()), info))) return gradient;
    if (!tensors) {
        gradient = unbroadcast(std::move(gradient), info);
        if (!gradient || is_described_by(numbers(gradient.get()), info)) return gradient;
    }
    Ref shape = Ref::steal(PyTuple_New(info.ndim));
    if (!shape) return {};
    for (int i = 0; i < info.ndim; ++i) PyTuple_SET_ITEM(shape.get(), i, PyLong_FromSsize_t(info.shape[i]));
    return Ref::steal(survive([&] {
        return PyObject_CallFunction(up_calls.fit_gradient, "OOOOOsOn", gradient.get(), shape.get(), info.descr,
                                     tensors ? Py_True : Py_False, take_real ? Py_True : Py_False, what, name, index);
    }));
}

Ref add_gradients(Ref a, PyObject* b) {
    if (is_tensor(a.get()) || is_tensor(b)) {
        PyObject* args[] = {a.get(), b};
        return Ref::steal(outside_new(up_calls.add_tensors, args, 2));
    }
    if (is_ours_alone(a.get())) {
        const int type = PyArray_DESCR(as_array(a.get()))->type_num;
        if (type == NPY_DOUBLE || type == NPY_FLOAT)
            return Ref::steal(PyArray_EnsureArray(
                ufunc_call(builtin_ufuncs[static_cast<int>(Builtin::Add)], std::move(a), b).release()));
        return Ref::steal(PyNumber_InPlaceAdd(a.get(), b));
    }
    return Ref::steal(PyArray_EnsureArray(PyNumber_Add(a.get(), b)));
}

int accumulate_gradient(TensorObject* t, Ref gradient, bool tensors) {
    if (t->grad && tensors) {
        Ref sum = add_gradients(Ref::borrow(t->grad), gradient.get());
        if (!sum) return -1;
        PyObject* before = std::exchange(t->grad, sum.release());
        decref(before);
        return 0;
    }
    if (t->grad) {
        TensorObject* grad = as_tensor(t->grad);
        Ref keep = Ref::borrow(t->grad);
        if (!grad->grad_fn && PyArray_ISWRITEABLE(grad->data)) {
            Ref sum = Ref::steal(PyNumber_InPlaceAdd(as_object(grad->data), as_object(numbers(gradient.get()))));
            if (!sum) return -1;
            tensor_bump(grad);
            return 0;
        }
        gradient =
            Ref::steal(PyArray_EnsureArray(PyNumber_Add(as_object(grad->data), as_object(numbers(gradient.get())))));
        if (!gradient) return -1;
    }
    if (!is_tensor(gradient.get())) {
        // Memory that others can see is copied: .grad will be changed in place.
        if (!is_ours_alone(gradient.get()))
            gradient = Ref::steal(PyArray_NewCopy(as_array(gradient.get()), NPY_KEEPORDER));
        if (!gradient) return -1;
        gradient = Ref::steal(as_object(tensor_new_steal(as_array(gradient.release()))));
        if (!gradient) return -1;
    }
    if (!as_tensor(gradient.get())->requires_grad && !uniquely_owned(gradient.get())) {
        PyObject* copy = PyArray_NewCopy(numbers(gradient.get()), NPY_KEEPORDER);
        gradient = copy ? Ref::steal(as_object(tensor_new_steal(as_array(copy)))) : Ref();
        if (!gradient) return -1;
    }
    PyObject* before = std::exchange(t->grad, gradient.release());
    tensor_track(t);
    if (before) decref(before);
    return 0;
}

}  // namespace pyop
