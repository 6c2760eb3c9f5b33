// autograd/function_backward.cpp: take the gradients of the outputs to those of the arguments.
#include <algorithm>  // std::max
#include <cstring>    // std::strstr

#include "autograd/builtin.h"
#include "autograd/engine.h"
#include "autograd/function.h"
#include "autograd/function_parts.h"
#include "autograd/state.h"
#include "autograd/turn.h"
#include "runtime/ensure_tuple.h"
#include "runtime/errors.h"
#include "runtime/items.h"
#include "runtime/refusal.h"
#include "runtime/stack_array.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

// A gradient that others are to get too, or a user's seed: not to be written into by a user's backward.
Ref read_only(PyObject* array) {
    Ref view = Ref::steal(PyArray_View(as_array(array), nullptr, &PyArray_Type));
    if (view) PyArray_CLEARFLAGS(as_array(view.get()), NPY_ARRAY_WRITEABLE);
    return view;
}

// What a user's backward that wrote into such a gradient should have done.
PYOP_COLD void note_if_read_only(const FunctionClass* f) {
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) return;
    Ref note;
    {
        Ref error = take_pending();
        Ref text = error ? Ref::steal(PyObject_Str(error.get())) : Ref();
        const char* words = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
        if (words && std::strstr(words, "read-only"))
            note = Ref::steal(PyUnicode_FromFormat(
                "what backward of %U is given may be the gradient of other arrays too, and is read-only then: write "
                "g = g * b, which makes a new array, in place of g *= b",
                f->name));
        PyErr_Clear();
        restore_pending(std::move(error));
    }
    if (note) note_pending(note.get());
}

// The gradient of output i as backward gets it. New reference, empty with the error set.
Ref argument_of_backward(GradNode* node, uint32_t i, PyObject* arrived, bool as_tensors) {
    const GradOutput& output = node->outputs[i];
    if (arrived) {
        if (!as_tensors && is_tensor(arrived)) arrived = as_object(as_tensor(arrived)->data);
        if (as_function_class(node->owner)->internal || is_tensor(arrived)) return Ref::borrow(arrived);
        // One that is read-only stays so: a chain of Functions hands one view from node to node.
        PyArrayObject* array = as_array(arrived);
        const bool own = uniquely_owned(arrived) &&
                         (!PyArray_BASE(array) || (is_exact_array(arrived) && !PyArray_ISWRITEABLE(array)));
        return own ? Ref::borrow(arrived) : read_only(arrived);
    }
    if (!output.info || !node->materialize || (!output.differentiable && !node->materialize_non_diff))
        return Ref::borrow(Py_None);
    Ref zeros = zeros_like_info(*output.info);
    if (!zeros || !as_tensors) return zeros;
    return Ref::steal(as_object(tensor_new_steal(as_array(zeros.release()))));
}

PYOP_COLD int count_error(const FunctionClass* f, Py_ssize_t expected, Py_ssize_t got) {
    PyErr_Format(PyExc_RuntimeError,
                 "backward of %U returned %zd gradient%s, but forward took %zd argument%s (expected %zd, got %zd)",
                 f->name, got, got == 1 ? "" : "s", expected, expected == 1 ? "" : "s", expected, got);
    return -1;
}

PYOP_COLD int kind_error(const FunctionClass* f, Py_ssize_t i, PyObject* value, ArgumentKind kind) {
    if (kind == ArgumentKind::Other) {
        PyErr_Format(PyExc_RuntimeError,
                     "backward of %U returned a gradient other than None at position %zd, but that argument of forward "
                     "was not an array or Tensor",
                     f->name, i + 1);
    } else {
        PyErr_Format(PyExc_TypeError,
                     "backward of %U returned a value of type %s at position %zd: a gradient is an array, a Tensor or "
                     "None",
                     f->name, Py_TYPE(value)->tp_name, i + 1);
    }
    return -1;
}

// With create_graph, a plain array that backward made: its own derivative is not known, so it says so when asked.
Ref guarded_result(GradNode* node, PyObject* value, PyObject* const* arrived) {
    const FunctionClass* f = as_function_class(node->owner);
    Ref array = to_array(value);
    if (!array) return {};
    Ref t = Ref::steal(as_object(tensor_new_steal(as_array(array.release()))));
    // A rule of ours that returns an array means a constant.
    if (!t || f->internal || !is_differentiable(PyArray_DESCR(as_tensor(t.get())->data))) return t;
    Ref message = Ref::steal(
        f->once
            ? PyUnicode_FromFormat(
                  "backward of %U is marked once_differentiable, and its result is being differentiated again", f->name)
            : PyUnicode_FromFormat(
                  "backward of %U returned a plain array under create_graph=True, so how it depends on the inputs is "
                  "not recorded, and it cannot be differentiated again: compute with the Tensors it is given (without "
                  "numpy()), or mark it @once_differentiable",
                  f->name));
    bool moving = is_moving(node);
    for (uint32_t i = 0; i < node->output_count; ++i)
        moving |= arrived[i] && is_tensor(arrived[i]) && tensor_tangent(as_tensor(arrived[i]));
    if (message && moving) {  // no node stands in the way of a tangent
        PyErr_SetObject(PyExc_RuntimeError, message.get());
        return {};
    }
    GradNode* error = error_node_new(message.release(), node, arrived, node->output_count, as_tensor(t.get()));
    if (!error) return {};
    tensor_set_history(as_tensor(t.get()), error, 0);
    decref(as_object(error));
    return t;
}

