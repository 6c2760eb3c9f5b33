// ode/ode_type.cpp: define Integration as Python sees it, `_core._Integration`, which python/pyop/interop/ode.py alone
// makes. Numbers come and go as bytes.
#include <cstring>
#include <optional>

#include "ode/integrate.h"
#include "runtime/errors.h"

namespace pyop::ode {

namespace {

struct IntegrationObject {
    PyObject_HEAD
    Integration* integration;
    bool begun, busy;
};

Integration& integration_of(PyObject* self) { return *reinterpret_cast<IntegrationObject*>(self)->integration; }

// --- numbers

int read_numbers(PyObject* bytes, std::vector<double>& to) {
    if (!PyBytes_Check(bytes)) {
        PyErr_SetString(PyExc_TypeError, "numbers of an integration are bytes");
        return -1;
    }
    to.resize(static_cast<size_t>(PyBytes_GET_SIZE(bytes)) / sizeof(double));
    if (!to.empty()) std::memcpy(to.data(), PyBytes_AS_STRING(bytes), to.size() * sizeof(double));
    return 0;
}

PyObject* bytes_new(const std::vector<double>& x) {
    return PyByteArray_FromStringAndSize(reinterpret_cast<const char*>(x.data()),
                                         static_cast<Py_ssize_t>(x.size() * sizeof(double)));
}

// (stages, order, columns, A, B, C, E, P) and of DOP853 (E3, A_extra, C_extra) behind them.
int read_tableau(PyObject* described, Tableau& tableau) {
    PyObject *a, *b, *c, *e, *p, *e3 = nullptr, *a_extra = nullptr, *c_extra = nullptr;
    if (!PyArg_ParseTuple(described, "iiiOOOOO|OOO", &tableau.stages, &tableau.order, &tableau.columns, &a, &b, &c, &e,
                          &p, &e3, &a_extra, &c_extra))
        return -1;
    if (read_numbers(a, tableau.A) < 0 || read_numbers(b, tableau.B) < 0 || read_numbers(c, tableau.C) < 0 ||
        read_numbers(e, tableau.E) < 0 || read_numbers(p, tableau.P) < 0)
        return -1;
    if (c_extra && (read_numbers(e3, tableau.E3) < 0 || read_numbers(a_extra, tableau.A_extra) < 0 ||
                    read_numbers(c_extra, tableau.C_extra) < 0))
        return -1;
    const auto s = static_cast<size_t>(tableau.stages), columns = static_cast<size_t>(tableau.columns),
               rows = s + 1 + tableau.C_extra.size();
    const bool fits = tableau.stages > 0 && tableau.A.size() == s * s && tableau.B.size() == s &&
                      tableau.C.size() == s && tableau.E.size() == s + 1 && tableau.P.size() == rows * columns &&
                      (!c_extra || (tableau.E3.size() == s + 1 && tableau.A_extra.size() == rows * (rows - s - 1)));
    if (!fits) PyErr_SetString(PyExc_TypeError, "the coefficients of a Runge-Kutta method do not fit each other");
    return fits ? 0 : -1;
}

// --- making one

int read_problem(PyObject* args, Integration& made) {
    Problem& p = made.p;
    int method, dense;
    PyObject *y0, *rtol, *atol, *f, *jac, *events, *tableau, *blas, *t_eval;
    if (!PyArg_ParseTuple(args, "i(dd)OOOdddOOO!OOOp", &method, &p.t0, &p.t_bound, &y0, &rtol, &atol, &p.rtol_of_all,
                          &p.first_step, &p.max_step, &f, &jac, &PyTuple_Type, &events, &tableau, &blas, &t_eval,
                          &dense))
        return -1;
    made.method = static_cast<Method>(method);
    made.dense = dense;
    made.at_times = t_eval != Py_None;
    if (read_numbers(y0, p.y0) < 0 || read_numbers(rtol, p.rtol) < 0 || read_numbers(atol, p.atol) < 0 ||
        p.blas.read(blas) < 0 || (made.at_times && read_numbers(t_eval, made.t_eval) < 0))
        return -1;
    const size_t n = p.y0.size();
    if (n == 0 || n > 1u << 24 || p.rtol.size() != n || p.atol.size() != n) {
        PyErr_SetString(PyExc_TypeError, "the tolerances of an integration do not fit its state");
        return -1;
    }
    const bool implicit = made.method == Method::Radau || made.method == Method::BDF;
    if (implicit && p.find_loops() < 0) return -1;
    p.n = static_cast<int>(n);
    p.direction = p.t_bound < p.t0 ? -1 : 1;
    if (tableau != Py_None && read_tableau(tableau, made.tableau) < 0) return -1;
    if (p.f.read(f, n, n) < 0) return -1;
    if (PyBytes_Check(jac)) {
        if (read_numbers(jac, p.constant_jac) < 0) return -1;
        if (p.constant_jac.size() != n * n) {
            PyErr_SetString(PyExc_TypeError, "a Jacobian of an integration does not fit its state");
            return -1;
        }
    } else if (jac != Py_None && p.jac.read(jac, n, n * n) < 0) {
        return -1;
    }
    p.native = p.f.native() && (!p.jac || p.jac.native());
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(events); ++k) {
        PyObject* event;
        int direction;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(events, k), "Oi", &event, &direction)) return -1;
        if (p.events.emplace_back().read(event, n, 1) < 0) return -1;
        p.event_directions.push_back(direction);
        p.native = p.native && p.events.back().native();
    }
    return 0;
}

