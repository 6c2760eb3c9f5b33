// kernels/loops.h: define the loops of all kernels, and choose by element type. Compiled once a level (level.h).
//
// A function of elements is a struct with a static template `of`; the compiler turns its loop into vectors. That is
// exact: these sources are compiled without contraction (no fused multiply-add), with trapping semantics (nothing is
// computed that the source does not compute, so no flag is raised that should not be), and the rest of a block that
// does not fill a vector is done with narrower ones, never with padding.
#pragma once

#include <type_traits>  // std::conditional_t, std::is_integral_v

#include "kernels/operation.h"

#ifndef PYOP_KERNEL_LEVEL
#define PYOP_KERNEL_LEVEL baseline
#endif

// The output may be an input, element for element, which does not hinder vectors.
#if defined(__clang__)
#define PYOP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define PYOP_INDEPENDENT _Pragma("GCC ivdep")
#else
#define PYOP_INDEPENDENT
#endif

// Several vectors a step, where the loop has so little to do that its own counting would show.
#if defined(__GNUC__) && !defined(__clang__)
#define PYOP_UNROLLED _Pragma("GCC unroll 4")
#else
#define PYOP_UNROLLED
#endif

namespace pyop::PYOP_KERNEL_LEVEL {

// Not bool: a byte of a bool array may hold more than 0 and 1, which C++ does not allow.
using Byte = uint8_t;

template <class T>
const T* in(char* const* data, int i) {
    return reinterpret_cast<const T*>(data[i]);
}
template <class T>
T* out(char* const* data, int i) {
    return reinterpret_cast<T*>(data[i]);
}

template <class F, class T, class R = T>
void unary(char* const* data, std::ptrdiff_t n) {
    const T* x = in<T>(data, 0);
    R* to = out<R>(data, 1);
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) to[i] = F::of(x[i]);
}

template <class F, class T, class R = T>
void binary(char* const* data, std::ptrdiff_t n) {
    const T* x = in<T>(data, 0);
    const T* y = in<T>(data, 1);
    R* to = out<R>(data, 2);
    PYOP_UNROLLED
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) to[i] = F::of(x[i], y[i]);
}

// A kernel for twice as many elements: complex numbers as their parts.
template <Kernel kernel>
void parts(char* const* data, std::ptrdiff_t n) {
    kernel(data, 2 * n);
}

// Arithmetic on integers wraps around; narrow ones are promoted to int, which would not.
template <class T>
using Wrapping = std::conditional_t<std::is_integral_v<T> && (sizeof(T) < sizeof(unsigned)), unsigned, T>;

template <class F, class T>
concept Unary = requires(T x) { F::of(x); };
template <class F, class T>
concept Binary = requires(T x) { F::of(x, x); };

template <class F, class T, class R = T>
constexpr Kernel elementwise() {
    if constexpr (Binary<F, T>)
        return &binary<F, T, R>;
    else if constexpr (Unary<F, T>)
        return &unary<F, T, R>;
    else
        return nullptr;
}

template <class F>
Kernel for_floats(Element e) {
    switch (e) {
        case Element::F32:
            return elementwise<F, float>();
        case Element::F64:
            return elementwise<F, double>();
        default:
            return nullptr;
    }
}

// Integers whose sign matters.
template <class F>
Kernel for_integers(Element e) {
    switch (e) {
        case Element::I8:
            return elementwise<F, int8_t>();
        case Element::U8:
            return elementwise<F, uint8_t>();
        case Element::I16:
            return elementwise<F, int16_t>();
        case Element::U16:
            return elementwise<F, uint16_t>();
        case Element::I32:
            return elementwise<F, int32_t>();
        case Element::U32:
            return elementwise<F, uint32_t>();
        case Element::I64:
            return elementwise<F, int64_t>();
        case Element::U64:
            return elementwise<F, uint64_t>();
        default:
            return nullptr;
    }
}

// Integers as bits.
template <class F>
Kernel for_bits(Element e) {
    switch (e) {
        case Element::I8:
        case Element::U8:
            return elementwise<F, uint8_t>();
        case Element::I16:
        case Element::U16:
            return elementwise<F, uint16_t>();
        case Element::I32:
        case Element::U32:
            return elementwise<F, uint32_t>();
        case Element::I64:
        case Element::U64:
            return elementwise<F, uint64_t>();
        default:
            return nullptr;
    }
}

template <class F>
Kernel for_complex_parts(Element e) {
    switch (e) {
        case Element::C64:
            return &parts<elementwise<F, float>()>;
        case Element::C128:
            return &parts<elementwise<F, double>()>;
        default:
            return nullptr;
    }
}

inline Kernel either(Kernel first, Kernel second) { return first ? first : second; }

// One per source.
Kernel find_arithmetic(Operation op, Element e);
Kernel find_rounding(Operation op, Element e);
Kernel find_extremum(Operation op, Element e);
Kernel find_comparison(Operation op, Element e);
Kernel find_compared_with_number(Operation op, bool number_first, Element e);
Kernel find_computed_with_number(Operation op, bool number_first, Element e);
Kernel find_bits(Operation op, Element e);
Kernel find_select(Operation op, Element e);
Kernel find_fused(Operation outer, Operation left, Operation right, Element e);
Kernel find_fused_tail(Operation tail, bool inner_first, Operation outer, Operation left, Operation right, Element e);
Kernel find_cast(Element from, Element to);
ProductKernel find_product(Element e, std::ptrdiff_t columns);
void gather(char* to, const char* from, std::ptrdiff_t stride, std::ptrdiff_t n, std::size_t itemsize);
void scatter(char* to, std::ptrdiff_t stride, const char* from, std::ptrdiff_t n, std::size_t itemsize);

}  // namespace pyop::PYOP_KERNEL_LEVEL
