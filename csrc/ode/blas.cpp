// ode/blas.cpp: choose among the functions of BLAS by shapes, as np.dot does.
#include "ode/blas.h"

#include <algorithm>
#include <cmath>

namespace pyop::ode {

int Blas::read(PyObject* capsules) {
    void* found[9];
    if (!PyTuple_Check(capsules) || PyTuple_GET_SIZE(capsules) != 9) {
        PyErr_SetString(PyExc_TypeError, "the functions of BLAS and LAPACK are a tuple of 9 capsules");
        return -1;
    }
    for (Py_ssize_t k = 0; k < 9; ++k) {
        PyObject* const capsule = PyTuple_GET_ITEM(capsules, k);  // who made it has looked at its signature
        const char* const name = PyCapsule_GetName(capsule);
        found[k] = name ? PyCapsule_GetPointer(capsule, name) : nullptr;
        if (!found[k]) return -1;
    }
    dgemv = reinterpret_cast<Gemv*>(found[0]);
    dgemm = reinterpret_cast<Gemm*>(found[1]);
    ddot = reinterpret_cast<Dot*>(found[2]);
    zgemv = reinterpret_cast<ComplexGemv*>(found[3]);
    zdotu = reinterpret_cast<ComplexDot*>(found[4]);
    dgetrf = reinterpret_cast<Getrf*>(found[5]);
    dgetrs = reinterpret_cast<Getrs*>(found[6]);
    zgetrf = reinterpret_cast<ComplexGetrf*>(found[7]);
    zgetrs = reinterpret_cast<ComplexGetrs*>(found[8]);
    return 0;
}

namespace {

enum class Shape { scalar, column, row, matrix };

Shape shape_of(const Matrix& a) {
    if (a.rows > 1) return a.columns == 1 ? Shape::column : Shape::matrix;
    return a.columns == 1 ? Shape::scalar : Shape::row;
}

constexpr double kOne = 1, kZero = 0;
constexpr int kStep = 1;

// matrix @ x, or x @ matrix.
void gemv(const Blas& blas, const Matrix& a, bool from_left, const double* x, double* y) {
    const int m = a.by_columns ? a.rows : a.columns, n = a.by_columns ? a.columns : a.rows;
    blas.dgemv(a.by_columns != from_left ? "N" : "T", &m, &n, &kOne, a.data, &m, x, &kStep, &kZero, y, &kStep);
}

}  // namespace

void dot(const Blas& blas, const Matrix& a, const Matrix& b, double* result) {
    const Shape left = shape_of(a), right = shape_of(b);
    if (left == Shape::scalar || right == Shape::scalar) {
        const double factor = left == Shape::scalar ? a.data[0] : b.data[0];
        const Matrix& other = left == Shape::scalar ? b : a;
        for (int i = 0; i < other.rows * other.columns; ++i) result[i] = factor * other.data[i];
    } else if (right == Shape::column && left != Shape::matrix) {
        result[0] = blas.ddot(&a.columns, a.data, &kStep, b.data, &kStep);
    } else if (left == Shape::matrix && right != Shape::matrix) {
        gemv(blas, a, false, b.data, result);
    } else if (left != Shape::matrix && right == Shape::matrix) {
        gemv(blas, b, true, a.data, result);
    } else {
        // Where there is one row or column both orders are true, and NumPy takes the second.
        const auto turned = [](const Matrix& x) { return x.by_columns || x.rows == 1 || x.columns == 1; };
        const int lda = turned(a) ? a.rows : a.columns, ldb = turned(b) ? b.rows : b.columns;
        blas.dgemm(turned(b) ? "T" : "N", turned(a) ? "T" : "N", &b.columns, &a.rows, &b.rows, &kOne, b.data, &ldb,
                   a.data, &lda, &kZero, result, &b.columns);
    }
}

double norm(const Blas& blas, const double* x, int n) {
    return std::sqrt(n == 1 ? x[0] * x[0] : blas.ddot(&n, x, &kStep, x, &kStep));
}

#if defined(__GNUC__) && !defined(__clang__)
__attribute__((noipa))
#else
__attribute__((noinline, optnone))
#endif
double power(double x, double y) {
    return std::pow(x, y);
}

}  // namespace pyop::ode
