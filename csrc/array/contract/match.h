// array/contract/match.h: test whether an array fits a spec, and bind the names of sizes and types on the way.
//
// match_plain() is the inline fast path for plain specs (fixed sizes, names, `_`): a pointer compare for the
// dtype and one compare a dimension. Everything else goes to match_general(). Neither sets an error: a
// mismatch is described afterwards (describe.h), on the cold path.
#pragma once

#include <vector>

#include "array/contract/contract.h"

namespace pyop {

// Not -1: a fill with bytes that are all alike becomes a call of memset, whose wide stores stall the reads that
// follow at once (docs/performance.md, B3).
inline constexpr npy_intp kUnbound = -3;
inline constexpr npy_intp kAbsent = -2;  // an optional gufunc dimension that no operand has

// What the names of sizes stand for in one call. Only the first n_names entries are initialised.
struct SizeBindings {
    npy_intp sizes[Contract::kMaxNames];

    explicit SizeBindings(const Contract& c) {
        for (int i = 0; i < c.n_names; ++i) sizes[i] = kUnbound;
    }
};

// The function that is called may give an argument another shape or dtype (`x.shape = ...`), which frees what the
// argument had: nothing that is compared after the call lies in an array of the caller's.
struct BoundVariadic {
    int ndim = -1;  // -1: unbound
    npy_intp dims[NPY_MAXDIMS];
};

// Dtype and shape of an input that an output is declared to be like.
struct BoundLike {
    int32_t input;
    Ref dtype;
    std::vector<npy_intp> dims;

    PyArray_Descr* descr() const { return reinterpret_cast<PyArray_Descr*>(dtype.get()); }
};

// What all names of one call stand for.
struct Bindings : SizeBindings {
    Ref types[Contract::kMaxTypeVars];
    BoundVariadic variadics[Contract::kMaxVariadics];
    std::vector<BoundLike> likes;

    TypeKind kinds[Contract::kMaxTypeVars] = {};  // what each type variable may be

    explicit Bindings(const Contract& c) : SizeBindings(c) {
        for (size_t k = 0; k < c.typevars->size(); ++k) kinds[k] = (*c.typevars)[k].kind;
    }
    explicit Bindings(const SizeBindings& bound) : SizeBindings(bound) {}

    PyArray_Descr* type(int32_t k) const { return reinterpret_cast<PyArray_Descr*>(types[k].get()); }
    const BoundLike* like(int32_t input) const {
        for (const BoundLike& bound : likes)
            if (bound.input == input) return &bound;
        return nullptr;
    }
};

// Keeps what outputs of `c` are declared to be like.
void bind_likes(const Contract& c, PyArrayObject* const* inputs, Bindings& b);

// The leading dimensions over which a gufunc-style function is called, broadcast together.
struct LoopShape {
    int ndim = 0;
    npy_intp dims[NPY_MAXDIMS];
};

bool match_general(const ArraySpec& spec, PyArrayObject* a, Bindings& b);

// Same dtype for the purpose of a declaration: equivalent, or a string of any length where none is given.
bool dtype_fits(const ArraySpec& spec, PyArray_Descr* descr);

// For a spec that is plain.
PYOP_INLINE bool match_plain(const ArraySpec& spec, PyArrayObject* a, SizeBindings& b) {
    if (spec.dtype && PyArray_DESCR(a) != spec.descr() && !dtype_fits(spec, PyArray_DESCR(a))) return false;
    const int ndim = spec.plain_ndim;
    if (PyArray_NDIM(a) != ndim) return ndim < 0;
    const npy_intp* dims = PyArray_DIMS(a);
    const npy_intp* want = spec.plain_dims.data();
    for (int d = 0; d < ndim; ++d) {
        const npy_intp w = want[d];
        if (w >= 0) {
            if (dims[d] != w) return false;
        } else if (w <= -2) {
            npy_intp& bound = b.sizes[-2 - w];
            if (bound == kUnbound)
                bound = dims[d];
            else if (bound != dims[d])
                return false;
        }
    }
    return true;
}

inline bool match(const ArraySpec& spec, PyArrayObject* a, Bindings& b) {
    return spec.plain ? match_plain(spec, a, b) : match_general(spec, a, b);
}

// Checks the input sizes that are expressions, once all names are bound. Returns the index of the first
// input that does not fit, or -1.
Py_ssize_t check_input_exprs(const Contract& c, PyArrayObject* const* arrays, const Bindings& b);

// Matches the core (trailing) dimensions of gufunc-style inputs and broadcasts the leading ones. Returns
// the index of the first input that does not fit, or -1.
Py_ssize_t match_gufunc(const Contract& c, PyArrayObject* const* arrays, Bindings& b, LoopShape& loop);

// The number of dimensions a gufunc-style spec has once optional ones are settled.
int core_ndim(const ArraySpec& spec, const Bindings& b);

// The value of a size expression, or kUnbound when a name in it is unbound (or the value is negative).
npy_intp eval_expr(const std::vector<ExprStep>& program, const Bindings& b);

// Works out the shape and dtype of an output that depends on the inputs alone. Returns ndim, or -1 if it
// is not determined before the call. `descr` is borrowed, null if open.
int resolve_output(const ArraySpec& spec, const Bindings& b, npy_intp* dims, PyArray_Descr** descr);

}  // namespace pyop
