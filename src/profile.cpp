// src/profile.cpp: ProfileSession, what pyop.profile asks of the core.
//
// Entering and leaving are slots in C++, since an interrupt that lands before the first line of a Python `__exit__`
// would leave the whole process measuring.
#include <pybind11/pybind11.h>

#include "profile/events.h"
#include "runtime/errors.h"
#include "runtime/up_calls.h"

namespace py = pybind11;

namespace {

struct SessionObject {
    PyObject_HEAD
    size_t events;
    uint64_t number;
    bool entered;
    PyObject* opener;  // or null
};

SessionObject& session_of(PyObject* self) { return *reinterpret_cast<SessionObject*>(self); }

int session_init(PyObject* self, PyObject* args, PyObject* kwargs) {
    static const char* keywords[] = {"events", "opener", nullptr};
    Py_ssize_t events;
    PyObject* opener = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "n|O:ProfileSession", const_cast<char**>(keywords), &events,
                                     &opener))
        return -1;
    Py_XSETREF(session_of(self).opener, opener == Py_None ? nullptr : Py_NewRef(opener));
    session_of(self).events = static_cast<size_t>(events);
    return 0;
}

PyObject* session_enter(PyObject* self, PyObject*) {
    SessionObject& session = session_of(self);
    if (session.entered) {
        PyErr_SetString(PyExc_RuntimeError, "this profile has been entered before; pyop.profile() makes a new one");
        return nullptr;
    }
    return pyop::guarded(
        [&] {
            session.number = pyop::profile_start(session.events, session.opener);
            session.entered = true;
            return Py_NewRef(self);
        },
        static_cast<PyObject*>(nullptr));
}

py::dict as_dict(const pyop::RecordedEvents& r) {
    py::list sources, threads;
    for (const pyop::Ref& source : r.sources) sources.append(py::handle(source.get()));
    for (const pyop::ThreadEvents& thread : r.threads) {
        const py::bytes events(reinterpret_cast<const char*>(thread.events.data()),
                               thread.events.size() * sizeof(pyop::Event));
        threads.append(py::make_tuple(py::handle(thread.name.get()), thread.native_id, thread.lost, events));
    }
    py::dict out;
    out["start"] = r.start;
    out["stop"] = r.stop;
    out["start_ns"] = r.start_ns;
    out["stop_ns"] = r.stop_ns;
    out["ns_per_tick"] = r.ns_per_tick;
    out["sources"] = sources;
    out["threads"] = threads;
    return out;
}

PyObject* session_exit(PyObject* self, PyObject*) {
    if (!session_of(self).entered) {
        PyErr_SetString(PyExc_RuntimeError, "this profile is left, but was not entered: use it as `with p:`");
        return nullptr;
    }
    return pyop::guarded(
        [&]() -> PyObject* {
            const pyop::RecordedEvents recorded = pyop::profile_stop(session_of(self).number);
            Py_CLEAR(session_of(self).opener);
            try {
                py::handle(self).attr(py::handle(pyop::up_attributes._read))(as_dict(recorded));
            } catch (py::error_already_set& error) {
                error.restore();
                return nullptr;
            } catch (const std::runtime_error&) {  // pybind11 was given no memory for an object
                return PyErr_NoMemory();
            }
            return Py_NewRef(Py_None);
        },
        static_cast<PyObject*>(nullptr));
}

PyObject* session_entered(PyObject* self, void*) { return PyBool_FromLong(session_of(self).entered); }

void session_dealloc(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    Py_XDECREF(session_of(self).opener);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"__enter__", session_enter, METH_NOARGS, "Begin to record; return itself."},
    {"__exit__", session_exit, METH_VARARGS, "End it, and call self._read(recorded)."},
    {},
};
PyGetSetDef getset[] = {
    {"_entered", session_entered, nullptr, "Return whether it has begun.", nullptr},
    {},
};
PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("ProfileSession(events, opener=None): a profile of at least the last `events` "
                                  "events of each thread, for the length of a `with`; opener(owner, part) begins a "
                                  "range and returns what ends it.")},
    {Py_tp_init, reinterpret_cast<void*>(session_init)},
    {Py_tp_dealloc, reinterpret_cast<void*>(session_dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {0, nullptr},
};
PyType_Spec spec = {"pyop._core.ProfileSession", sizeof(SessionObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                    slots};

}  // namespace

void register_profile(py::module_& m) {
    pyop::profile_init();
    auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(m.ptr(), &spec, nullptr));
    if (!type || PyModule_AddType(m.ptr(), type) < 0) throw py::error_already_set();
}
