// autograd/modes.cpp: provide the context managers and scoped calls that change the modes of a thread.
#include "autograd/modes.h"

#include <vector>

#include "autograd/suspended_modes.h"
#include "autograd/tensor.h"
#include "autograd/turn.h"
#include "runtime/errors.h"
#include "runtime/refusal.h"

namespace pyop {

namespace {

// --- context managers

struct ModeObject {
    PyObject_HEAD
    Setting on;
    bool begun;  // set before `with` enters it
    std::vector<Setting>* before;
};

ModeObject* mode_of(PyObject* self) { return reinterpret_cast<ModeObject*>(self); }

PyObject* mode_new(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    mode_of(self)->on = Setting();
    mode_of(self)->before = new (std::nothrow) std::vector<Setting>;
    if (mode_of(self)->before) return self;
    Py_DECREF(self);
    return PyErr_NoMemory();
}

void mode_dealloc(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    delete mode_of(self)->before;
    type->tp_free(self);
    Py_DECREF(type);
}

int read_flag(PyObject* value, int& flag) {
    if (value == Py_None) return 0;
    flag = PyObject_IsTrue(value);
    return flag < 0 ? -1 : 0;
}

int mode_init(PyObject* self, PyObject* args, PyObject* kwargs) {
    static const char* keywords[] = {"recording", "anomaly", "check_nan", nullptr};
    PyObject *recording = Py_None, *anomaly = Py_None, *check_nan = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOO:Mode", const_cast<char**>(keywords), &recording, &anomaly,
                                     &check_nan))
        return -1;
    Setting on;
    if (read_flag(recording, on.recording) < 0 || read_flag(anomaly, on.anomaly) < 0 ||
        read_flag(check_nan, on.check_nan) < 0)
        return -1;
    mode_of(self)->on = on;
    return 0;
}

void begin(ModeObject& mode) {
    is_recording();  // what was suspended is undone before
    mode.before->push_back(current_setting());
    apply(mode.on, mode.on);
}

int end(ModeObject& mode) {
    if (mode.before->empty()) {
        PyErr_Format(PyExc_RuntimeError, "%s is left, but was not entered: use it as `with %s(...):`",
                     Py_TYPE(&mode)->tp_name, Py_TYPE(&mode)->tp_name);
        return -1;
    }
    is_recording();
    apply(mode.before->back(), mode.on);
    mode.before->pop_back();
    return 0;
}

