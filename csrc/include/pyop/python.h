/* pyop/python.h: from Python objects to what <pyop/entry.h> is about, for extension modules. C99 or C++, with Python.h,
   which this includes first; within the limited API. Nothing to link or import.

       const pyop_plan* plan = pyop_plan_of(object, "float64[], float64[3] -> float64[]");
       if (!plan) return NULL;                                     // the exception says what is wrong
       Py_BEGIN_ALLOW_THREADS
       failed = pyop_call(plan, in, out);
       Py_END_ALLOW_THREADS
       if (failed) return NULL;                                    // the exception that the plan raised

   Lifetime. pyop_plan_of() borrows: the pyop_plan is good as long as the Plan, or the capsule, that it was made of.
   Keep that one: a reference in the struct or object that has the pointer. */
#ifndef PYOP_PYTHON_H
#define PYOP_PYTHON_H

#include <Python.h>

#include <pyop/entry.h>
#include <pyop/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "float64[3,4]" behind `text`, which is taken; a new reference, or null with the error set. */
static inline PyObject* pyop_append_array_(PyObject* text, const char* between, const pyop_array* array) {
    PyObject* longer = text ? PyUnicode_FromFormat("%U%s%s[", text, between, array->dtype) : NULL;
    int k;
    Py_XDECREF(text);
    for (k = 0; longer && k < array->ndim; ++k) {
        text = longer;
        longer = PyUnicode_FromFormat("%U%s%lld", text, k ? "," : "", (long long)array->shape[k]);
        Py_DECREF(text);
    }
    text = longer;
    longer = text ? PyUnicode_FromFormat("%U]", text) : NULL;
    Py_XDECREF(text);
    return longer;
}

/* What a plan takes and gives, as text: "float64[], float64[3] -> float64[]". New reference, or null with the error
   set. */
static inline PyObject* pyop_signature(const pyop_plan* plan) {
    const size_t n_in = pyop_n_inputs(plan), n_out = pyop_n_outputs(plan);
    PyObject* text = PyUnicode_FromString("");
    size_t k;
    for (k = 0; k < n_in; ++k) text = pyop_append_array_(text, k ? ", " : "", pyop_input(plan, k));
    for (k = 0; k < n_out; ++k)
        text = pyop_append_array_(text, k ? ", " : (n_in ? " -> " : "-> "), pyop_output(plan, k));
    return text;
}

/* Whether two signatures are the same but for spaces. */
static inline int pyop_same_signature_(const char* one, const char* other) {
    for (;;) {
        while (*one == ' ') ++one;
        while (*other == ' ') ++other;
        if (*one != *other) return 0;
        if (!*one) return 1;
        ++one;
        ++other;
    }
}

/* The pyop_plan of a pyop.Plan, or of the `capsule` of one. Borrowed from `object`. Null with the error set if it is
   neither, if the pyop at hand is older than this header, or if the plan takes or gives other arrays than `signature`
   says: C finds only memory behind its pointers, so name here what your code is written for. dtypes by their full
   names, sizes as numbers, as pyop_signature() writes them; null if the caller looks itself. The GIL must be held. */
static inline const pyop_plan* pyop_plan_of(PyObject* object, const char* signature) {
    PyObject *capsule, *text, *bytes;
    const pyop_plan* plan;
    int same;
    if (PyCapsule_CheckExact(object)) {
        capsule = object;
        Py_INCREF(capsule);
    } else {
        capsule = PyObject_GetAttrString(object, "capsule");
        if (!capsule && !PyErr_ExceptionMatches(PyExc_AttributeError)) return NULL;
        /* What is made on demand would be gone with the capsule: a Plan is what its capsules keep. */
        if (capsule &&
            (!PyCapsule_IsValid(capsule, PYOP_PLAN_CAPSULE) || PyCapsule_GetContext(capsule) != (void*)object)) {
            Py_DECREF(capsule);
            capsule = NULL;
        }
    }
    if (!capsule || !PyCapsule_IsValid(capsule, PYOP_PLAN_CAPSULE)) {
        Py_XDECREF(capsule);
        PyErr_Clear();
        PyErr_Format(
            PyExc_TypeError,
            "expected a pyop.Plan, or the capsule of one, not %.200R\n  of a graph it is graph.compile(), of a "
            "compiled function f.plan_for(*arguments)",
            object);
        return NULL;
    }
    plan = (const pyop_plan*)PyCapsule_GetPointer(capsule, PYOP_PLAN_CAPSULE);
    Py_DECREF(capsule);
    if (plan->table->version < PYOP_ENTRY_VERSION || plan->table->size < sizeof(pyop_table)) {
        PyErr_Format(PyExc_ImportError,
                     "this extension was built with the headers of pyop %d.%d.%d, and the pyop that is imported is "
                     "older: version %u of its table of functions, where %d is needed\n  install pyop %d.%d.%d or "
                     "newer, or build the extension with the pyop at hand",
                     PYOP_VERSION_MAJOR, PYOP_VERSION_MINOR, PYOP_VERSION_PATCH, (unsigned)plan->table->version,
                     PYOP_ENTRY_VERSION, PYOP_VERSION_MAJOR, PYOP_VERSION_MINOR, PYOP_VERSION_PATCH);
        return NULL;
    }
    if (!signature) return plan;
    text = pyop_signature(plan);
    bytes = text ? PyUnicode_AsUTF8String(text) : NULL;
    same = bytes && pyop_same_signature_(PyBytes_AsString(bytes), signature);
    if (bytes && !same) PyErr_Format(PyExc_TypeError, "expected a plan of %s, and got one of %U", signature, text);
    Py_XDECREF(bytes);
    Py_XDECREF(text);
    return same ? plan : NULL;
}

/* As pyop_plan_call(), for who speaks in Python's exceptions: 0, or -1 with the exception set that the plan raised, as
   it was. With the GIL or without; a thread that Python does not know must have a thread state for the exception to
   stay in (PyGILState_Ensure), as Cython's prange sees to. When Python has ended, -1 is all there is: threads that go
   on then call pyop_plan_call(). */
static inline int pyop_call(const pyop_plan* plan, const void* const* in, void* const* out) {
    const int status = pyop_plan_call(plan, in, out);
    PyGILState_STATE before;
    if (status == PYOP_OK) return 0;
    if (status == PYOP_SHUT_DOWN && !Py_IsInitialized()) return -1; /* there is nothing left to set it in */
    before = PyGILState_Ensure();
    if (!PyErr_Occurred()) {
        if (status == PYOP_NO_MEMORY)
            PyErr_NoMemory();
        else
            pyop_raise(plan);
    }
    PyGILState_Release(before);
    return -1;
}

#ifdef __cplusplus
}
#endif

#endif /* PYOP_PYTHON_H */
