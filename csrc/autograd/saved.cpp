// autograd/saved.cpp: take fingerprints and versions, and report changes of saved arrays.
#include "autograd/saved.h"

#include <cstddef>  // offsetof

#include "autograd/fingerprint.h"
#include "autograd/function.h"
#include "autograd/grad_node.h"
#include "autograd/state.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

constexpr npy_intp kAlwaysPrinted = 512;  // bytes: a few ten nanoseconds

bool is_printed(PyArrayObject* array, bool is_private) {
    return !is_private || PyArray_NBYTES(array) <= kAlwaysPrinted || autograd_state.anomaly;
}

void print(SavedItem& item, PyArrayObject* array, npy_intp bytes_of_result) {
    item.reading = reading_of(PyArray_NBYTES(array), bytes_of_result);
    item.print = fingerprint(array, item.reading);
}

PYOP_COLD int modified_error(GradNode* node, const SavedItem& item, Py_ssize_t index, uint32_t version) {
    PyArrayObject* array = item.kind == SavedItem::Input ? as_tensor(item.value)->data : as_array(item.value);
    Ref name = grad_node_name(node);
    Ref shape = shape_text(PyArray_DIMS(array), PyArray_NDIM(array));
    if (!name || !shape) return -1;
    Ref producer;
    if (item.kind == SavedItem::Output) {
        producer = Ref::steal(PyUnicode_FromFormat("output %u of %U", item.output, name.get()));
    } else if (item.kind == SavedItem::Input && as_tensor(item.value)->grad_fn) {
        Ref maker = grad_node_name(as_tensor(item.value)->grad_fn);
        if (!maker) return -1;
        producer = Ref::steal(
            PyUnicode_FromFormat("an argument, by now output %u of %U", as_tensor(item.value)->output, maker.get()));
    } else {
        producer =
            Ref::steal(PyUnicode_FromString(item.kind == SavedItem::Input ? "an argument" : "computed in forward"));
    }
    if (!producer) return -1;
    if (version != item.version) {
        PyErr_Format(
            PyExc_RuntimeError,
            "%U saved a %S array of shape %U (saved array %zd, %U), which has been modified in place since: it "
            "is at version %u, expected version %u. Compute with a copy, or change it after backward.",
            name.get(), PyArray_DESCR(array), shape.get(), index, producer.get(), version, item.version);
    } else {
        PyErr_Format(PyExc_RuntimeError,
                     "%U saved a %S array of shape %U (saved array %zd, %U), whose numbers have been modified since "
                     "without a change of its version: something wrote into its memory through NumPy. Compute with a "
                     "copy (x.copy()), or change it after backward.",
                     name.get(), PyArray_DESCR(array), shape.get(), index, producer.get());
    }
    return -1;
}

void unlink(SavedItem& item) {
    if (!item.before) return;
    *item.before = item.next;
    if (item.next) item.next->before = item.before;
    item.next = nullptr;
    item.before = nullptr;
}

int check_unchanged(GradNode* node, const SavedItem& item, Py_ssize_t index) {
    uint32_t version = item.version;
    PyArrayObject* array;
    const VersionCounter* counter = item.counter;
    if (item.kind == SavedItem::Input) {
        counter = as_tensor(item.value)->counter;
        version = tensor_version(as_tensor(item.value));
        array = as_tensor(item.value)->data;
    } else {
        if (item.counter) version = item.counter->version;
        array = as_array(item.value);
    }
    if (PYOP_UNLIKELY(version != item.version)) return modified_error(node, item, index, version);
    const bool same =
        item.print ? fingerprint(array, item.reading) == item.print
                   : !counter || !counter->print || fingerprint(owner_of(array), Reading::Wholly) == counter->print;
    return PYOP_LIKELY(same) ? 0 : modified_error(node, item, index, version);
}

