// autograd/function_apply.cpp: take the arguments of apply to what forward returns.
#include <algorithm>
#include <unordered_set>
#include <vector>

#include "autograd/engine.h"
#include "autograd/forward.h"
#include "autograd/function.h"
#include "autograd/function_parts.h"
#include "autograd/state.h"
#include "autograd/turn.h"
#include "graph/value.h"
#include "runtime/attribute.h"
#include "runtime/errors.h"
#include "runtime/items.h"
#include "runtime/lazy.h"
#include "runtime/stack_array.h"
#include "runtime/stack_limit.h"
#include "runtime/up_calls.h"

namespace pyop {

namespace {

enum class Shape { Flat, Tree, Symbolic, Batched };

// Whether a container, at any depth, holds a Tensor (or a Value, or an array under vmap). Containers may share parts
// and hold themselves: each is looked into once.
class Contents {
  public:
    Shape shape = Shape::Flat;

    // 0, or -1 with the error set.
    int find(PyObject* o, PyObject* function_name) {
        if (look_into(o) < 0) return -1;
        for (size_t k = 0; k < inside_.size(); ++k)
            if (look_into(Ref::borrow(inside_[k].get()).get()) < 0) return -1;
        if (shape != Shape::Tree) return 0;
        for (const Ref& whole : wholes_)
            if (check_no_history(whole.get(), function_name) < 0) return -1;
        return 0;
    }

  private:
    int look_into(PyObject* o) {
        if (PyTuple_Check(o) || PyList_Check(o)) {
            if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o) && !is_named_tuple(o))
                wholes_.push_back(Ref::borrow(o));
            for (Py_ssize_t i = 0; i < size_of_sequence(o); ++i)
                if (const Ref item = item_of(o, i)) note(item.get());
        } else if (PyDict_Check(o)) {
            if (!PyDict_CheckExact(o)) wholes_.push_back(Ref::borrow(o));
            const ObjectLock lock(o);
            PyObject *key, *value;
            Py_ssize_t at = 0;
            while (PyDict_Next(o, &at, &key, &value)) note(value);
        } else if (PyObject* const fields = fields_of(o); fields && PyDict_Check(fields)) {
            PyObject* name;
            Py_ssize_t at = 0;
            while (PyDict_Next(fields, &at, &name, nullptr)) {
                const Ref value = Ref::steal(PyObject_GetAttr(o, name));
                if (!value && !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
                value ? note(value.get()) : PyErr_Clear();
            }
        }
        return 0;
    }

    void note(PyObject* item) {
        if (is_tensor(item))
            shape = std::max(shape, Shape::Tree);
        else if (is_value(item))
            shape = std::max(shape, Shape::Symbolic);
        else if (is_batched(item))
            shape = Shape::Batched;
        else if ((PyTuple_Check(item) || PyList_Check(item) || PyDict_Check(item) || fields_of(item)) && is_new(item))
            inside_.push_back(Ref::borrow(item));
    }

    bool is_new(PyObject* item) {
        constexpr size_t few = 8;
        if (inside_.empty()) inside_.reserve(few);
        if (inside_.size() < few)
            return std::none_of(inside_.begin(), inside_.end(), [item](const Ref& x) { return x.get() == item; });
        if (inside_.size() == few)
            for (const Ref& x : inside_) seen_.insert(x.get());
        return seen_.insert(item).second;
    }

    static int check_no_history(PyObject* whole, PyObject* function_name) {
        PyObject* args[] = {function_name, whole};
        return Ref::steal(outside_new(up_calls.check_none_hidden, args, 2)) ? 0 : -1;
    }

    static bool is_named_tuple(PyObject* o) { return PyTuple_Check(o) && type_has<"_make">(o); }

    // Of a dataclass, borrowed from the class; else null.
    static PyObject* fields_of(PyObject* o) {
        if (!(Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE) || PyType_Check(o)) return nullptr;
        static constinit Lazy name;
        PyObject* fields = name.interned("__dataclass_fields__");
        if (!fields) PyErr_Clear();
        return fields ? _PyType_Lookup(Py_TYPE(o), fields) : nullptr;
    }

