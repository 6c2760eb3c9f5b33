// array/contract/contract.h: hold a function's declaration of its arrays in the form that a call checks (Contract).
//
// A Contract is an immutable Python object built from Signature.encode() (python/pyop/declare/signature.py, which
// documents the encoding). Ops, nodes and plans share it by reference; pointer equality means equality,
// because the Python side interns them.
#pragma once

#include <array>    // std::array
#include <cstdint>  // int8_t, ...
#include <string>   // std::string
#include <vector>   // std::vector

#include "array/numpy.h"
#include "runtime/ref.h"

namespace pyop {

enum class DimKind : int8_t { Fixed, Name, Any, Late, Expr, Variadic, Solve, Optional, Broadcast };

// One step of a size expression in postfix order.
struct ExprStep {
    enum Op : int8_t { Const, Var, Add, Sub, Mul, FloorDiv } op;
    npy_intp value;  // the constant, or the index of the name
};

struct DimSpec {
    DimKind kind;
    int32_t name = -1;         // Name, Late, Variadic, Solve, Optional, Broadcast: index of the name, -1 for none
    npy_intp value = 0;        // Fixed: the size; Solve: the coefficient
    npy_intp constant = 0;     // Solve: size = value * name + constant
    std::vector<ExprStep> expr;  // Expr
};

struct ArraySpec {
    Ref dtype;                // null: any, or a type variable
    int32_t typevar = -1;
    int32_t like = -1;        // dtype and shape of this input
    bool rank_known = false;
    bool plain = false;  // rank unknown, or nothing but fixed sizes, names and `_`; no type variable: the inline match
    bool any_length = false;  // a string dtype without a length
    bool output = false;  // every name in its expressions must be bound
    int16_t variadic = -1;  // position of `...` or `*name` in dims
    std::vector<DimSpec> dims;
    // A plain spec, compact: ndim (-1: any rank), and dims: >= 0 a size, -1 anything, -2 - k the name k.
    int plain_ndim = -1;
    std::vector<npy_intp> plain_dims;

    PyArray_Descr* descr() const { return reinterpret_cast<PyArray_Descr*>(dtype.get()); }
    int min_ndim() const { return static_cast<int>(dims.size()) - (variadic >= 0 ? 1 : 0); }
};

// What dtypes a type variable may be bound to: a kind of NumPy's ("floating[n]"), or any.
enum class TypeKind : int8_t {
    Any,
    Number,
    Integer,
    SignedInteger,
    UnsignedInteger,
    Inexact,
    Floating,
    ComplexFloating,
};

struct TypeVar {
    std::string name;  // "T", "floating"
    TypeKind kind;
};

// Whether a dtype is of a kind. Those of ml_dtypes are what their names say.
bool is_of_kind(PyArray_Descr* descr, TypeKind kind);

// How the declared outputs come back from the function.
enum class ResultForm : int8_t {
    Single,  // one value (a tuple of one is accepted)
    Tuple,  // a tuple (a list is accepted) of values
    Sequence,  // as the py_func family has it: a list or tuple at top level always means outputs
    Tree,  // nested containers, described by `tree`
};

enum class OutMode : int8_t { None, Optional, Required };

// What graph/infer.cpp has last worked out for the outputs, as numbers of specs in the table of one graph: code calls
// an op again and again with arrays of one kind.
struct LastInferred {
    static constexpr size_t kMost = 4;
    uint64_t graph;  // Graph::serial; 0: nothing yet
    uint32_t n_in, n_out;
    std::array<uint32_t, kMost> inputs, outputs;
};

struct Contract {
    static constexpr int kMaxNames = 32;
    static constexpr int kMaxTypeVars = 8;
    static constexpr int kMaxVariadics = 4;

    PyObject_HEAD
    bool inputs_declared;
    bool gufunc;  // leading dimensions of the inputs loop
    bool text_as_utf8;  // py_func family: strings travel as UTF-8 bytes in object arrays
    bool plain;  // all specs plain, one result, nothing unusual: the fast path
    bool has_input_exprs;
    bool any_device;  // arrays of other devices are handed to the function as they are
    NPY_CASTING casting;  // how inputs may be cast to their declared dtypes; NPY_NO_CASTING: not at all
    ResultForm form;
    OutMode out_mode;
    int32_t n_names, n_typevars, n_variadics;
    uint64_t mutates;  // bit k: argument k is written to
    std::vector<ArraySpec>* inputs;
    std::vector<ArraySpec>* outputs;
    std::vector<std::string>* names;
    std::vector<std::string>* variadics;
    std::vector<TypeVar>* typevars;
    PyObject* tree;  // TreeDef of the outputs, for ResultForm::Tree
    PyObject* tree_paths;  // list of str: where each leaf stands, for error texts
    PyObject* abstract;  // callable(tuple of (dtype, shape)) -> Contract for the results, or null
    PyObject* signature;  // the Python Signature it was made from
    PyObject* gradient;  // OpGradient: how derivatives pass through the function, or null; opaque here
    LastInferred last_inferred;

    Py_ssize_t n_in() const { return inputs_declared ? static_cast<Py_ssize_t>(inputs->size()) : -1; }
    Py_ssize_t n_out() const { return static_cast<Py_ssize_t>(outputs->size()); }
    bool mutates_input(Py_ssize_t k) const { return k < 64 && (mutates >> k & 1); }
};

extern PyTypeObject* contract_type;
int contract_init(PyObject* module);

inline bool is_contract(PyObject* o) { return Py_TYPE(o) == contract_type; }

}  // namespace pyop