// Gradient i as it goes to its edge. Empty with the error set.
Ref checked_gradient(GradNode* node, Py_ssize_t i, PyObject* value, PyObject* const* arrived, bool tensors) {
    const FunctionClass* f = as_function_class(node->owner);
    const GradEdge& edge = node->edges[i];
    Ref gradient;
    if (tensors) {
        gradient = is_tensor(value) && !f->once ? Ref::borrow(value) : guarded_result(node, value, arrived);
    } else {
        gradient = to_array(value);
    }
    if (!gradient) return {};
    return fit_gradient(std::move(gradient), *edge.info, tensors, f->internal, "backward", f->name, i);
}

PYOP_COLD void note_creation(GradNode* node) {
    if (!node->extra || !node->extra->metadata) return;
    const Ref text = item_of_dict(node->extra->metadata, "traceback_");
    Ref name;
    {
        SavedError keep;
        name = grad_node_name(node);
    }
    if (!text || !name) return;
    Ref note = Ref::steal(PyUnicode_FromFormat("%U was recorded by this forward call:\n%S", name.get(), text.get()));
    note_pending(note.get());
}

int backward(GradNode* node, PyObject* const* arrived, PyObject** gradients, bool tensors) {
    const FunctionClass* f = as_function_class(node->owner);
    if (!f->backward || f->ambiguous) {
        if (f->ambiguous)
            PyErr_Format(PyExc_RuntimeError, "%U defines both backward and vjp, which are two names of one thing",
                         f->name);
        else
            PyErr_Format(PyExc_NotImplementedError, "%U has no backward: define it as a static method", f->name);
        return -1;
    }
    const bool as_tensors = tensors && !f->once;
    Ref result;
    {
        StackRefs<8> args(node->output_count + 2);
        args[1] = Py_NewRef(as_object(node));
        for (uint32_t i = 0; i < node->output_count; ++i) {
            args[i + 2] = argument_of_backward(node, i, arrived[i], as_tensors).release();
            if (!args[i + 2]) return -1;
        }
        Recording recording(as_tensors);
        result = Ref::steal(
            outside_new(f->backward, args.data() + 1, (node->output_count + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET));
    }
    if (!result) {
        if (!f->internal) note_if_read_only(f);
        return -1;
    }
    if (PyList_CheckExact(result.get())) result = Ref::steal(PyList_AsTuple(result.get()));
    if (result && node->extra && node->extra->tree) {
        PyObject* args[] = {node->extra->tree, result.get(), f->name};
        result = Ref::steal(outside_new(up_calls.flatten_gradients, args, 3));
    }
    if (!result) return -1;
    PyObject* single = result.get();
    const bool many = PyTuple_Check(single);
    PyObject* const* items = many ? reinterpret_cast<PyTupleObject*>(single)->ob_item : &single;
    const Py_ssize_t given = many ? PyTuple_GET_SIZE(single) : 1;
    const Py_ssize_t expected = edge_count(node);
    if (given < expected) return count_error(f, expected, given);
    for (Py_ssize_t i = expected; i < given; ++i) {
        if (items[i] != Py_None) return count_error(f, expected, given);
    }
    for (Py_ssize_t i = 0; i < expected; ++i) {
        PyObject* value = items[i];
        const GradEdge& edge = node->edges[i];
        if (value == Py_None) continue;
        if (PYOP_UNLIKELY(edge.kind == ArgumentKind::Other)) return kind_error(f, i, value, edge.kind);
        if (PYOP_UNLIKELY(!is_exact_array(value) && !is_tensor(value) && !PyArray_Check(value) &&
                          !PyArray_CheckScalar(value)))
            return kind_error(f, i, value, edge.kind);
        if (!edge.node || (autograd_state.run && !autograd_state.run->wants(edge))) continue;
        if (!tensors && !many) {
            // The only reference, if backward kept none: what comes next may add in place.
            Ref own = is_exact_array(value) ? std::move(result) : to_array(value);
            if (!own) return -1;
            gradients[i] =
                fit_gradient(std::move(own), *edge.info, false, f->internal, "backward", f->name, i).release();
        } else {
            gradients[i] = checked_gradient(node, i, value, arrived, tensors).release();
        }
        if (!gradients[i]) return -1;
        if (PYOP_UNLIKELY(autograd_state.anomaly) && autograd_state.check_nan && check_nan(node, i, gradients[i]) < 0)
            return -1;
    }
    return 0;
}

}  // namespace

