// autograd/engine_front.cpp: read the arguments of backward() and grad(), and build their results.
#include "autograd/engine.h"
#include "autograd/numbers.h"
#include "autograd/state.h"
#include "runtime/errors.h"

namespace pyop {

namespace {

// The gradient to begin with, checked. Empty with the error set.
Ref checked_seed(TensorObject* output, PyObject* seed, Py_ssize_t index, bool tensors) {
    ArrayInfo* info = tensor_info(output);
    if (!info) return {};
    Ref array;
    if (seed == Py_None) {
        if (PyArray_SIZE(output->data) != 1 || !PyTypeNum_ISFLOAT(info->descr->type_num)) {
            Ref text = array_info_text(*info);
            if (text)
                PyErr_Format(PyExc_RuntimeError,
                             "the gradient to begin with can be left out only for a single real number (a scalar), and "
                             "output %zd is a %U: pass one of its shape",
                             index, text.get());
            return {};
        }
        array = zeros_like_info(*info);
        if (array && PyArray_FillWithScalar(as_array(array.get()), Py_True) < 0) return {};
    } else {
        array = to_array(seed);
        if (!array) return {};
        if (!has_shape_of(as_array(array.get()), *info)) {
            Ref want = shape_text(info->shape, info->ndim);
            Ref got = shape_text(PyArray_DIMS(as_array(array.get())), PyArray_NDIM(as_array(array.get())));
            if (want && got)
                PyErr_Format(PyExc_RuntimeError,
                             "the gradient to begin with must have the shape of its output: for output %zd it is of "
                             "shape %U, and the output of shape %U",
                             index, got.get(), want.get());
            return {};
        }
        if (tensors && is_tensor(seed)) array = Ref::borrow(seed);
    }
    if (!array) return {};
    if (tensors && !is_tensor(array.get())) array = Ref::steal(as_object(tensor_new_steal(as_array(array.release()))));
    if (!array) return {};
    Ref name = Ref::steal(PyUnicode_FromString("the gradient to begin with"));
    return name ? fit_gradient(std::move(array), *info, tensors, false, "seed", name.get(), index) : Ref();
}

// What a run captured, as the caller's own.
Ref result_of(Ref gradient, const RunOptions& options) {
    if (is_tensor(gradient.get()) && !options.arrays) return gradient;
    if (is_tensor(gradient.get())) gradient = Ref::borrow(as_object(as_tensor(gradient.get())->data));
    // Memory that somebody else refers to (the seed, a saved array) is not given away.
    Ref array = is_ours_alone(gradient.get()) ? std::move(gradient)
                                              : Ref::steal(PyArray_NewCopy(as_array(gradient.get()), NPY_KEEPORDER));
    if (!array || options.arrays) return array;
    return Ref::steal(as_object(tensor_new_steal(as_array(array.release()))));
}

int check_tensor(PyObject* o, const char* what, Py_ssize_t index) {
    if (!is_tensor(o)) {
        PyErr_Format(PyExc_TypeError, "%s %zd must be a Tensor, not %s", what, index, Py_TYPE(o)->tp_name);
        return -1;
    }
    if (as_tensor(o)->requires_grad) return 0;
    PyErr_Format(PyExc_RuntimeError, "%s %zd does not require a gradient and has no grad_fn", what, index);
    return -1;
}

Ref unused(TensorObject* input, Py_ssize_t index, const RunOptions& options) {
    if (options.zeros_for_unused) {
        ArrayInfo* info = tensor_info(input);
        Ref zeros = info ? zeros_like_info(*info) : Ref();
        return zeros ? result_of(std::move(zeros), options) : Ref();
    }
    if (options.allow_unused) return Ref::borrow(Py_None);
    PyErr_Format(PyExc_RuntimeError,
                 "input %zd is unused: no output was computed from it. Pass allow_unused=True if that is meant; its "
                 "gradient is then None",
                 index);
    return {};
}

}  // namespace

PyObject* run_backward(PyObject* const* outputs, PyObject* const* seeds, size_t n, PyObject* inputs,
                       const RunOptions& options) {
    Run run(options, inputs != nullptr);
    for (size_t i = 0; i < n; ++i) {
        if (check_tensor(outputs[i], "output", static_cast<Py_ssize_t>(i)) < 0) return nullptr;
        Ref seed = checked_seed(as_tensor(outputs[i]), seeds[i], static_cast<Py_ssize_t>(i), options.create_graph);
        if (!seed || run.add_root(as_tensor(outputs[i]), std::move(seed)) < 0) return nullptr;
    }
    const Py_ssize_t wanted = inputs ? PyTuple_GET_SIZE(inputs) : 0;
    if (inputs && wanted == 0) {
        PyErr_SetString(PyExc_ValueError, "inputs is empty: name at least one Tensor, or leave it out");
        return nullptr;
    }
    for (Py_ssize_t i = 0; i < wanted; ++i) {
        PyObject* input = PyTuple_GET_ITEM(inputs, i);
        if (check_tensor(input, "input", i) < 0) return nullptr;
        if (run.add_input(as_tensor(input), static_cast<size_t>(i)) < 0) return nullptr;
    }
    if (run.execute() < 0) return nullptr;
    for (Py_ssize_t i = 0; i < wanted; ++i) {
        if (check_argument(as_tensor(PyTuple_GET_ITEM(inputs, i))) < 0) return nullptr;
    }
    if (options.accumulate) {
        for (Py_ssize_t i = 0; i < wanted; ++i) {
            // Leaves have had theirs.
            TensorObject* t = as_tensor(PyTuple_GET_ITEM(inputs, i));
            Ref gradient = run.take_captured(static_cast<size_t>(i));
            if (!t->grad_fn || !gradient) continue;
            if (accumulate_gradient(t, std::move(gradient), options.create_graph) < 0) return nullptr;
        }
        Py_RETURN_NONE;
    }
    Ref results = Ref::steal(PyTuple_New(wanted));
    if (!results) return nullptr;
    for (Py_ssize_t i = 0; i < wanted; ++i) {
        Ref gradient = run.take_captured(static_cast<size_t>(i));
        Ref item = gradient ? result_of(std::move(gradient), options)
                            : unused(as_tensor(PyTuple_GET_ITEM(inputs, i)), i, options);
        if (!item) return nullptr;
        PyTuple_SET_ITEM(results.get(), i, item.release());
    }
    return results.release();
}

}  // namespace pyop
