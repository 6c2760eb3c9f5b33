// plan/state_inputs.cpp: read state by its steps, and find where new state goes.
#include "plan/state_inputs.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "array/numpy.h"
#include "runtime/errors.h"
#include "runtime/items.h"
#include "runtime/ref.h"
#include "runtime/stack_array.h"

namespace pyop {

namespace {

// An instance, function, method, cell, list, tuple or dict becomes a node, whose parts later steps reach. `Same` is a
// node met before, `Fixed` the very object, `Gone` a slot that is empty, and a `Leaf` an input.
enum class StepKind : char {
    Instance = 'i',
    Function = 'f',
    Method = 'm',
    Cell = 'c',
    List = 'l',
    Tuple = 't',
    Dict = 'd',
    Same = 's',
    Fixed = '=',
    Gone = '-',
    Leaf = 'a',
};

struct Step {
    StepKind kind;
    Py_ssize_t parent;  // a node; -1: the root
    PyObject* key;      // a name, a member descriptor, or None where `index` says it
    Py_ssize_t index;
    PyObject* what;     // what must be there: class, facts of a function, keys of a dict, the object
    Py_ssize_t count;   // of parts; Same: which node it is
    PyObject* names;    // Instance: that the code may read
    Py_ssize_t node;    // which one it becomes; Same: which one it is
};

struct StateInputsObject {
    PyObject_HEAD
    PyObject* rows;      // tuple of steps
    PyObject* function;  // of the inputs
    PyObject* targets;   // dict: key of a result → tuple of (node, key)
    bool of_argument;    // the root is the first argument; else the function
    std::vector<Step>* steps;
};

StateInputsObject& state_of(PyObject* self) { return *reinterpret_cast<StateInputsObject*>(self); }

PyTypeObject* state_inputs_type = nullptr;

// The object whose state a call runs on, for where the function itself is to run on it.
thread_local PyObject* current_root = nullptr;

class CurrentRoot {
  public:
    explicit CurrentRoot(PyObject* root) : before_(std::exchange(current_root, root)) {}
    ~CurrentRoot() { current_root = before_; }
    CurrentRoot(const CurrentRoot&) = delete;
    CurrentRoot& operator=(const CurrentRoot&) = delete;

  private:
    PyObject* const before_;
};

struct Node {
    StepKind kind;
    Ref object;
    Ref attributes;  // Instance: its dict, or null
};

Ref member_of(PyObject* object, PyObject* descriptor) {
    const auto* member = reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member;
    const ObjectLock lock(object);
    PyObject* now;
    std::memcpy(&now, reinterpret_cast<const char*>(object) + member->offset, sizeof now);
    return Ref::borrow(now);
}

// A part of a node; empty where there is none.
Ref part_of(const Node& node, const Step& step) {
    PyObject* const object = node.object.get();
    switch (node.kind) {
        case StepKind::Instance:
            if (!PyUnicode_CheckExact(step.key)) return member_of(object, step.key);
            return node.attributes ? item_of_dict(node.attributes.get(), step.key) : Ref();
        case StepKind::Function:
            return Ref::borrow(PyTuple_GET_ITEM(PyFunction_GET_CLOSURE(object), step.index));
        case StepKind::Method:
            return Ref::borrow(step.index == 0 ? PyMethod_GET_SELF(object) : PyMethod_GET_FUNCTION(object));
        case StepKind::Cell:
            return Ref::steal(PyCell_Get(object));
        case StepKind::List:
        case StepKind::Tuple:
            return item_of(object, step.index);
        case StepKind::Dict:
            return item_of_dict(object, step.key);
        default:
            return {};
    }
}

// Whether of the attributes that the code may read there are those that the steps read.
bool same_attributes(PyObject* attributes, const Step& step) {
    if (PyDict_GET_SIZE(attributes) == step.count) return true;  // each is asked for by its name
    if (PyDict_GET_SIZE(attributes) < step.count) return false;
    const ObjectLock lock(attributes);
    PyObject *key, *value;
    Py_ssize_t at = 0, found = 0;
    while (PyDict_Next(attributes, &at, &key, &value)) {
        if (!PyUnicode_CheckExact(key)) return false;
        found += PySet_Contains(step.names, key) == 1;
    }
    return found == step.count;
}

bool same_function(PyObject* o, const Step& step) {
    if (!PyFunction_Check(o)) return false;
    const auto* f = reinterpret_cast<PyFunctionObject*>(o);
    const auto is = [&](Py_ssize_t k, PyObject* now) {
        PyObject* const expected = PyTuple_GET_ITEM(step.what, k);
        return expected == (now ? now : Py_None);
    };
    const Py_ssize_t cells = f->func_closure ? PyTuple_GET_SIZE(f->func_closure) : 0;
    return is(0, f->func_code) && is(1, f->func_globals) && is(2, f->func_defaults) && is(3, f->func_kwdefaults) &&
           cells == step.count && (!f->func_dict || PyDict_GET_SIZE(f->func_dict) == 0);
}

bool same_keys(PyObject* dict, PyObject* keys) {
    const ObjectLock lock(dict);
    if (PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys)) return false;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    for (Py_ssize_t k = 0; PyDict_Next(dict, &at, &key, &value); ++k) {
        PyObject* const expected = PyTuple_GET_ITEM(keys, k);
        if (key != expected && (!PyUnicode_CheckExact(key) || PyUnicode_Compare(key, expected) != 0)) return false;
    }
    return true;
}

bool is_leaf(PyObject* o) {
    return is_exact_array(o) || PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) || o == Py_None ||
           PyUnicode_CheckExact(o) || PyBytes_CheckExact(o) || PyComplex_CheckExact(o) || PyArray_CheckScalar(o);
}

