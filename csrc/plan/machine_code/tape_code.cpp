// plan/machine_code/tape_code.cpp: define the type TapeCode, and read the environment variable.
#include "plan/machine_code/tape_code.h"

#include <cstdlib>
#include <memory>
#include <string_view>

#include "runtime/errors.h"
#include "runtime/forced_exit.h"
#include "runtime/up_calls.h"
#include "runtime/without_gil.h"

namespace pyop {

namespace {

constexpr const char* kPolicies[] = {"off", "hot", "now"};
constexpr const char* kStates[] = {"cold", "waiting", "ready", "refused"};

PyTypeObject* tape_code_type = nullptr;
MachineCodePolicy policy_of_process = MachineCodePolicy::Hot;

struct TapeCodeObject {
    PyObject_HEAD
    TapeCode* code;
    PyObject* weakrefs;
};

void tape_code_dealloc(PyObject* self) {
    auto& object = *reinterpret_cast<TapeCodeObject*>(self);
    if (object.weakrefs) PyObject_ClearWeakRefs(self);
    delete std::exchange(object.code, nullptr);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* install_code(PyObject* self, PyObject* args) {
    unsigned long long address;
    PyObject* owner;
    if (!PyArg_ParseTuple(args, "KO:install", &address, &owner)) return nullptr;
    TapeCode& code = tape_code_of(self);
    const ObjectLock lock(self);
    if (code.state == TapeCode::Ready) {
        PyErr_SetString(PyExc_RuntimeError, "this tape has its machine code");
        return nullptr;
    }
    code.owner = Ref::borrow(owner);
    code.function = reinterpret_cast<TapeFunction*>(address);
    code.state = TapeCode::Ready;
    Py_RETURN_NONE;
}

PyObject* refuse_code(PyObject* self, PyObject* text) {
    const char* why = PyUnicode_AsUTF8(text);
    if (!why) return nullptr;
    TapeCode& code = tape_code_of(self);
    const ObjectLock lock(self);
    if (code.state != TapeCode::Ready) {
        code.why_not = why;
        code.state = TapeCode::Refused;
    }
    Py_RETURN_NONE;
}

PyObject* cool_code(PyObject* self, PyObject*) {
    TapeCode& code = tape_code_of(self);
    TapeCode::State waiting = TapeCode::Waiting;
    code.state.compare_exchange_strong(waiting, TapeCode::Cold);
    Py_RETURN_NONE;
}

PyObject* get_ir(PyObject* self, void*) { return PyUnicode_FromString(tape_code_of(self).ir.text.c_str()); }
PyObject* get_state(PyObject* self, void*) { return PyUnicode_FromString(kStates[tape_code_of(self).state]); }
PyObject* get_why(PyObject* self, void*) {
    const ObjectLock lock(self);
    return PyUnicode_FromString(tape_code_of(self).why_not.c_str());
}
PyObject* get_operations(PyObject* self, void*) { return PyLong_FromSize_t(tape_code_of(self).n_operations); }
PyObject* get_owner(PyObject* self, void*) {
    const Ref& owner = tape_code_of(self).owner;
    return Py_NewRef(owner ? owner.get() : Py_None);
}

PyMethodDef tape_code_methods[] = {
    {"install", install_code, METH_VARARGS,
     "install(address, owner): from now on this code runs; `owner` keeps its memory."},
    {"refuse", refuse_code, METH_O, "refuse(text): there will be no machine code, and why."},
    {"cool", cool_code, METH_NOARGS, "cool(): what was waiting is not made; it may be asked for again."},
    {},
};
PyGetSetDef tape_code_getset[] = {
    {"ir", get_ir, nullptr, "LLVM's textual IR of the function `tape`; empty if there is none.", nullptr},
    {"state", get_state, nullptr, "'cold', 'waiting', 'ready' or 'refused'.", nullptr},
    {"why_not", get_why, nullptr, "Return why it is refused; empty if it is not.", nullptr},
    {"operations", get_operations, nullptr, "Return how many operations the tape has.", nullptr},
    {"owner", get_owner, nullptr, "Return what keeps the code, or None.", nullptr},
    {},
};
PyMemberDef tape_code_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TapeCodeObject, weakrefs), READONLY, nullptr},
    {},
};
PyType_Slot tape_code_slots[] = {
    {Py_tp_doc, const_cast<char*>("The machine code of a loop body: what it is made of, and what became of it.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(tape_code_dealloc)},
    {Py_tp_methods, tape_code_methods},
    {Py_tp_getset, tape_code_getset},
    {Py_tp_members, tape_code_members},
    {0, nullptr},
};
PyType_Spec tape_code_spec = {"pyop._core.TapeCode", sizeof(TapeCodeObject), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, tape_code_slots};

PyObject* policy_name(PyObject*, PyObject*) {
    return PyUnicode_FromString(kPolicies[static_cast<size_t>(policy_of_process)]);
}

PyMethodDef tape_code_functions[] = {
    {"machine_code_policy", policy_name, METH_NOARGS,
     "machine_code_policy() -> 'off', 'hot' or 'now', by PYOP_MACHINE_CODE."},
    {},
};

}  // namespace

TapeCode& tape_code_of(PyObject* object) { return *reinterpret_cast<TapeCodeObject*>(object)->code; }

Ref tape_code_new(TapeIr ir, size_t n_operations) {
    auto code = std::make_unique<TapeCode>();
    code->ir = std::move(ir);
    code->n_operations = n_operations;
    if (code->ir.text.empty()) {
        code->state = TapeCode::Refused;
        code->why_not = code->ir.why_not;
    }
    Ref made = Ref::steal(tape_code_type->tp_alloc(tape_code_type, 0));
    if (made) reinterpret_cast<TapeCodeObject*>(made.get())->code = code.release();
    return made;
}

void want_machine_code(PyObject* object, bool now) {
    TapeCode& code = tape_code_of(object);
    TapeCode::State cold = TapeCode::Cold;
    if (!code.state.compare_exchange_strong(cold, TapeCode::Waiting)) return;  // another thread has asked
    const SavedError pending;
    const Ref done = Ref::steal(
        PyObject_CallFunctionObjArgs(up_calls.machine_code_wanted, object, now ? Py_True : Py_False, nullptr));
    if (done) return;
    code.why_not = "it could not be asked for";
    code.state = TapeCode::Refused;
    PyErr_Clear();
}

bool read_policy(const char* name, MachineCodePolicy& policy) {
    for (size_t k = 0; k < std::size(kPolicies); ++k) {
        if (std::string_view(name) != kPolicies[k]) continue;
        policy = static_cast<MachineCodePolicy>(k);
        return true;
    }
    return false;
}

MachineCodePolicy default_policy() { return policy_of_process; }

int tape_code_init(PyObject* module) {
    const char* given = std::getenv("PYOP_MACHINE_CODE");
    if (given && *given && !read_policy(given, policy_of_process)) {
        PyErr_Format(PyExc_ImportError, "PYOP_MACHINE_CODE is off, hot or now, not '%s'", given);
        return -1;
    }
    tape_code_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &tape_code_spec, nullptr));
    if (!tape_code_type || PyModule_AddType(module, tape_code_type) < 0) return -1;
    return PyModule_AddFunctions(module, tape_code_functions);
}

}  // namespace pyop
