// ode/implicit.cpp: compute Jacobians by differences whose width is adapted from one to the next, as the MATLAB ODE
// suite has them (L. F. Shampine, M. W. Reichelt, SIAM J. Sci. Comput. 18, 1997), and LAPACK.
#include "ode/implicit.h"

#include <algorithm>
#include <cmath>

namespace pyop::ode {

void check_finite(const double* x, size_t n) {
    if (!std::all_of(x, x + n, [](double v) { return std::isfinite(v); }))
        throw Refused{"array must not contain infs or NaNs"};
}

namespace {

constexpr int kOneSide = 1;

const double* numbers(const double* x) { return x; }
const double* numbers(const Complex* x) { return reinterpret_cast<const double*>(x); }

void getrf(const Blas& b, const int* n, double* a, int* pivots, int* info) { b.dgetrf(n, n, a, n, pivots, info); }
void getrf(const Blas& b, const int* n, Complex* a, int* pivots, int* info) { b.zgetrf(n, n, a, n, pivots, info); }
void getrs(const Blas& b, const int* n, const double* a, const int* pivots, double* x, int* info) {
    b.dgetrs("N", n, &kOneSide, a, n, pivots, x, n, info);
}
void getrs(const Blas& b, const int* n, const Complex* a, const int* pivots, Complex* x, int* info) {
    b.zgetrs("N", n, &kOneSide, a, n, pivots, x, n, info);
}

}  // namespace

template <typename T>
void Factors<T>::factorise(Problem& p) {
    ++p.nlu;
    p.note_flags();
    check_finite(numbers(a.data()), a.size() * sizeof(T) / sizeof(double));
    int info;
    getrf(p.blas, &p.n, a.data(), pivots.data(), &info);
    p.singular |= info > 0;
    known = true;
    Problem::drop_flags();
}

template <typename T>
void Factors<T>::solve(const Problem& p, T* b) const {
    const size_t count = pivots.size() * sizeof(T) / sizeof(double);
    check_finite(numbers(b), count);
    int info;
    getrs(p.blas, &p.n, a.data(), pivots.data(), b, &info);
    Problem::drop_flags();
}

template struct Factors<double>;
template struct Factors<Complex>;

Implicit::Implicit(Problem& problem)
    : Solver(problem),
      J(problem.constant_jac),
      newton_tolerance(larger(10 * kEps / p.rtol_of_all, smaller(0.03, power(p.rtol_of_all, 0.5)))) {
    J.resize(size * size);
}

void Implicit::jacobian(double time, const double* state, const double* f) {
    ++p.njev;
    p.note_flags();
    if (p.jac)
        p.jac(time, state, J.data());
    else
        differences(time, state, f);
}

// The columns `which` of f(y + h e_i) - f(y), and of each the largest by size and what it is a difference of.
void Implicit::columns(double time, const double* state, const std::vector<size_t>& which, const std::vector<double>& h,
                       const double* f, double* diff, std::vector<double>& largest, std::vector<double>& scale) {
    std::vector<double> moved(size), value(size);
    for (const size_t j : which) {
        for (size_t i = 0; i < size; ++i) moved[i] = state[i] + (i == j ? h[j] : 0);
        p.evaluate(time, moved.data(), value.data());
        size_t at = 0;
        for (size_t i = 0; i < size; ++i) {
            diff[i * size + j] = value[i] - f[i];
            const double now = std::fabs(diff[i * size + j]), most = std::fabs(diff[at * size + j]);
            if (most == most && (now > most || now != now)) at = i;
        }
        largest[j] = std::fabs(diff[at * size + j]);
        scale[j] = np_maximum(std::fabs(f[at]), std::fabs(value[at]));
    }
}

void Implicit::differences(double time, const double* state, const double* f) {
    if (factor_.empty()) factor_.assign(size, power(kEps, 0.5));
    std::vector<double> h(size), y_scale(size), largest(size), scale(size), wider(size);
    std::vector<size_t> all(size), small;
    const auto width = [&](size_t i, double factor) { return (state[i] + factor * y_scale[i]) - state[i]; };
    for (size_t i = 0; i < size; ++i) {
        all[i] = i;
        y_scale[i] = (f[i] >= 0 ? 1.0 : -1.0) * np_maximum(p.atol[i], std::fabs(state[i]));
        h[i] = width(i, factor_[i]);
        // SciPy would look for a width for ever.
        if (y_scale[i] == 0)
            throw Refused{
                "there is no scale for differences where a state and its absolute tolerance are 0: give atol above 0, "
                "or "
                "jac=True, by which the Jacobian is derived"};
        while (h[i] == 0) {
            factor_[i] *= 10;
            h[i] = width(i, factor_[i]);
        }
    }
    columns(time, state, all, h, f, J.data(), largest, scale);
    for (size_t j = 0; j < size; ++j)
        if (largest[j] < power(kEps, 0.875) * scale[j]) small.push_back(j);
    if (!small.empty()) {
        std::vector<double> again(size * size), largest_again(size), scale_again(size), h_again(h);
        for (const size_t j : small) {
            wider[j] = 10 * factor_[j];
            h_again[j] = width(j, wider[j]);
        }
        columns(time, state, small, h_again, f, again.data(), largest_again, scale_again);
        for (const size_t j : small) {
            if (!(largest[j] * scale_again[j] < largest_again[j] * scale[j])) continue;
            factor_[j] = wider[j];
            h[j] = h_again[j];
            for (size_t i = 0; i < size; ++i) J[i * size + j] = again[i * size + j];
            scale[j] = scale_again[j];
            largest[j] = largest_again[j];
        }
    }
    for (size_t j = 0; j < size; ++j) {
        for (size_t i = 0; i < size; ++i) J[i * size + j] /= h[j];
        if (largest[j] < power(kEps, 0.75) * scale[j]) factor_[j] *= 10;
        if (largest[j] > power(kEps, 0.25) * scale[j]) factor_[j] *= 0.1;
        factor_[j] = np_maximum(factor_[j], 1e3 * kEps);
    }
}

}  // namespace pyop::ode