// Whether an object may be the node of a step.
bool becomes(PyObject* o, const Step& step) {
    switch (step.kind) {
        case StepKind::Instance:
            return reinterpret_cast<PyObject*>(Py_TYPE(o)) == step.what;
        case StepKind::Function:
            return same_function(o, step);
        case StepKind::Method:
            return Py_IS_TYPE(o, &PyMethod_Type);
        case StepKind::Cell:
            return PyCell_Check(o);
        case StepKind::List:
            return PyList_CheckExact(o) && PyList_GET_SIZE(o) == step.count;
        case StepKind::Tuple:
            return PyTuple_CheckExact(o) && PyTuple_GET_SIZE(o) == step.count;
        case StepKind::Dict:
            return PyDict_CheckExact(o) && same_keys(o, step.what);
        default:
            return false;
    }
}

bool has_attributes(PyTypeObject* type) {
#if PY_VERSION_HEX >= 0x030C0000
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) return true;
#endif
    return type->tp_dictoffset != 0;
}

// What one object holds.
class State {
  public:
    // Whether the steps are for this object.
    bool read(const std::vector<Step>& steps, PyObject* root) {
        for (const Step& step : steps) {
            const Ref o = step.parent < 0 ? Ref::borrow(root) : part_of(nodes_[static_cast<size_t>(step.parent)], step);
            if (!take(step, o.get())) return PyErr_Clear(), false;
        }
        return true;
    }
    const std::vector<Ref>& leaves() const { return leaves_; }

    // Binds names anew: 0, or -1 with the error set.
    int put(PyObject* rows, PyObject* values) {
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(rows); ++k) {
            PyObject* const row = PyTuple_GET_ITEM(rows, k);
            const Py_ssize_t node = PyLong_AsSsize_t(PyTuple_GET_ITEM(row, 0));
            if (put(nodes_.at(static_cast<size_t>(node)), PyTuple_GET_ITEM(row, 1), PyTuple_GET_ITEM(values, k)) < 0)
                return -1;
        }
        return 0;
    }

  private:
    bool take(const Step& step, PyObject* o) {
        if (step.kind == StepKind::Gone) return !o;
        if (!o) return false;
        if (step.kind == StepKind::Leaf) return is_leaf(o) && (leaves_.push_back(Ref::borrow(o)), true);
        if (step.kind == StepKind::Fixed) return o == step.what;
        if (step.kind == StepKind::Same) return o == nodes_[static_cast<size_t>(step.node)].object.get();
        if (!becomes(o, step)) return false;
        for (const Node& node : nodes_)  // else what is written into one would be seen in the other
            if (node.object.get() == o && step.kind != StepKind::Tuple) return false;
        Node& node = nodes_.emplace_back(step.kind, Ref::borrow(o), Ref());
        if (step.kind != StepKind::Instance || !has_attributes(Py_TYPE(o))) return true;
        node.attributes = Ref::steal(PyObject_GenericGetDict(o, nullptr));
        return node.attributes && PyDict_CheckExact(node.attributes.get()) &&
               same_attributes(node.attributes.get(), step);
    }

    static int put(const Node& node, PyObject* key, PyObject* value) {
        PyObject* const o = node.object.get();
        if (node.kind == StepKind::Cell) return PyCell_Set(o, value);
        if (node.kind == StepKind::Dict) return PyDict_SetItem(o, key, value);
        if (node.kind == StepKind::List) return PyList_SetItem(o, PyLong_AsSsize_t(key), Py_NewRef(value));
        if (PyUnicode_CheckExact(key)) return PyDict_SetItem(node.attributes.get(), key, value);
        return Py_TYPE(key)->tp_descr_set(key, o, value);
    }

    std::vector<Node> nodes_;
    std::vector<Ref> leaves_;
};

