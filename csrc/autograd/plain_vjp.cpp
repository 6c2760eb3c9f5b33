// autograd/plain_vjp.cpp: compute pyop.vjp of one op at arrays without a record: what that would hold is known before
// the call. Its arguments are remembered by prints of their numbers, as those of every transformation are.
//
// What is not that plain (other cotangents, another transformation or run forward around, anomaly detection) is left to
// the record, which Python makes of the same call without calling the op again.
#include <vector>

#include "autograd/engine.h"
#include "autograd/fingerprint.h"
#include "autograd/numbers.h"
#include "autograd/state.h"
#include "autograd/tensor_parts.h"
#include "autograd/transformations.h"
#include "autograd/turn.h"
#include "runtime/errors.h"
#include "runtime/refusal.h"
#include "runtime/stack_array.h"
#include "runtime/stack_limit.h"

namespace pyop {

namespace {

PyTypeObject* plain_vjp_type = nullptr;

struct PlainVjp {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject* primals;  // tuple of arrays
    PyObject* value;  // array
    PyObject* backward;  // callable(cotangent, *primals)
    std::vector<uint64_t>* prints;  // of the primals
};

PlainVjp* as_plain(PyObject* o) { return reinterpret_cast<PlainVjp*>(o); }

bool is_plain_mode() { return !autograd_state.transformations && !autograd_state.anomaly && !any_forward_run(); }

bool is_number_array(PyObject* o) {
    return is_exact_array(o) && is_differentiable(PyArray_DESCR(as_array(o))) && PyArray_ISNOTSWAPPED(as_array(o));
}

int check_primals(const PlainVjp& made) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(made.primals); ++k) {
        PyArrayObject* primal = as_array(PyTuple_GET_ITEM(made.primals, k));
        if (fingerprint(primal, Reading::Wholly) != (*made.prints)[static_cast<size_t>(k)])
            return written_argument_error(primal);
    }
    return 0;
}

// What a rule has returned for a primal, as the caller's own array of its dtype and shape. Empty with the error set.
Ref own_gradient(Ref part, PyArrayObject* primal, const PlainVjp& made, Py_ssize_t index) {
    if (!is_exact_array(part.get())) part = to_array(part.get());
    if (!part) return {};
    PyArrayObject* array = as_array(part.get());
    if (PyArray_DESCR(array) != PyArray_DESCR(primal) || !PyArray_SAMESHAPE(array, primal)) {
        Ref gradient = Ref::steal(PyObject_GetAttrString(made.backward, "gradient"));
        Ref name = gradient ? Ref::steal(PyObject_GetAttrString(gradient.get(), "name")) : Ref();
        ArrayInfo* info = name ? array_info_new(primal) : nullptr;
        if (!info) return {};
        part = fit_gradient(std::move(part), *info, false, true, "backward", name.get(), index);
        unshare(info);
        if (!part) return {};
    }
    // Memory that somebody else refers to (the seed, what the rule keeps) is not given away.
    if (is_ours_alone(part.get())) return part;
    return Ref::steal(PyArray_NewCopy(as_array(part.get()), NPY_KEEPORDER));
}

PyObject* pull(PlainVjp& made, PyObject* ct) {
    PyArrayObject* value = as_array(made.value);
    if (!is_plain_mode() || !is_exact_array(ct) || PyArray_DESCR(as_array(ct)) != PyArray_DESCR(value) ||
        !PyArray_SAMESHAPE(as_array(ct), value))
        Py_RETURN_NONE;
    if (stack_is_low()) return no_stack_left(" in a backward pass");
    const auto n = static_cast<size_t>(PyTuple_GET_SIZE(made.primals));
    StackArray<PyObject*, 8> args(n + 2);
    args[1] = ct;
    for (size_t k = 0; k < n; ++k) args[k + 2] = PyTuple_GET_ITEM(made.primals, static_cast<Py_ssize_t>(k));
    Ref found;
    {
        const Recording off(false);
        found = Ref::steal(outside_new(made.backward, args.data() + 1, (n + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET));
    }
    if (!found) return nullptr;
    StackRefs<8> parts(n);
    if (n == 1) {
        parts[0] = found.release();
    } else {
        for (size_t k = 0; k < n; ++k) parts[k] = Py_NewRef(PyTuple_GET_ITEM(found.get(), static_cast<Py_ssize_t>(k)));
        found = Ref();
    }
    for (size_t k = 0; k < n; ++k) {
        PyObject* part = parts[k];
        // The record says what is wrong with it.
        if (!is_exact_array(part) && !is_tensor(part) && !PyArray_Check(part) && !PyArray_CheckScalar(part))
            Py_RETURN_NONE;
    }
    Ref all = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(n)));
    for (size_t k = 0; all && k < n; ++k) {
        Ref one = own_gradient(Ref::steal(std::exchange(parts[k], nullptr)),
                               as_array(PyTuple_GET_ITEM(made.primals, static_cast<Py_ssize_t>(k))), made,
                               static_cast<Py_ssize_t>(k));
        if (!one) return nullptr;
        PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(k), one.release());
    }
    return all && check_primals(made) == 0 ? all.release() : nullptr;
}