    std::vector<Ref> wholes_;  // of subclasses of list, tuple and dict, which forward gets with what they hold
    std::vector<Ref> inside_;  // alive, so that no address is of two
    std::unordered_set<PyObject*> seen_;
};

PYOP_INLINE bool is_plain(PyObject* o) {
    return is_tensor(o) || is_exact_array(o) || PyFloat_CheckExact(o) || PyLong_CheckExact(o) || o == Py_None;
}

// Looks at one argument: its edge, and what forward gets instead of it.
int take_argument(FunctionCall& call, size_t i) {
    PyObject* arg = call.args[i];
    GradEdge& edge = call.node->edges[i];
    call.arrays[i] = arg;
    if (!is_tensor(arg)) {
        if (PyArray_Check(arg) || PyArray_CheckScalar(arg)) {
            edge.kind = ArgumentKind::Array;
            call.any_array = true;
        }
        return 0;
    }
    TensorObject* t = as_tensor(arg);
    edge.kind = ArgumentKind::Tensor;
    call.any_tensor = true;
    call.arrays[i] = as_object(t->data);
    if (check_view(t) < 0) return -1;
    if (t->requires_grad && is_recording()) {
        ArrayInfo* info = tensor_info(t);
        GradNode* target = info ? gradient_target_new(t) : nullptr;
        if (!target) return -1;
        edge.node = target;
        edge.output = t->output;
        edge.info = share(info);
        call.recorded = true;
    }
    if (tensor_tangent(t)) call.any_tangent = true;
    return 0;
}

// Arrays are told apart by identity: see function.h.
int keep_apart(FunctionCall& call) {
    for (size_t i = 1; i < call.count; ++i) {
        if (call.node->edges[i].kind == ArgumentKind::Other || !is_exact_array(call.arrays[i])) continue;
        for (size_t k = 0; k < i; ++k) {
            if (call.arrays[k] != call.arrays[i] || call.args[k] == call.args[i]) continue;
            PyObject* view = PyArray_View(as_array(call.arrays[i]), nullptr, nullptr);
            if (!view) return -1;
            call.owned.push_back(Ref::steal(view));
            call.arrays[i] = view;
            break;
        }
    }
    return 0;
}

// Forward's arguments with the defaults of those left out, for setup_context.
Ref with_defaults(const FunctionCall& call) {
    const FunctionClass* f = call.function;
    const auto given = static_cast<Py_ssize_t>(call.count);
    const Py_ssize_t defaults = PyTuple_GET_SIZE(f->defaults);
    Py_ssize_t total = given;
    if (f->parameters > given && f->parameters - given <= defaults) total = f->parameters;
    Ref inputs = Ref::steal(PyTuple_New(total));
    if (!inputs) return {};
    for (Py_ssize_t i = 0; i < total; ++i) {
        PyObject* item = i < given ? call.arrays[i] : PyTuple_GET_ITEM(f->defaults, defaults - (f->parameters - i));
        PyTuple_SET_ITEM(inputs.get(), i, Py_NewRef(item));
    }
    return inputs;
}

// Runs forward, and setup_context in the split form. `frame`: a spare slot, the ctx, the arrays.
Ref call_forward(FunctionCall& call, PyObject** frame, PyObject* kwargs, PyObject* tree) {
    FunctionClass* f = call.function;
    Recording off(false);
    if (PYOP_UNLIKELY(tree != nullptr)) {
        Ref arrays = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(call.count)));
        if (!arrays) return {};
        for (size_t i = 0; i < call.count; ++i)
            PyTuple_SET_ITEM(arrays.get(), static_cast<Py_ssize_t>(i), Py_NewRef(call.arrays[i]));
        PyObject* args[] = {f->forward,           f->setup_context ? f->setup_context : Py_None,
                            as_object(call.node), tree,
                            arrays.get(),         kwargs ? kwargs : Py_None};
        return Ref::steal(outside_new(up_calls.call_forward_tree, args, 6));
    }
    const bool split = f->setup_context != nullptr;
    PyObject** first = split ? frame + 2 : frame + 1;
    const size_t n = split ? call.count : call.count + 1;
    Ref result;
    if (PYOP_UNLIKELY(kwargs != nullptr)) {
        result = Ref::steal(survive([&] { return PyObject_VectorcallDict(f->forward, first, n, kwargs); }));
    } else if (split) {
        result = Ref::steal(outside_new(f->forward, first, n));
    } else {
        result = Ref::steal(outside_new(f->forward, first, n | PY_VECTORCALL_ARGUMENTS_OFFSET));
    }
    if (!result || !split) return result;
    Ref inputs = with_defaults(call);
    if (!inputs) return {};
    PyObject* args[] = {nullptr, as_object(call.node), inputs.get(), result.get()};
    Ref done = Ref::steal(outside_new(f->setup_context, args + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET));
    return done ? std::move(result) : Ref();
}

// A ctx that somebody kept has to be seen by the collector, recorded or not.
void leave(FunctionCall& call) {
    call.node->call = nullptr;
    if (!call.recorded && !uniquely_owned(as_object(call.node)) && !PyObject_GC_IsTracked(as_object(call.node)))
        PyObject_GC_Track(as_object(call.node));
}