// What the function of the inputs has returned, with new state put back. Null with the error set, or NotImplemented.
PyObject* finished_new(StateInputsObject& s, State& state, const Ref& made) {
    if (!made) return nullptr;
    if (made.get() == Py_NotImplemented) return made.new_ref();
    const Py_ssize_t n = PyTuple_CheckExact(made.get()) ? PyTuple_GET_SIZE(made.get()) : 0;
    if (n == 1) return Py_NewRef(PyTuple_GET_ITEM(made.get(), 0));
    PyObject* const rows = n == 3 ? PyDict_GetItemWithError(s.targets, PyTuple_GET_ITEM(made.get(), 1)) : nullptr;
    PyObject* const values = n == 3 ? PyTuple_GET_ITEM(made.get(), 2) : nullptr;
    if (!rows || !PyTuple_CheckExact(values) || PyTuple_GET_SIZE(values) != PyTuple_GET_SIZE(rows)) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_SystemError, "not a result with state: %R", made.get());
        return nullptr;
    }
    if (state.put(rows, values) < 0) return nullptr;
    return Py_NewRef(PyTuple_GET_ITEM(made.get(), 0));
}

// As `call_with_state_new`, by one of them.
PyObject* call_one_new(StateInputsObject& s, PyObject* fn, const Call& call) {
    const Py_ssize_t own = s.of_argument ? 1 : 0;
    if (call.n_positional < own) return nullptr;
    PyObject* const root = s.of_argument ? call.args[0] : fn;
    State state;
    if (!state.read(*s.steps, root)) return nullptr;
    const auto n = static_cast<Py_ssize_t>(state.leaves().size());
    StackArray<PyObject*, 16> given(static_cast<size_t>(n + call.n - own) + 1);
    PyObject** next = given.data();
    for (const Ref& leaf : state.leaves()) *next++ = leaf.get();
    std::copy(call.args + own, call.args + call.n, next);
    const Ref function = Ref::borrow(s.function);
    const CurrentRoot current(root);
    const Ref made = Ref::steal(PyObject_Vectorcall(function.get(), given.data(),
                                                    static_cast<size_t>(n + call.n_positional - own), call.names));
    return finished_new(s, state, made);
}

// The same, counted as a call of the function that a plan was found or made for.
PyObject* counted_call_new(StateInputsObject& s, CompiledFunctionObject& f, const Call& call) {
    const Ref fn = Ref::borrow(f.fn), function = Ref::borrow(s.function);
    const auto misses = [&] {
        return Py_IS_TYPE(function.get(), compiled_function_type)
                   ? uint64_t{compiled_function_of(function.get()).misses}
                   : 0;
    };
    const uint64_t before = misses();
    PyObject* const result = call_one_new(s, fn.get(), call);
    if (result && result != Py_NotImplemented) ++(misses() != before ? f.misses : f.hits);
    return result;
}

int read_step(PyObject* row, std::vector<Step>& steps, Py_ssize_t& nodes) {
    Step step;
    const char* kind;
    if (!PyArg_ParseTuple(row, "ynOnOnO", &kind, &step.parent, &step.key, &step.index, &step.what, &step.count,
                          &step.names))
        return -1;
    step.kind = static_cast<StepKind>(kind[0]);
    step.node = step.kind == StepKind::Same ? step.count : -1;
    const bool leaf = step.kind == StepKind::Leaf || step.kind == StepKind::Fixed || step.kind == StepKind::Gone;
    if (step.kind != StepKind::Same && !leaf) step.node = nodes++;
    if (step.parent >= nodes || (step.kind == StepKind::Same && (step.node < 0 || step.node >= nodes)))
        return PyErr_Format(PyExc_ValueError, "not a step: %R", row), -1;
    steps.push_back(step);
    return 0;
}