PyObject* pull_py(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    if (PyVectorcall_NARGS(nargsf) != 1 || kwnames) {
        PyErr_SetString(PyExc_TypeError, "a pullback takes one cotangent");
        return nullptr;
    }
    return guarded([&] { return pull(*as_plain(self), args[0]); }, static_cast<PyObject*>(nullptr));
}

// The op called on arrays, as call_recorded() calls a function on Tensors. Empty with the error set.
Ref called(PyObject* op, PyObject* primals) {
    const Recording off(false);
    const Within one_more(autograd_state.transformations, autograd_state.transformations + 1);
    const struct Anywhere {
        Anywhere() { ++transformations_anywhere; }
        ~Anywhere() { --transformations_anywhere; }
    } anywhere;
    return Ref::steal(call_watched(op, primals, nullptr, true));
}

PyObject* plain_vjp(PyObject* op, PyObject* primals, PyObject* backward) {
    const Py_ssize_t n = PyTuple_GET_SIZE(primals);
    if (n == 0 || !is_plain_mode()) Py_RETURN_NONE;
    for (Py_ssize_t k = 0; k < n; ++k)
        if (!is_number_array(PyTuple_GET_ITEM(primals, k))) Py_RETURN_NONE;
    auto prints = std::make_unique<std::vector<uint64_t>>();
    for (Py_ssize_t k = 0; k < n; ++k)
        prints->push_back(fingerprint(as_array(PyTuple_GET_ITEM(primals, k)), Reading::Wholly));
    Ref value = called(op, primals);
    if (!value) return nullptr;
    // What shows memory of others may show that of an argument.
    if (!is_number_array(value.get()) || PyArray_BASE(as_array(value.get())) || !uniquely_owned(value.get()))
        return PyTuple_Pack(2, value.get(), Py_None);
    Ref made = Ref::steal(plain_vjp_type->tp_alloc(plain_vjp_type, 0));
    if (!made) return nullptr;
    PlainVjp& plain = *as_plain(made.get());
    plain.vectorcall = in_turn<pull_py>;
    plain.primals = Py_NewRef(primals);
    plain.value = value.new_ref();
    plain.backward = Py_NewRef(backward);
    plain.prints = prints.release();
    return PyTuple_Pack(2, value.get(), made.get());
}

PyObject* plain_vjp_py(PyObject*, PyObject* const* args, Py_ssize_t n) {
    if (n != 3 || !PyTuple_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "plain_vjp(op, primals, backward)");
        return nullptr;
    }
    return guarded([&] { return plain_vjp(args[0], args[1], args[2]); }, static_cast<PyObject*>(nullptr));
}

PyObject* check_py(PyObject* self, PyObject*) {
    return check_primals(*as_plain(self)) < 0 ? nullptr : Py_NewRef(Py_None);
}

int plain_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_plain(self)->primals);
    Py_VISIT(as_plain(self)->value);
    Py_VISIT(as_plain(self)->backward);
    return 0;
}

void plain_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    PlainVjp& made = *as_plain(self);
    for (PyObject** o : {&made.primals, &made.value, &made.backward}) Py_CLEAR(*o);
    delete made.prints;
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMethodDef vjp_methods[] = {
    {"check", in_turn<check_py>, METH_NOARGS, "check(): fails if an argument was written into since the call."},
    {},
};

PyMemberDef vjp_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PlainVjp, vectorcall), READONLY, nullptr},
    {},
};

PyType_Slot vjp_slots[] = {
    {Py_tp_doc, const_cast<char*>("The pullback of one op at arrays: cotangents of its result, an array, to a tuple of "
                                  "those of its arguments; None where that takes a record.")},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_traverse, reinterpret_cast<void*>(plain_traverse)},
    {Py_tp_dealloc, reinterpret_cast<void*>(in_turn<plain_dealloc>)},
    {Py_tp_methods, vjp_methods},
    {Py_tp_members, vjp_members},
    {0, nullptr},
};

PyType_Spec vjp_spec = {"pyop._core.PlainVjp", sizeof(PlainVjp), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                            Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        vjp_slots};

PyMethodDef vjp_functions[] = {
    {"plain_vjp", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(in_turn<plain_vjp_py>)), METH_FASTCALL,
     "plain_vjp(op, primals, backward): (value, PlainVjp) of an op called on a tuple of arrays; (value, None) where "
     "its "
     "value is not an array of its own; None, and nothing is called, where something else is among the arguments or "
     "around."},
    {},
};

}  // namespace

int plain_vjp_init(PyObject* module) {
    plain_vjp_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &vjp_spec, nullptr));
    if (!plain_vjp_type || PyModule_AddType(module, plain_vjp_type) < 0) return -1;
    return PyModule_AddFunctions(module, vjp_functions);
}

}  // namespace pyop