PyObject* integration_new(PyTypeObject* type, PyObject* args, PyObject*) {
    return guarded(
        [&]() -> PyObject* {
            auto made = std::make_unique<Integration>();
            if (read_problem(args, *made) < 0) return nullptr;
            PyObject* self = type->tp_alloc(type, 0);
            if (self) reinterpret_cast<IntegrationObject*>(self)->integration = made.release();
            return self;
        },
        static_cast<PyObject*>(nullptr));
}

void integration_dealloc(PyObject* self) {
    delete reinterpret_cast<IntegrationObject*>(self)->integration;
    PyTypeObject* const type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

// --- running it

void raise_plan_failure(const PlanFailed& failure) {
    if (PyErr_Occurred()) return;
    if (failure.status == PYOP_RAISED)
        pyop_raise(failure.plan);
    else if (failure.status == PYOP_NO_MEMORY)
        PyErr_NoMemory();
    else
        PyErr_SetString(errors.base, pyop_message(failure.plan));
}

// Does what throws on this thread, without the GIL if that can be; whether it has been done, else with the error set.
template <typename F>
bool run(PyObject* self, F&& what) {
    IntegrationObject& object = *reinterpret_cast<IntegrationObject*>(self);
    Problem& p = object.integration->p;
    if (object.busy) {
        PyErr_SetString(PyExc_RuntimeError, "the integration is being run by another call");
        return false;
    }
    object.busy = true;
    std::optional<PlanFailed> failed;
    const char* refused = nullptr;
    enum { fine, interrupted, no_memory } ended = fine;
    p.interrupts.begin();
    p.turn = std::chrono::steady_clock::now();
    {
        const DetachScope detached(p.native);
        Problem::drop_flags();  // of others
        try {
            what();
        } catch (const PlanFailed& failure) {
            failed = failure;
        } catch (const Interrupted&) {
            ended = interrupted;
        } catch (const Refused& refusal) {
            refused = refusal.message;
        } catch (const std::bad_alloc&) {
            ended = no_memory;
        }
    }
    object.busy = false;
    if (failed) return raise_plan_failure(*failed), false;
    if (ended == interrupted) return p.interrupts.raise(), false;
    if (refused) return PyErr_SetString(PyExc_ValueError, refused), false;
    if (ended == no_memory) return PyErr_NoMemory(), false;
    return true;
}

PyObject* advance(PyObject* self, PyObject*) {
    IntegrationObject& object = *reinterpret_cast<IntegrationObject*>(self);
    Outcome outcome = Outcome::running;
    const bool done = run(self, [&] {
        Integration& i = *object.integration;
        if (!object.begun) i.begin();
        object.begun = true;
        outcome = i.advance();
    });
    return done ? PyLong_FromLong(static_cast<long>(outcome)) : nullptr;
}

PyObject* go_on(PyObject* self, PyObject* t_end) {
    const double t = PyFloat_AsDouble(t_end);
    if (t == -1 && PyErr_Occurred()) return nullptr;
    if (!run(self, [&] { integration_of(self).go_on(t); })) return nullptr;
    Py_RETURN_NONE;
}

PyObject* segment(PyObject* self, PyObject*) {
    std::vector<double> numbers;
    if (!run(self, [&] { numbers = integration_of(self).last_segment(); })) return nullptr;
    return bytes_new(numbers);
}

PyObject* active(PyObject* self, PyObject*) {
    const std::vector<int>& found = integration_of(self).active;
    PyObject* made = PyTuple_New(static_cast<Py_ssize_t>(found.size()));
    for (size_t k = 0; made && k < found.size(); ++k) {
        PyObject* number = PyLong_FromLong(found[k]);
        if (!number)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, static_cast<Py_ssize_t>(k), number);
    }
    return made;
}