PyObject* apply(FunctionClass* f, PyObject* const* args, size_t n, PyObject* kwargs, PyObject* tree) {
    StackArray<PyObject*, 10> frame(n + 2);
    GradNode* node = grad_node_new(GradNodeKind::Function, static_cast<Py_ssize_t>(n));
    if (!node) return nullptr;
    Ref owner = Ref::steal(as_object(node));
    node->owner = Py_NewRef(reinterpret_cast<PyObject*>(f));
    FunctionCall call{f, node, args, n, frame.data() + 2};
    frame[1] = as_object(node);
    for (size_t i = 0; i < n; ++i) {
        if (take_argument(call, i) < 0) return nullptr;
    }
    if (n > 1 && keep_apart(call) < 0) return nullptr;
    node->executable = call.recorded;
    node->call = &call;
    if (tree) {
        if (!grad_node_extra(node)) return nullptr;
        node->extra->tree = Py_NewRef(tree);
    }
    if (call.recorded) grad_node_finish(node);
    if (PYOP_UNLIKELY(autograd_state.anomaly) && remember_creation(node) < 0) {
        leave(call);
        return nullptr;
    }
    StackArray<Py_ssize_t, 10> references(n);
    for (size_t i = 0; i < n; ++i) references.data()[i] = references_of(call.arrays[i]);
    Ref result = call_forward(call, frame.data(), kwargs, tree);
    for (size_t i = 0; i < n; ++i) {  // forward may have kept it
        const Py_ssize_t before = references.data()[i];
        if (!is_tensor(args[i]) || (before >= 0 && references_of(call.arrays[i]) == before)) continue;
        if (tensor_expose(as_tensor(args[i])) < 0) result = Ref();
    }
    PyObject* finished = result ? function_finish(call, std::move(result)) : nullptr;
    leave(call);
    return finished;
}

}  // namespace

int remember_creation(GradNode* node) {
    NodeExtra* extra = grad_node_extra(node);
    if (!extra) return -1;
    Ref metadata = Ref::steal(outside_new(up_calls.creation, nullptr, 0));
    if (!metadata) return -1;
    Py_XSETREF(extra->metadata, metadata.release());
    return 0;
}

PyObject* function_apply(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    if (stack_is_low()) return no_stack_left(" in a Function");
    FunctionClass* f = as_function_class(self);
    const auto n = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
    if (!f->forward) {
        PyErr_Format(PyExc_NotImplementedError, "%U has no forward: define it as a static method", f->name);
        return nullptr;
    }
    Shape shape = Shape::Flat;
    for (size_t i = 0; i < n; ++i) {
        if (PYOP_LIKELY(is_plain(args[i]))) continue;
        if (is_batched(args[i])) {
            shape = Shape::Batched;
        } else if (is_value(args[i])) {
            shape = std::max(shape, Shape::Symbolic);
        } else {
            Contents contents;
            if (contents.find(args[i], f->name) < 0) return nullptr;
            shape = std::max(shape, contents.shape);
        }
    }
    if (PYOP_UNLIKELY(kwnames || shape != Shape::Flat)) {
        for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k)
            if (is_value(args[n + static_cast<size_t>(k)])) shape = std::max(shape, Shape::Symbolic);
        PyObject* apply = shape == Shape::Batched    ? up_calls.apply_batched
                          : shape == Shape::Symbolic ? up_calls.apply_symbolic
                                                     : up_calls.apply_general;
        Ref positional = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(n)));
        Ref keywords = Ref::steal(PyDict_New());
        if (!positional || !keywords) return nullptr;
        for (size_t i = 0; i < n; ++i)
            PyTuple_SET_ITEM(positional.get(), static_cast<Py_ssize_t>(i), Py_NewRef(args[i]));
        for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
            if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, k), args[n + static_cast<size_t>(k)]) < 0)
                return nullptr;
        }
        PyObject* call[] = {self, positional.get(), keywords.get()};
        return outside_new(apply, call, 3);
    }
    return guarded([&] { return apply(f, args, n, nullptr, nullptr); }, static_cast<PyObject*>(nullptr));
}

