// ode/blas.h: hold the functions of BLAS and LAPACK that SciPy has, by pointer, and compute np.dot by them (Blas).
//
// What is summed in which order is BLAS's to choose. So that an integration has SciPy's own bits, it calls for each
// product what NumPy calls for that, with the same shapes and orders; a library that is loaded already is no code here.
//
// Any thread, with the GIL or without.
#pragma once

#include <complex>
#include <vector>

#include "runtime/python.h"

namespace pyop::ode {

using Complex = std::complex<double>;

struct Blas {
    using Gemv = void(const char*, const int*, const int*, const double*, const double*, const int*, const double*,
                      const int*, const double*, double*, const int*);
    using Gemm = void(const char*, const char*, const int*, const int*, const int*, const double*, const double*,
                      const int*, const double*, const int*, const double*, double*, const int*);
    using Dot = double(const int*, const double*, const int*, const double*, const int*);
    using ComplexGemv = void(const char*, const int*, const int*, const Complex*, const Complex*, const int*,
                             const Complex*, const int*, const Complex*, Complex*, const int*);
    using ComplexDot = Complex(const int*, const Complex*, const int*, const Complex*, const int*);
    using Getrf = void(const int*, const int*, double*, const int*, int*, int*);
    using Getrs = void(const char*, const int*, const int*, const double*, const int*, const int*, double*, const int*,
                       int*);
    using ComplexGetrf = void(const int*, const int*, Complex*, const int*, int*, int*);
    using ComplexGetrs = void(const char*, const int*, const int*, const Complex*, const int*, const int*, Complex*,
                              const int*, int*);

    Gemv* dgemv;
    Gemm* dgemm;
    Dot* ddot;
    ComplexGemv* zgemv;
    ComplexDot* zdotu;
    Getrf* dgetrf;
    Getrs* dgetrs;
    ComplexGetrf* zgetrf;
    ComplexGetrs* zgetrs;

    // From a tuple of capsules in this order. -1 with the error set.
    int read(PyObject* capsules);
};

// Numbers side by side: rows one behind the other, or columns (`by_columns`). A vector is one column.
struct Matrix {
    const double* data;
    int rows, columns;
    bool by_columns = false;
};

inline Matrix vector(const double* data, int n) { return {data, n, 1}; }

// result = a @ b, rows one behind the other; `result` is none of both.
void dot(const Blas& blas, const Matrix& a, const Matrix& b, double* result);

// sqrt(sum of squares), as np.linalg.norm.
double norm(const Blas& blas, const double* x, int n);

// C's pow, as NumPy's scalars have it: a compiler makes other operations of constant exponents.
double power(double x, double y);

}  // namespace pyop::ode