int check_nan(GradNode* node, Py_ssize_t i, PyObject* gradient) {
    Ref name = grad_node_name(node);
    Ref index = Ref::steal(PyLong_FromSsize_t(i));
    if (!name || !index) return -1;
    PyObject* args[] = {name.get(), index.get(), gradient};
    return Ref::steal(outside_new(up_calls.check_nan, args, 3)) ? 0 : -1;
}

int function_backward(GradNode* node, PyObject** arrived, PyObject** gradients, bool tensors, bool keep) {
    if (!tensors && is_moving(node)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "a gradient is taken inside of jvp, and the tangents are to pass through it: that needs "
                        "create_graph=True");
        note_pending_refusal();
        return -1;
    }
    const int status = as_function_class(node->owner)->is_builtin
                           ? builtin_backward(node, arrived, gradients, tensors, keep)
                           : backward(node, arrived, gradients, tensors);
    if (status == 0) return 0;
    note_creation(node);
    return -1;
}

// --- forward mode

namespace {

Ref tangent_of(TensorObject* t, bool materialize, bool as_tensors) {
    PyObject* tangent = tensor_tangent(t);
    if (!tangent) {
        if (!materialize || !is_differentiable(PyArray_DESCR(t->data))) return Ref::borrow(Py_None);
        ArrayInfo* info = tensor_info(t);
        Ref zeros = info ? zeros_like_info(*info) : Ref();
        if (!zeros || !as_tensors) return zeros;
        return Ref::steal(as_object(tensor_new_steal(as_array(zeros.release()))));
    }
    return as_tensors || !is_tensor(tangent) ? Ref::borrow(tangent) : to_array(tangent);
}

int set_tangents(FunctionCall& call, PyObject* outputs, Ref result) {
    Ref arguments = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(call.count)));
    if (!arguments) return -1;
    for (size_t i = 0; i < call.count; ++i)
        PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i), Py_NewRef(call.args[i]));
    PyObject* args[] = {outputs, result.get(), call.function->name, arguments.get()};
    return Ref::steal(outside_new(up_calls.set_tangents, args, 4)) ? 0 : -1;
}

}  // namespace

int function_forward_mode(FunctionCall& call, PyObject* outputs) {
    FunctionClass* f = call.function;
    GradNode* node = call.node;
    if (!f->jvp) {
        PyErr_Format(PyExc_NotImplementedError, "%U has no jvp, which forward mode needs: define it as a static method",
                     f->name);
        note_pending_refusal();
        return -1;
    }
    // With recording on, the tangents' own history matters: then jvp computes with Tensors.
    bool as_tensors = false;
    for (size_t i = 0; i < call.count && is_recording(); ++i) {
        if (!is_tensor(call.args[i])) continue;
        PyObject* tangent = tensor_tangent(as_tensor(call.args[i]));
        as_tensors |= as_tensor(call.args[i])->requires_grad;
        as_tensors |= tangent && is_tensor(tangent) && as_tensor(tangent)->requires_grad;
    }
    // Forward's defaults were not given, and jvp knows of them if it takes as many arguments.
    const bool flat = !node->extra || !node->extra->tree;
    const size_t taken = flat ? std::max(call.count, static_cast<size_t>(f->tangents)) : call.count;
    StackRefs<8> args(taken + 2);
    args[1] = Py_NewRef(as_object(node));
    for (size_t i = 0; i < call.count; ++i) {
        args[i + 2] = is_tensor(call.args[i])
                          ? tangent_of(as_tensor(call.args[i]), node->materialize, as_tensors).release()
                          : Py_NewRef(Py_None);
        if (!args[i + 2]) return -1;
    }
    for (size_t i = call.count; i < taken; ++i) args[i + 2] = Py_NewRef(Py_None);
    call.in_jvp = true;
    Ref result;
    {
        // Tangents of this call are given; those of what jvp computes with are not wanted.
        Recording recording(as_tensors);
        const Within still(autograd_state.still, newest_run());
        result = Ref::steal(outside_new(f->jvp, args.data() + 1, (taken + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET));
    }
    call.in_jvp = false;
    return result ? set_tangents(call, outputs, std::move(result)) : -1;
}

}  // namespace pyop
