// plan/tape/bound_array.cpp: ask np.errstate.
#include "plan/tape/bound_array.h"

#include "array/loop/fp_flags.h"
#include "runtime/items.h"

namespace pyop {

bool errstate_ignores(int flags) {
    Ref numpy = Ref::steal(PyImport_ImportModule("numpy"));
    Ref state = numpy ? Ref::steal(PyObject_CallMethod(numpy.get(), "geterr", nullptr)) : Ref();
    bool all = state && PyDict_Check(state.get());
    const auto ignored = [&](int flag, const char* name) {
        if (!(flags & flag) || !all) return;
        const Ref how = item_of_dict(state.get(), name);
        all = how && PyUnicode_Check(how.get()) && PyUnicode_CompareWithASCIIString(how.get(), "ignore") == 0;
    };
    ignored(FE_DIVBYZERO, "divide");
    ignored(FE_OVERFLOW, "over");
    ignored(FE_UNDERFLOW, "under");
    ignored(FE_INVALID, "invalid");
    if (PyErr_Occurred()) PyErr_Clear();
    return all;
}

}  // namespace pyop