// As NumPy numbers them.
int fp_errors_of(int flags) {
    return (flags & FE_DIVBYZERO ? 1 : 0) | (flags & FE_OVERFLOW ? 2 : 0) | (flags & FE_UNDERFLOW ? 4 : 0) |
           (flags & FE_INVALID ? 8 : 0);
}

PyObject* found(PyObject* self, PyObject*) {
    const Integration& i = integration_of(self);
    const Problem& p = i.p;
    return Py_BuildValue("NNNNnLLLiiz", bytes_new(i.ts), bytes_new(i.ys), bytes_new(i.ti), bytes_new(i.segments),
                         static_cast<Py_ssize_t>(i.segment_numbers()), p.nfev, p.njev, p.nlu, fp_errors_of(p.fp_seen),
                         p.singular, i.message);
}

PyObject* is_native(PyObject* self, void*) { return PyBool_FromLong(integration_of(self).p.native); }

// _interpolate(blas, method, n, columns, segment, times): the state at these times.
PyObject* interpolated(PyObject*, PyObject* args) {
    return guarded(
        [&]() -> PyObject* {
            PyObject *capsules, *segment_bytes, *times;
            int method, n, columns;
            Blas blas;
            std::vector<double> numbers, ts;
            if (!PyArg_ParseTuple(args, "OiiiOO", &capsules, &method, &n, &columns, &segment_bytes, &times) ||
                blas.read(capsules) < 0 || read_numbers(segment_bytes, numbers) < 0 || read_numbers(times, ts) < 0)
                return nullptr;
            if (numbers.size() != segment_size(static_cast<Method>(method), n, columns)) {
                PyErr_SetString(PyExc_TypeError, "a segment of an integration has another size");
                return nullptr;
            }
            std::vector<double> result(static_cast<size_t>(n) * ts.size());
            if (!ts.empty())
                interpolate(blas, static_cast<Method>(method), numbers.data(), n, columns, ts.data(),
                            static_cast<int>(ts.size()), result.data());
            clear_all_fp_errors();
            return bytes_new(result);
        },
        static_cast<PyObject*>(nullptr));
}

PyMethodDef methods[] = {
    {"advance", advance, METH_NOARGS, "advance(): steps; 1 at the end, 2 for a failure, 3 where events are."},
    {"go_on", go_on, METH_O, "go_on(t): ends a step with events; the integration too, at a finite time t."},
    {"segment", segment, METH_NOARGS, "segment(): what interpolates in the last step."},
    {"active", active, METH_NOARGS, "active(): the numbers of the events of the last step."},
    {"found", found, METH_NOARGS, "found(): times, states, ends of segments, segments, numbers of one, counts."},
    {"interpolate", interpolated, METH_VARARGS | METH_STATIC, "interpolate(blas, method, n, columns, segment, times)."},
    {},
};

PyGetSetDef attributes[] = {
    {"native", is_native, nullptr, "Return whether all plans compute without Python.", nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("An initial value problem while it is solved. Private.")},
    {Py_tp_new, reinterpret_cast<void*>(integration_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(integration_dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, nullptr},
};

PyType_Spec spec = {"pyop._core._Integration", sizeof(IntegrationObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};

}  // namespace

int ode_init(PyObject* module) {
    const Ref type = Ref::steal(PyType_FromModuleAndSpec(module, &spec, nullptr));
    return type ? PyModule_AddObjectRef(module, "_Integration", type.get()) : -1;
}

}  // namespace pyop::ode
