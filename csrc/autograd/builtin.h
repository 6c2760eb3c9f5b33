// autograd/builtin.h: record and differentiate the commonest operations without Python.
//
// The table in builtin_rules.cpp has for each operation the derivative by each operand, and which of operands and
// result it reads; only those are saved. The formulas are those of python/pyop/gradients, and like them serve twice: on
// arrays, and while the backward pass is itself recorded on Tensors, where every step is recorded again.
//
// Only real numbers: what has to do with complex ones, with forward mode, or with anything but Tensors, arrays and
// numbers as operands goes the general way (recording.py).
#pragma once

#include "autograd/grad_node.h"
#include "autograd/numbers.h"

namespace pyop {

enum class Builtin : uint8_t {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Matmul,
    Negative,
    Absolute,
    Square,
    Reciprocal,
    Sqrt,
    Exp,
    Expm1,
    Log,
    Log1p,
    Sin,
    Cos,
    Tan,
    Arctan,
    Sinh,
    Cosh,
    Tanh,
    Sign,  // no derivative: only for that of Absolute
    Sum,  // from here on no ufuncs
    Mean,
    Reshape,
    Transpose,
    Getitem,
    None
};
constexpr int kBuiltinUfuncs = static_cast<int>(Builtin::Sum);
constexpr int kBuiltins = static_cast<int>(Builtin::None);

int builtin_init(PyObject* numpy);

// Which operation a ufunc is, or a function (np.sum, np.mean, np.reshape, np.transpose); None if none of these.
Builtin builtin_of_ufunc(PyObject* ufunc);
Builtin builtin_of_function(PyObject* function);

// The operation on `a` and `b` (null if it takes one operand), one of them a Tensor: 1 with the result, a Tensor; 0 if
// it has to go the general way; -1 with the error set. `scalars`: by an operator between scalars.
int builtin_call(Builtin which, PyObject* a, PyObject* b, PyObject*& result, bool scalars = false);

// The same where the numbers of the result are known: what an operator in place has made.
int builtin_record(Builtin which, PyObject* a, PyObject* b, const Ref& numbers, PyObject*& result);

// The operator a ** b, for a Python number b: NumPy's operator has ways of its own for some, which change with its
// version.
int builtin_power(PyObject* a, PyObject* b, PyObject*& result);

// Sum or Mean of a Tensor; `axis` None or an integer.
int builtin_reduce(Builtin which, PyObject* a, PyObject* axis, bool keepdims, PyObject*& result);

// Views of a Tensor: indices of integers, slices, None and `...`; another shape (in C order); the transpose.
int builtin_getitem(PyObject* a, PyObject* key, PyObject*& result);
int builtin_reshape(PyObject* a, PyObject* shape, PyObject*& result);
int builtin_transpose(PyObject* a, PyObject*& result);

// --- builtin.cpp, for the files that do one of these

struct BuiltinOperand {
    PyObject* given = nullptr;
    TensorObject* tensor = nullptr;
    bool recorded = false;  // a gradient is to go to it
};
// Whether `o` may be an operand; a Tensor must not have to do with forward mode.
bool builtin_operand(PyObject* o, TensorObject*& t);
// A result as a Tensor, with its node if a gradient goes anywhere; `constant` (or null) is kept for backward as `b`.
int builtin_finish(Builtin which, BuiltinOperand* operands, int n, Ref value, PyObject* constant, PyObject*& result);

// As function_backward, for a node of one of these operations.
int builtin_backward(GradNode* node, PyObject** arrived, PyObject** gradients, bool tensors, bool keep);

// --- builtin_rules.cpp

// A number in a derivative: an array, a Tensor or a Python number; empty if an error is set.
class Term {
  public:
    Term() = default;
    explicit Term(Ref r) : ref_(std::move(r)) {}
    explicit Term(double number) : ref_(Ref::steal(PyFloat_FromDouble(number))) {}
    PyObject* get() const { return ref_.get(); }
    Ref take() { return std::move(ref_); }

  private:
    Ref ref_;
};

// What a derivative may read.
class Recorded {
  public:
    explicit Recorded(GradNode* node) : node_(node) {}
    Term a() const { return read(0); }
    Term b() const { return read(1); }
    Term ans() const { return read(2); }
    GradNode* node() const { return node_; }

  private:
    Term read(int item) const;
    GradNode* node_;
};

struct BuiltinRule {
    enum : uint8_t { A = 1, B = 2, Ans = 4 };
    struct Derivative {
        uint8_t reads;
        Term (*by)(const Recorded& call, Term gradient);  // None for zero
    };
    const char* numpy;  // the name there
    const char* name;  // that nodes go by
    Derivative derivatives[2];
};
// Whether a reduction has to remember its axis: with axes kept, and where there is only one, the shapes tell it.
PYOP_INLINE bool needs_axis(const ArrayInfo& in, const ArrayInfo& out) { return out.ndim > 0 && out.ndim != in.ndim; }

extern const BuiltinRule builtin_rules[kBuiltins];
extern Ufunc* const builtin_ufuncs;  // kBuiltinUfuncs of them

}  // namespace pyop