// An intermediate result, while recording: constant if it has no derivative at all, else a derivative through it would
// be missed without a word, so a node stands there that says so.
PyObject* intermediate_new(GradNode* node, PyArrayObject* array, Py_ssize_t index) {
    if (!is_differentiable(PyArray_DESCR(array))) return Py_NewRef(as_object(array));
    Ref name = grad_node_name(node);
    if (!name) return nullptr;
    Ref message = Ref::steal(PyUnicode_FromFormat(
        "the derivative of backward of %U goes through saved array %zd, which forward computed on the way: how it "
        "depends on the inputs is not recorded. Compute it again in backward from saved inputs, or return it as an "
        "output of forward. If it does not depend on the inputs, keep it as an attribute of ctx.",
        name.get(), index));
    if (message && is_moving(node)) {  // no node stands in the way of a tangent
        PyErr_SetObject(PyExc_RuntimeError, message.get());
        return nullptr;
    }
    Ref t = Ref::steal(as_object(tensor_new_steal(as_array(Py_NewRef(as_object(array))))));
    GradNode* error = t ? error_node_new(message.release(), node, nullptr, 0, as_tensor(t.get())) : nullptr;
    if (!error) return nullptr;
    tensor_set_history(as_tensor(t.get()), error, 0);
    Py_DECREF(as_object(error));
    return t.release();
}

// Whether a backward of the user gets the array of something that others may have saved too. Small ones are printed.
bool gives_away(const GradNode* node, const SavedItem& item) {
    if (item.kind != SavedItem::Input && item.kind != SavedItem::Output) return false;
    PyArrayObject* array = item.kind == SavedItem::Input ? as_tensor(item.value)->data : as_array(item.value);
    return PyArray_NBYTES(array) > kAlwaysPrinted && !as_function_class(node->owner)->internal;
}

PyObject* unpack_item(GradNode* node, const SavedItem& item, Py_ssize_t index) {
    if (item.kind == SavedItem::None) return Py_NewRef(Py_None);
    if (check_unchanged(node, item, index) < 0) return nullptr;
    if (gives_away(node, item)) {
        if (item.kind == SavedItem::Input && tensor_expose(as_tensor(item.value)) < 0) return nullptr;
        if (item.counter) expose(item.counter, as_array(item.value));
    }
    const bool history = is_recording();
    if (item.kind == SavedItem::Input) return Py_NewRef(history ? item.value : as_object(as_tensor(item.value)->data));
    if (!history || !node->executable || item.kind == SavedItem::Constant) return Py_NewRef(item.value);
    if (item.kind == SavedItem::Other) return intermediate_new(node, as_array(item.value), index);
    TensorObject* t = tensor_new_steal(as_array(Py_NewRef(item.value)));
    if (!t) return nullptr;
    if (item.counter) take_counter(t, item.counter);
    if (node->outputs[item.output].differentiable) tensor_set_history(t, node, item.output);
    if (is_moving(node)) {
        PyObject* tangent = PyTuple_GET_ITEM(node->extra->tangents, static_cast<Py_ssize_t>(item.output));
        if (tangent != Py_None && tensor_set_tangent(t, tangent, node->extra->run) < 0) {
            Py_DECREF(as_object(t));
            return nullptr;
        }
    }
    return as_object(t);
}

}  // namespace

SavedArrays* saved_blank(uint32_t n) {
    const size_t size = offsetof(SavedArrays, items) + sizeof(SavedItem) * (n > 0 ? n : 1);
    auto* saved = static_cast<SavedArrays*>(PyMem_Malloc(size));
    if (!saved) {
        PyErr_NoMemory();
        return nullptr;
    }
    saved->count = n;
    saved->for_forward = 0;
    for (uint32_t i = 0; i < n; ++i)
        saved->items[i] = {nullptr, nullptr, nullptr, nullptr, 0, 0, 0, SavedItem::None, Reading::Wholly};
    return saved;
}

SavedArrays* saved_new(PyObject* const* args, Py_ssize_t n, const char* who) {
    SavedArrays* saved = saved_blank(static_cast<uint32_t>(n));
    if (!saved) return nullptr;
    for (Py_ssize_t i = 0; i < n; ++i) {
        SavedItem& item = saved->items[i];
        if (args[i] == Py_None) continue;
        if (is_exact_array(args[i]) || is_tensor(args[i])) {
            item.value = Py_NewRef(args[i]);
        } else if (PyArray_Check(args[i]) || PyArray_CheckScalar(args[i])) {
            item.value = PyArray_EnsureArray(Py_NewRef(args[i]));
        } else {
            PyErr_Format(PyExc_TypeError,
                         "%s takes arrays, Tensors and None, but argument %zd is of type %s. Keep other things as "
                         "attributes: ctx.name = value",
                         who, i, Py_TYPE(args[i])->tp_name);
        }
        if (!item.value) {
            saved_free(saved);
            return nullptr;
        }
        item.kind = SavedItem::Other;
    }
    return saved;
}

