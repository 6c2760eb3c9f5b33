// array/loop/error_policy.cpp: read np.errstate and the filters of warnings, in some 200 ns where both are as usual,
// and have errors raise.
#include "array/loop/error_policy.h"

#include "array/loop/quiet.h"
#include "runtime/attribute.h"
#include "runtime/items.h"
#include "runtime/lazy.h"
#include "runtime/ref.h"

namespace pyop {

namespace {

PyObject* usual_errstate(PyObject* variable) {
    static constinit Lazy usual;
    return usual.get([variable]() -> PyObject* {
        // What a fresh context has, whatever the caller has set in this one.
        Ref fresh = Ref::steal(PyContext_New());
        PyObject* value = nullptr;
        if (!fresh || PyContext_Enter(fresh.get()) < 0) return nullptr;
        const int got = PyContextVar_Get(variable, nullptr, &value);
        if (PyContext_Exit(fresh.get()) < 0) Py_CLEAR(value);
        if (got == 0 && !value && !PyErr_Occurred()) PyErr_SetNone(PyExc_LookupError);
        return value;
    });
}

PyObject* errstate_variable() {
    static constinit Lazy context;
    PyObject* variable = context.attribute("numpy._core.umath", "_extobj_contextvar");
    return variable && PyContextVar_CheckExact(variable) ? variable : nullptr;
}

// Whether np.errstate is as it is where nobody has used it: errors warn, and underflow is ignored.
bool errstate_is_usual() {
    PyObject* variable = errstate_variable();
    if (!variable) return false;
    PyObject *usual = usual_errstate(variable), *now = nullptr;
    if (!usual || PyContextVar_Get(variable, nullptr, &now) < 0) return false;
    Py_XDECREF(now);
    return now == usual;
}

bool is_text(PyObject* text, const char* wanted) {
    return text && PyUnicode_Check(text) && PyUnicode_CompareWithASCIIString(text, wanted) == 0;
}

enum class Errors { Ignored, Warned, Other };

Errors errors_now() {
    if (errstate_is_usual()) return Errors::Warned;
    PyErr_Clear();
    static constinit Lazy geterr;
    PyObject* function = geterr.attribute("numpy", "geterr");
    const Ref state = function ? Ref::steal(PyObject_CallNoArgs(function)) : Ref();
    if (!state || !PyDict_Check(state.get())) return Errors::Other;
    Errors found = Errors::Ignored;
    for (const char* name : {"divide", "over", "under", "invalid"}) {
        const Ref how = item_of_dict(state.get(), name);
        if (is_text(how.get(), "warn"))
            found = Errors::Warned;
        else if (!is_text(how.get(), "ignore"))
            return Errors::Other;
    }
    return found;
}

bool shows_or_ignores(PyObject* action) {
    for (const char* known : {"default", "ignore", "always", "module", "once"})
        if (is_text(action, known)) return true;
    return false;
}

// (action, message, category, module, line): whether it leaves a RuntimeWarning a warning.
bool is_harmless(PyObject* filter) {
    if (!PyTuple_CheckExact(filter) || PyTuple_GET_SIZE(filter) != 5) return false;
    PyObject* category = PyTuple_GET_ITEM(filter, 2);
    if (!PyType_CheckExact(category)) return false;
    if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(PyExc_RuntimeWarning),
                          reinterpret_cast<PyTypeObject*>(category)))
        return true;
    static constinit Lazy pattern;
    PyObject* regular = pattern.attribute("re", "Pattern");
    for (const int k : {1, 3}) {
        PyObject* test = PyTuple_GET_ITEM(filter, k);
        if (test != Py_None && !PyUnicode_CheckExact(test) &&
            (!regular || reinterpret_cast<PyObject*>(Py_TYPE(test)) != regular))
            return false;
    }
    return shows_or_ignores(PyTuple_GET_ITEM(filter, 0));
}

bool stderr_is_its_own() {
    static constinit Lazy sys_dict;
    PyObject* const names = sys_dict.attribute("sys", "__dict__");
    if (!names || !PyDict_CheckExact(names)) return false;
    const Ref now = item_of_dict(names, interned<"stderr">());
    if (!now || now.get() == Py_None) return true;
    static constinit Lazy wrapper;
    PyObject* text = wrapper.attribute("io", "TextIOWrapper");
    if (!text || reinterpret_cast<PyObject*>(Py_TYPE(now.get())) != text ||
        now.get() != item_of_dict(names, interned<"__stderr__">()).get())
        return false;
    const Ref closed = Ref::steal(PyObject_GetAttr(now.get(), interned<"closed">()));
    return closed.get() == Py_False;
}

