// plan/tape/tape_ops.h: list the operations of a tape, for the enumeration, the interpreter and the table of kernels'
// operations.
#pragma once

// X(name, element) for the types of numbers.
#define PYOP_TAPE_INTEGERS(X, name) \
    X(name, I8) X(name, U8) X(name, I16) X(name, U16) X(name, I32) X(name, U32) X(name, I64) X(name, U64)
#define PYOP_TAPE_FLOATS(X, name) X(name, F32) X(name, F64)
#define PYOP_TAPE_NUMBERS(X, name) PYOP_TAPE_INTEGERS(X, name) PYOP_TAPE_FLOATS(X, name)

// a = b name c, in one type; those of the second list write a bool.
#define PYOP_TAPE_BINARY(X)           \
    PYOP_TAPE_NUMBERS(X, Add)         \
    PYOP_TAPE_NUMBERS(X, Subtract)    \
    PYOP_TAPE_NUMBERS(X, Multiply)    \
    PYOP_TAPE_NUMBERS(X, Minimum)     \
    PYOP_TAPE_NUMBERS(X, Maximum)     \
    PYOP_TAPE_FLOATS(X, Divide)       \
    PYOP_TAPE_INTEGERS(X, BitwiseAnd) \
    PYOP_TAPE_INTEGERS(X, BitwiseOr)  \
    PYOP_TAPE_INTEGERS(X, BitwiseXor) \
    PYOP_TAPE_INTEGERS(X, LeftShift)  \
    PYOP_TAPE_INTEGERS(X, RightShift)
#define PYOP_TAPE_COMPARISON(X)     \
    PYOP_TAPE_NUMBERS(X, Less)      \
    PYOP_TAPE_NUMBERS(X, LessEqual) \
    PYOP_TAPE_NUMBERS(X, Equal)     \
    PYOP_TAPE_NUMBERS(X, NotEqual)
#define PYOP_TAPE_UNARY(X)         \
    PYOP_TAPE_NUMBERS(X, Negative) \
    PYOP_TAPE_NUMBERS(X, Absolute) \
    PYOP_TAPE_NUMBERS(X, Square)   \
    PYOP_TAPE_FLOATS(X, Sqrt)

// Of bools, a byte of which is true if it is not zero.
#define PYOP_TAPE_LOGIC(X) X(LogicalAnd, Bool) X(LogicalOr, Bool) X(LogicalXor, Bool)

// Integers that wrap around and raise the flag of overflow, as NumPy's scalars do.
#define PYOP_TAPE_WATCHED(X)               \
    PYOP_TAPE_INTEGERS(X, AddWatched)      \
    PYOP_TAPE_INTEGERS(X, SubtractWatched) \
    PYOP_TAPE_INTEGERS(X, MultiplyWatched)

// Integers that leave the tape where NumPy or Python would not give the plain answer: overflow, division by zero.
#define PYOP_TAPE_CHECKED(X)               \
    PYOP_TAPE_INTEGERS(X, AddChecked)      \
    PYOP_TAPE_INTEGERS(X, SubtractChecked) \
    PYOP_TAPE_INTEGERS(X, MultiplyChecked) \
    PYOP_TAPE_INTEGERS(X, FloorDivide)     \
    PYOP_TAPE_INTEGERS(X, Remainder)       \
    X(DivideChecked, F64)

// a = b as another type.
#define PYOP_TAPE_CASTS(X) \
    X(I64, F64)            \
    X(I32, F64) X(F32, F64) X(F64, F32) X(Bool, F64) X(Bool, I64) X(I32, I64) X(U8, I64) X(U8, F64) X(I64, I32)

// X(name), each of its own kind; interpret.cpp says what they do.
#define PYOP_TAPE_OTHERS(X) \
    X(Not)                  \
    X(Select)               \
    X(Move)                 \
    X(Move16)               \
    X(Load1)                \
    X(Load2)                \
    X(Load4)                \
    X(Load8)                \
    X(Load8At2)             \
    X(Store8)               \
    X(Store8At2)            \
    X(Element)              \
    X(Fetch1)               \
    X(Fetch2)               \
    X(Fetch4)               \
    X(Fetch8)               \
    X(Fetch16)              \
    X(Put1)                 \
    X(Put2)                 \
    X(Put4)                 \
    X(Put8)                 \
    X(Put16)                \
    X(Address)              \
    X(Advance)              \
    X(CallKernel)           \
    X(CallLoop)             \
    X(CallKernelOnBlock)    \
    X(CallOnBlock) X(Compute) X(Jump) X(JumpIfFalse) X(Trips) X(Repeat) X(Next) X(LeaveUnless) X(Stop)
