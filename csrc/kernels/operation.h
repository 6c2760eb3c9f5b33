// kernels/operation.h: list what a kernel may be asked for. All that the sources of kernels themselves include: they
// are many, and compiled for several processors, so that a header of the standard library here is parsed forty times.
#pragma once

#include <cstddef>  // std::ptrdiff_t, std::size_t
#include <cstdint>  // uint8_t, int32_t

namespace pyop {

enum class Element : uint8_t { Bool, I8, U8, I16, U16, I32, U32, I64, U64, F32, F64, C64, C128, None };

constexpr int kElements = static_cast<int>(Element::None);

constexpr std::size_t size_of(Element e) {
    constexpr uint8_t kSizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 0};
    return kSizes[static_cast<int>(e)];
}

// Operations take their operands in one element type; see result_of for what they return.
enum class Operation : uint8_t {
    None,
    // arithmetic
    Add,
    Subtract,
    Multiply,
    Divide,
    Minimum,
    Maximum,
    Negative,
    Positive,
    Absolute,
    Sign,
    Square,
    Sqrt,
    Reciprocal,
    Floor,
    Ceil,
    Trunc,
    Rint,
    Copysign,
    // answers: these write bool
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    LogicalAnd,
    LogicalOr,
    LogicalXor,
    LogicalNot,
    IsNan,
    IsInf,
    IsFinite,
    SignBit,
    // bits
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    Invert,
    LeftShift,
    RightShift,
    // reads (bool, x, y)
    Where,
};

constexpr int kOperations = static_cast<int>(Operation::Where) + 1;

// Whether a kernel leaves the floating-point flags alone, whatever the numbers are: answers, bits and choices, and what
// is done with integers and bools but for divisions. (A signalling NaN, which no computation makes, raises one.)
constexpr bool leaves_flags(Operation op, Element operands) {
    if (op == Operation::None || op == Operation::Divide || op == Operation::Reciprocal) return false;
    return op >= Operation::Less || operands <= Element::U64;
}

int n_inputs(Operation op);

// What an operation writes: bool for the answers, else the type of its operands.
Element result_of(Operation op, Element operands);

// data: the inputs, then the output; each contiguous, aligned for its element, of n >= 0 elements. The output may be
// the very pointer of an input whose elements are at least as large; otherwise it overlaps nothing.
using Kernel = void (*)(char* const* data, std::ptrdiff_t n);

// x @ y of two matrices: `to` has the rows side by side and overlaps neither; steps are in bytes. From two to so many
// rows and columns.
constexpr std::ptrdiff_t kMostInProduct = 6;
struct Product {
    const char* x;
    std::ptrdiff_t x_row, x_column;
    const char* y;
    std::ptrdiff_t y_row, y_column;
    char* to;
    std::ptrdiff_t rows, inner;
};
using ProductKernel = bool (*)(const Product& product);

}  // namespace pyop