bool warnings_cannot_raise() {
    static constinit Lazy module_dict;
    PyObject* const names = module_dict.attribute("warnings", "__dict__");
    if (!names || !PyDict_CheckExact(names)) return false;
    static constinit Lazy flags;
    PyObject* const flag = flags.attribute("sys", "flags");
    if (!flag) return false;
    // From 3.14 on filters may be those of a context.
    static constinit Lazy by_context;
    PyObject* const contexts = by_context.get([flag]() -> PyObject* {
        PyObject* found = PyObject_GetAttrString(flag, "context_aware_warnings");
        if (found) return found;
        PyErr_Clear();
        return Py_NewRef(Py_False);
    });
    if (!contexts || PyObject_IsTrue(contexts) != 0) return false;
    const auto same = [&](PyObject* one, PyObject* other) {
        const Ref x = one ? item_of_dict(names, one) : Ref(), y = other ? item_of_dict(names, other) : Ref();
        return x && x.get() == y.get();
    };
    if (!same(interned<"showwarning">(), interned<"_showwarning_orig">()) ||
        !same(interned<"formatwarning">(), interned<"_formatwarning_orig">()))
        return false;
    const Ref usual = item_of_dict(names, interned<"defaultaction">());
    const Ref filters = item_of_dict(names, interned<"filters">());
    if (!shows_or_ignores(usual.get()) || !filters || !PyList_CheckExact(filters.get())) return false;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(filters.get()); ++k) {
        const Ref filter = item_of(filters.get(), k);
        if (!filter || !is_harmless(filter.get())) return false;
    }
    return stderr_is_its_own();
}

// The usual state, but with errors that raise; it keeps the size of buffers.
PyObject* raising_errstate() {
    static constinit Lazy state;
    return state.get([]() -> PyObject* {
        static constinit Lazy make;
        PyObject* function = make.attribute("numpy._core.umath", "_make_extobj");
        if (!function) return nullptr;
        const Ref none = Ref::steal(PyTuple_New(0));
        const Ref how = Ref::steal(
            Py_BuildValue("{ssssssss}", "divide", "raise", "over", "raise", "invalid", "raise", "under", "ignore"));
        return none && how ? PyObject_Call(function, none.get(), how.get()) : nullptr;
    });
}

bool ignores_underflow() {
    static constinit Lazy geterr;
    PyObject* function = geterr.attribute("numpy", "geterr");
    const Ref state = function ? Ref::steal(PyObject_CallNoArgs(function)) : Ref();
    const Ref under = state ? item_of_dict(state.get(), "under") : Ref();
    if (!state) PyErr_Clear();
    return is_text(under.get(), "ignore");
}

Ref raising(bool underflow) {
    return Ref::steal(underflow ? Py_BuildValue("{ss}", "all", "raise")
                                : Py_BuildValue("{ssssss}", "divide", "raise", "over", "raise", "invalid", "raise"));
}

}  // namespace

bool fp_errors_cannot_raise() {
    const Errors now = errors_now();
    const bool safe = now == Errors::Ignored || (now == Errors::Warned && warnings_cannot_raise());
    if (PyErr_Occurred()) PyErr_Clear();
    return safe;
}

RaisingErrors::Entered::Entered(bool underflow) : QuietErrors(raising(underflow || !ignores_underflow())) {}

RaisingErrors::RaisingErrors(bool underflow) {
    PyObject* const usual = !underflow && errstate_is_usual() ? raising_errstate() : nullptr;
    if (usual) token_ = Ref::steal(PyContextVar_Set(errstate_variable(), usual));
    if (token_) return;
    PyErr_Clear();
    state_.emplace(underflow);
}

RaisingErrors::~RaisingErrors() {
    if (!token_) return;
    const SavedError saved;
    if (PyContextVar_Reset(errstate_variable(), token_.get()) < 0) PyErr_Clear();
}

}  // namespace pyop