void saved_free(SavedArrays* saved) {
    if (!saved) return;
    for (uint32_t i = 0; i < saved->count; ++i) {
        release_counter(saved->items[i].counter);
        unlink(saved->items[i]);
        if (saved->items[i].value) decref(saved->items[i].value);
    }
    PyMem_Free(saved);
}

int saved_traverse(SavedArrays* saved, visitproc visit, void* arg) {
    for (uint32_t i = 0; saved && i < saved->count; ++i) Py_VISIT(saved->items[i].value);
    return 0;
}

void saved_move(TensorObject* from, TensorObject* to) {
    // A tangent is computed with the result before the two change places, so both may have been saved.
    auto hand_over = [](SavedItem* first, TensorObject* t) {
        for (SavedItem* item = first; item; item = item->next) {
            Py_INCREF(as_object(t));
            Py_SETREF(item->value, as_object(t));  // the caller has both
        }
        t->saves = first;
        if (first) first->before = &t->saves;
    };
    SavedItem* of_from = std::exchange(from->saves, nullptr);
    SavedItem* of_to = std::exchange(to->saves, nullptr);
    hand_over(of_from, to);
    hand_over(of_to, from);
}

void saved_set_input(SavedItem& item, TensorObject* input, npy_intp result) {
    Py_INCREF(as_object(input));
    Py_XSETREF(item.value, as_object(input));
    unlink(item);
    item.next = input->saves;
    item.before = &input->saves;
    if (item.next) item.next->before = &item.next;
    input->saves = &item;
    item.kind = SavedItem::Input;
    item.version = tensor_version(input);
    // Arguments of a function are held against what they were once, when the run is over.
    const bool is_checked = input->counter && input->counter->arguments;
    if (!is_checked && is_printed(input->data, is_private(input))) print(item, input->data, result);
}

int saved_set_output(SavedItem& item, TensorObject* output, uint32_t index, bool fresh) {
    VersionCounter* counter = tensor_counter(output);
    if (!counter) return -1;
    ++counter->references;
    item.counter = counter;
    item.version = counter->version;
    item.kind = SavedItem::Output;
    item.output = index;
    if (is_printed(output->data, fresh || is_private(output, 1)))
        print(item, output->data, PyArray_NBYTES(output->data));
    return 0;
}

void saved_finish(SavedItem& item, npy_intp result) {
    if (is_tensor(item.value)) return saved_set_input(item, as_tensor(item.value), result);
    PyArrayObject* array = as_array(item.value);
    const bool ours =
        uniquely_owned(as_object(array)) && !PyArray_BASE(array) && PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA);
    if (is_printed(array, ours)) print(item, array, result);
}

Ref saved_item_new(GradNode* node, uint32_t index) {
    if (!node->saved) {
        second_time_error(node);
        return {};
    }
    return Ref::steal(unpack_item(node, node->saved->items[index], index));
}

PyObject* saved_unpack(GradNode* node) {
    SavedArrays* saved = node->saved;
    if (!saved) return PyTuple_New(0);
    Ref tuple = Ref::steal(PyTuple_New(saved->count));
    if (!tuple) return nullptr;
    for (Py_ssize_t i = 0; i < static_cast<Py_ssize_t>(saved->count); ++i) {
        PyObject* value = unpack_item(node, saved->items[i], i);
        if (!value) return nullptr;
        PyTuple_SET_ITEM(tuple.get(), i, value);
    }
    return tuple.release();
}

void second_time_error(GradNode* node) {
    Ref name = grad_node_name(node);
    if (!name) return;
    PyErr_Format(PyExc_RuntimeError,
                 "%U has been run backward already, and what it saved was freed then: going through the graph a second "
                 "time, or reading saved_tensors, needs retain_graph=True in the first backward() or grad()",
                 name.get());
}

}  // namespace pyop