PyObject* function_apply_flat(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    if (n != 3 || !PyTuple_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "_flat(args, kwargs, tree)");
        return nullptr;
    }
    PyObject* kwargs = args[1] == Py_None || PyDict_GET_SIZE(args[1]) == 0 ? nullptr : args[1];
    PyObject* tree = args[2] == Py_None ? nullptr : args[2];
    return guarded(
        [&] {
            return apply(as_function_class(self), reinterpret_cast<PyTupleObject*>(args[0])->ob_item,
                         static_cast<size_t>(PyTuple_GET_SIZE(args[0])), kwargs, tree);
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* function_record(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    if (n != 3 || !PyTuple_Check(args[0]) || !PyDict_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "_record(tensors, result, attributes)");
        return nullptr;
    }
    return guarded(
        [&]() -> PyObject* {
            const auto count = static_cast<size_t>(PyTuple_GET_SIZE(args[0]));
            StackArray<PyObject*, 10> arrays(count);
            GradNode* node = grad_node_new(GradNodeKind::Function, static_cast<Py_ssize_t>(count));
            if (!node) return nullptr;
            Ref owner = Ref::steal(as_object(node));
            node->owner = Py_NewRef(self);
            FunctionCall call{as_function_class(self), node, reinterpret_cast<PyTupleObject*>(args[0])->ob_item, count,
                              arrays.data()};
            for (size_t i = 0; i < count; ++i) {
                if (take_argument(call, i) < 0) return nullptr;
            }
            if (count > 1 && keep_apart(call) < 0) return nullptr;
            call.any_tensor = true;
            call.any_tangent = false;  // whose business they are is recording.py's
            node->materialize = false;
            node->executable = call.recorded;
            if (call.recorded) {
                node->dict = Py_NewRef(args[2]);
                call.is_fresh = PyDict_GetItemString(args[2], "fresh") == Py_True;
                grad_node_finish(node);
                if (PYOP_UNLIKELY(autograd_state.anomaly) && remember_creation(node) < 0) return nullptr;
                if (record_saves(call, args[1]) < 0) return nullptr;
            }
            return function_finish(call, Ref::borrow(args[1]));
        },
        static_cast<PyObject*>(nullptr));
}

namespace {

constexpr npy_intp kCopied = 1 << 16;  // bytes: as recording.py keeps arrays of the caller (kept.py)

bool is_copied(PyArrayObject* a) { return PyArray_ISWRITEABLE(a) && !PyDataType_REFCHK(PyArray_DESCR(a)); }

// What a record keeps of an argument that is no Tensor: the caller may write into his array before backward.
Ref kept(PyObject* argument) {
    if (is_tensor(argument)) return Ref::borrow(Py_None);
    if (!is_copied(as_array(argument))) return Ref::borrow(argument);
    return Ref::steal(PyArray_NewCopy(as_array(argument), NPY_KEEPORDER));
}

}  // namespace

PyObject* function_call_recorded(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    if ((n != 3 && n != 4) || !PyTuple_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "_call(fn, tensors, rule, result=)");
        return nullptr;
    }
    const bool was_called = n == 4;
    const Py_ssize_t count = PyTuple_GET_SIZE(args[1]);
    StackRefs<10> arrays(static_cast<size_t>(count) + 1);
    bool recorded = false;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* item = PyTuple_GET_ITEM(args[1], i);
        if (is_tensor(item)) {
            recorded |= as_tensor(item)->requires_grad;
            item = as_object(as_tensor(item)->data);
        } else if (!is_exact_array(item) || (is_copied(as_array(item)) && PyArray_NBYTES(as_array(item)) > kCopied)) {
            Py_RETURN_NONE;
        }
        arrays[static_cast<size_t>(i) + 1] = Py_NewRef(item);
    }
    if (!was_called && (!recorded || !is_recording() || any_forward_run())) Py_RETURN_NONE;
    Ref result = was_called ? Ref::borrow(args[3]) : Ref();
    if (!was_called) {
        const Recording off(false);
        result = Ref::steal(
            outside_new(args[0], arrays.data() + 1, static_cast<size_t>(count) | PY_VECTORCALL_ARGUMENTS_OFFSET));
    }
    if (result) result = to_array(result.get());
    Ref positions = Ref::steal(PyList_New(0)), constants = Ref::steal(PyList_New(count));
    Ref tensors = Ref::steal(PyList_New(0));
    if (!result || !positions || !constants || !tensors) return nullptr;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* item = PyTuple_GET_ITEM(args[1], i);
        Ref position = Ref::steal(PyLong_FromSsize_t(i)), constant = kept(item);
        if (!position || !constant) return nullptr;
        if (is_tensor(item) &&
            (PyList_Append(positions.get(), position.get()) < 0 || PyList_Append(tensors.get(), item) < 0))
            return nullptr;
        PyList_SET_ITEM(constants.get(), i, constant.release());
    }
    tensors = Ref::steal(PyList_AsTuple(tensors.get()));
    Ref attributes = Ref::steal(
        Py_BuildValue("{s(OOOOn()O)}", "call", args[2], constants.get(), positions.get(), Py_None, count, Py_False));
    if (!attributes || !tensors) return nullptr;
    PyObject* call[] = {tensors.get(), result.get(), attributes.get()};
    return function_record(self, call, 3);
}

}  // namespace pyop