PyObject* mode_enter(PyObject* self, PyObject*) {
    return guarded(
        [&]() -> PyObject* {
            ModeObject& mode = *mode_of(self);
            const Ref generator = entering_generator();
            const bool begun = std::exchange(mode.begun, false);
            if (generator) {
                if (begun && end(mode) < 0) return nullptr;
                if (hold_while_running(self, generator.get(), mode.on) < 0) return nullptr;
            } else if (!begun) {
                begin(mode);
            }
            return Py_NewRef(self);
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* mode_exit(PyObject* self, PyObject*) {
    return guarded(
        [&]() -> PyObject* {
            ModeObject& mode = *mode_of(self);
            const Ref generator = suspended_modes ? entering_generator() : Ref();
            const bool was_held =
                (generator && end_held(self, generator.get())) || (mode.before->empty() && end_held(self, nullptr));
            return was_held || end(mode) == 0 ? Py_NewRef(Py_None) : nullptr;
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* mode_begin(PyObject* self, PyObject*) {
    // What is waiting to be heard is heard before: an interrupt right afterwards would leave the mode on.
    if (PyErr_CheckSignals() < 0) return nullptr;
    return guarded(
        [&] {
            begin(*mode_of(self));
            mode_of(self)->begun = true;
            return Py_NewRef(Py_None);
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* mode_undo(PyObject* self, PyObject*) {
    mode_of(self)->begun = false;
    return end(*mode_of(self)) < 0 ? nullptr : Py_NewRef(Py_None);
}

PyMethodDef mode_methods[] = {
    {"__enter__", in_turn<mode_enter>, METH_NOARGS, "Turns the modes on; returns itself."},
    {"__exit__", in_turn<mode_exit>, METH_VARARGS, "Makes them what they were."},
    {"_begin", in_turn<mode_begin>, METH_NOARGS, "Turns the modes on now; a `with` that follows only ends them."},
    {"_undo", in_turn<mode_undo>, METH_NOARGS, "Undoes _begin."},
    {},
};
PyType_Slot mode_slots[] = {
    {Py_tp_doc, const_cast<char*>("Mode(recording=None, anomaly=None, check_nan=None): modes of the thread for the "
                                  "length of a `with`; None leaves one as it is.")},
    {Py_tp_new, reinterpret_cast<void*>(in_turn<mode_new>)},
    {Py_tp_init, reinterpret_cast<void*>(in_turn<mode_init>)},
    {Py_tp_dealloc, reinterpret_cast<void*>(in_turn<mode_dealloc>)},
    {Py_tp_methods, mode_methods},
    {0, nullptr},
};
PyType_Spec mode_spec = {"pyop._core.Mode", sizeof(ModeObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                         mode_slots};

// --- calls

// The Tensors in a list are what a transformation is taken by, while its function runs; -1 with the error set.
int mark_arguments(PyObject* tensors, bool running) {
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(tensors); ++k) {
        PyObject* t = PyList_GET_ITEM(tensors, k);
        if (is_tensor(t) && tensor_set_argument(as_tensor(t), running) < 0) return -1;
    }
    return 0;
}

PyObject* call_recorded(PyObject*, PyObject* given) {
    ModeCall call;
    PyObject* arguments = nullptr;
    if (!PyArg_ParseTuple(given, "OO!O!|O!:call_recorded", &call.fn, &PyTuple_Type, &call.args, &PyDict_Type,
                          &call.kwargs, &PyList_Type, &arguments))
        return nullptr;
    if (arguments && mark_arguments(arguments, true) < 0) return nullptr;
    const Recording on(true);
    const Within one_more(autograd_state.transformations, autograd_state.transformations + 1);
    const struct Anywhere {
        Anywhere() { ++transformations_anywhere; }
        ~Anywhere() { --transformations_anywhere; }
    } anywhere;
    Ref result = Ref::steal(call_watched(call.fn, call.args, call.kwargs, true));
    // Where the function has raised, nobody gets at them any more.
    if (result && arguments && mark_arguments(arguments, false) < 0) return nullptr;
    return result.release();
}

PyObject* call_recording(PyObject*, PyObject* given) {
    ModeCall call;
    int on;
    if (!PyArg_ParseTuple(given, "pOO!O!:call_recording", &on, &call.fn, &PyTuple_Type, &call.args, &PyDict_Type,
                          &call.kwargs))
        return nullptr;
    const Recording recording(on != 0);
    return call.run();
}

PyObject* transformations_running(PyObject*, PyObject*) { return PyLong_FromLong(autograd_state.transformations); }

PyObject* ask_recording(PyObject*, PyObject*) { return PyBool_FromLong(is_recording()); }

PyMethodDef mode_functions[] = {
    {"is_recording", ask_recording, METH_NOARGS, "is_recording(): whether computations with Tensors are recorded."},
    {"call_recorded", call_recorded, METH_VARARGS,
     "call_recorded(fn, args, kwargs, tensors=[]): recorded, and watched, as the function of a transformation by these "
     "Tensors."},
    {"call_recording", call_recording, METH_VARARGS,
     "call_recording(on, fn, args, kwargs): recorded or not, whatever was before."},
    {"transformations_running", transformations_running, METH_NOARGS,
     "transformations_running(): how many functions of transformations are running on this thread."},
    {},
};

}  // namespace

int modes_init(PyObject* module) {
    auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &mode_spec, nullptr));
    if (!type || PyModule_AddType(module, type) < 0) return -1;
    return PyModule_AddFunctions(module, mode_functions);
}

}  // namespace pyop