PyObject* state_new(PyTypeObject* type, PyObject* args, PyObject*) {
    PyObject *rows, *function, *targets;
    int of_argument;
    if (!PyArg_ParseTuple(args, "O!OO!p", &PyTuple_Type, &rows, &function, &PyDict_Type, &targets, &of_argument))
        return nullptr;
    return guarded(
        [&]() -> PyObject* {
            auto steps = std::make_unique<std::vector<Step>>();
            Py_ssize_t nodes = 0;
            for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(rows); ++k)
                if (read_step(PyTuple_GET_ITEM(rows, k), *steps, nodes) < 0) return nullptr;
            PyObject* self = type->tp_alloc(type, 0);
            if (!self) return nullptr;
            StateInputsObject& s = state_of(self);
            s.rows = Py_NewRef(rows);
            s.function = Py_NewRef(function);
            s.targets = Py_NewRef(targets);
            s.of_argument = of_argument != 0;
            s.steps = steps.release();
            return self;
        },
        static_cast<PyObject*>(nullptr));
}

int state_traverse(PyObject* self, visitproc visit, void* arg) {
    const StateInputsObject& s = state_of(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(s.rows);
    Py_VISIT(s.function);
    Py_VISIT(s.targets);
    return 0;
}

// The steps borrow from the rows, which stay: no cycle goes through them alone.
int state_clear(PyObject* self) {
    Py_SETREF(state_of(self).function, Py_NewRef(Py_None));
    return 0;
}

void state_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    StateInputsObject& s = state_of(self);
    delete s.steps;
    Py_CLEAR(s.rows);
    Py_CLEAR(s.function);
    Py_CLEAR(s.targets);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* state_call(PyObject* self, PyObject* args) {
    PyObject *function, *given, *names;
    Py_ssize_t n_positional;
    if (!PyArg_ParseTuple(args, "O!O!nO", compiled_function_type, &function, &PyTuple_Type, &given, &n_positional,
                          &names))
        return nullptr;
    return guarded(
        [&]() -> PyObject* {
            const bool named = PyTuple_Check(names) && PyTuple_GET_SIZE(names) > 0;
            const Call call{PySequence_Fast_ITEMS(given), PyTuple_GET_SIZE(given), n_positional,
                            named ? names : nullptr};
            PyObject* const result = counted_call_new(state_of(self), compiled_function_of(function), call);
            if (result || PyErr_Occurred()) return result;
            Py_RETURN_NOTIMPLEMENTED;
        },
        static_cast<PyObject*>(nullptr));
}

PyMethodDef state_methods[] = {
    {"call", state_call, METH_VARARGS,
     "call(function, args, n_positional, names): the result of this call, or NotImplemented if it is of other state."},
    {},
};

PyMemberDef state_members[] = {
    {"function", T_OBJECT, offsetof(StateInputsObject, function), READONLY, "The function of the inputs."},
    {"steps", T_OBJECT, offsetof(StateInputsObject, rows), READONLY, "How they are read."},
    {},
};

PyType_Slot state_slots[] = {
    {Py_tp_doc, const_cast<char*>("Reads what an instance or a closure holds as inputs of a compiled function.")},
    {Py_tp_new, reinterpret_cast<void*>(state_new)},
    {Py_tp_traverse, reinterpret_cast<void*>(state_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(state_clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(state_dealloc)},
    {Py_tp_members, state_members},
    {Py_tp_methods, state_methods},
    {0, nullptr},
};

PyType_Spec state_spec = {"pyop._core.StateInputs", sizeof(StateInputsObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, state_slots};

PyObject* state_root(PyObject*, PyObject*) {
    if (current_root) return Py_NewRef(current_root);
    PyErr_SetString(PyExc_RuntimeError, "no call with state runs on this thread");
    return nullptr;
}

PyMethodDef functions[] = {
    {"state_root", state_root, METH_NOARGS,
     "state_root(): the object whose state the innermost call of this thread runs on."},
    {},
};

}  // namespace

PyObject* call_with_state_new(PyObject* self, const ReadCall& read) {
    CompiledFunctionObject& f = compiled_function_of(self);
    Ref states;
    {
        const ObjectLock lock(self);
        states = Ref::borrow(f.states);
    }
    if (!states || !PyList_CheckExact(states.get())) return nullptr;
    for (Py_ssize_t k = PyList_GET_SIZE(states.get()); k-- > 0;) {
        const Ref one = item_of(states.get(), k);
        if (!one) continue;  // a call has given one up
        if (!Py_IS_TYPE(one.get(), state_inputs_type)) continue;
        PyObject* const result = counted_call_new(state_of(one.get()), f, read.call);
        if (!result && PyErr_Occurred()) return nullptr;
        if (result && result != Py_NotImplemented) return result;
        Py_XDECREF(result);
    }
    return nullptr;
}

int state_inputs_init(PyObject* module) {
    state_inputs_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &state_spec, nullptr));
    if (!state_inputs_type || PyModule_AddType(module, state_inputs_type) < 0) return -1;
    return PyModule_AddFunctions(module, functions);
}

}  // namespace pyop
