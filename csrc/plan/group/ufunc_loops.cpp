// plan/group/ufunc_loops.cpp: keep the table of loops for the life of the process: asking NumPy takes microseconds.
#include "plan/group/ufunc_loops.h"

#include <algorithm>
#include <iterator>

#include "array/loop/exact_loop.h"
#include "plan/steps/call_arguments.h"
#include "runtime/lazy.h"
#include "runtime/memo.h"

#define NO_IMPORT_UFUNC  // only the struct is used
#include <numpy/ufuncobject.h>

namespace pyop {

namespace {

struct LoopKeyHash {
    size_t operator()(const LoopKey& k) const {
        size_t h = reinterpret_cast<size_t>(k.ufunc);
        for (PyObject* kind : k.kinds) h = (h ^ reinterpret_cast<size_t>(kind)) * 0x9E3779B97F4A7C15ull;
        return h;
    }
};

// Whether it is the ufunc that NumPy has under this name. One that was is kept, so that its address stays its own.
bool is_numpys(PyObject* ufunc, const std::string& name) {
    static constinit Memo<PyObject*, Ref> known;
    if (known.find(ufunc)) return true;
    Ref own = Ref::steal(find_below_numpy(name.c_str()));
    if (own.get() != ufunc) return false;
    known.keep(ufunc, std::move(own));
    return true;
}

bool is_clip(PyObject* ufunc) {
    static constinit Lazy clip;
    return ufunc == clip.get([] { return find_below_numpy("_core.umath.clip"); });
}

// The ufuncs of this name that users make are not NumPy's, so it is the object that counts.
void find_own_kernel(PyObject* ufunc, KnownLoop& known) {
    ElementwiseCall& call = known.call;
    const Element e = element_of(call.dtypes[0]);
    if (!is_numpys(ufunc, call.name) && !is_clip(ufunc)) return;
    call.safe = PyTypeNum_ISFLOAT(call.dtypes[0]->type_num) || PyTypeNum_ISCOMPLEX(call.dtypes[0]->type_num);
    for (size_t k = 1; k < call.n_inputs; ++k)
        if (call.dtypes[k] != call.dtypes[0]) return;
    if (e == Element::None) return;
    known.own = true;
    if (e == Element::F64) call.kernel = find_exact_kernel(call.name, *call.loop);
    if (call.kernel) return;
    const Operation operation = operation_of(call.name);
    call.kernel = find_kernel(operation, e);
    if (!call.kernel) return;
    call.operation = operation;
    call.element = e;
}

}  // namespace

const KnownLoop* find_loop(const LoopKey& key, size_t n) {
    static constinit Memo<LoopKey, KnownLoop, LoopKeyHash> calls;
    if (const KnownLoop* known = calls.find(key)) return known;
    KnownLoop found{Ref::borrow(key.ufunc), {}};
    auto loop = std::make_shared<StridedLoop>();
    const int status = loop->resolve(key.ufunc, key.kinds.data(), static_cast<int>(n));
    if (status < 0) return nullptr;
    if (status == 1) {
        ElementwiseCall& call = found.call;
        call.n_inputs = n;
        for (int k = 0; k < loop->n_inputs() + loop->n_outputs(); ++k) call.dtypes.push_back(loop->dtype(k));
        call.loop = std::move(loop);
        const char* name = reinterpret_cast<PyUFuncObject*>(key.ufunc)->name;
        call.name = name ? name : "ufunc";
        find_own_kernel(key.ufunc, found);
    }
    return &calls.keep(key, std::move(found));
}

bool is_builtin_dtype(PyArray_Descr* d) {
    if (!PyTypeNum_ISNUMBER(d->type_num) && d->type_num != NPY_BOOL) return false;
    PyArray_Descr* builtin = PyArray_DescrFromType(d->type_num);
    Py_DECREF(builtin);
    return d == builtin;
}

bool is_python_number(PyObject* o) { return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyComplex_CheckExact(o); }

PyArray_Descr* scalar_dtype(PyObject* o) {
    if (!PyArray_IsScalar(o, Number) && !PyArray_IsScalar(o, Bool)) return nullptr;
    PyArray_Descr* d = PyArray_DescrFromScalar(o);
    if (!d) PyErr_Clear();
    Py_XDECREF(d);
    return d && is_builtin_dtype(d) ? d : nullptr;
}

bool same_for_scalars(std::string_view ufunc, PyArray_Descr* computed_in) {
    enum : unsigned { Integer = 1, Half = 2, Real = 4, Complex = 8, Bool = 16 };
    struct Row {
        std::string_view ufunc;
        unsigned kinds;
    };
    static constexpr Row kRows[] = {
        {"add", Half | Real | Complex},
        {"subtract", Half | Real | Complex},
        {"multiply", Half | Real},  // an integer warns where it overflows
        {"divide", Integer | Half | Real | Complex},
        {"floor_divide", Real},
        {"remainder", Real},
        {"power", Half | Complex},
        {"negative", Half | Real | Complex},
        {"positive", Integer | Half | Real | Complex},
        {"absolute", Half | Real},
        {"less", Bool | Integer | Half | Real},
        {"less_equal", Bool | Integer | Half | Real},
        {"equal", Bool | Integer | Half | Real | Complex},
        {"not_equal", Bool | Integer | Half | Real | Complex},
        {"greater", Bool | Integer | Half | Real},
        {"greater_equal", Bool | Integer | Half | Real},
        {"bitwise_and", Bool | Integer},
        {"bitwise_or", Bool | Integer},
        {"bitwise_xor", Bool | Integer},
        {"invert", Bool | Integer},
        {"left_shift", Integer},
        {"right_shift", Integer},
    };
    const int type = computed_in->type_num;
    const unsigned kind = type == NPY_HALF            ? unsigned{Half}
                          : type == NPY_BOOL          ? unsigned{Bool}
                          : PyTypeNum_ISFLOAT(type)   ? unsigned{Real}
                          : PyTypeNum_ISCOMPLEX(type) ? unsigned{Complex}
                                                      : unsigned{Integer};
    return std::any_of(std::begin(kRows), std::end(kRows),
                       [&](const Row& row) { return row.ufunc == ufunc && (row.kinds & kind); });
}

}  // namespace pyop
