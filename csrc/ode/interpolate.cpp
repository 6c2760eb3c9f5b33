// ode/interpolate.cpp: interpolate the state within a step.
#include <algorithm>

#include "ode/solver.h"

namespace pyop::ode {

namespace {

constexpr int kDop853Rows = 7, kBdfRows = 6;

// Powers x, x², … of each time, a row for each: x by the caller.
void cumulate(double* p, int rows, int m) {
    for (int k = 1; k < rows; ++k)
        for (int j = 0; j < m; ++j) p[k * m + j] *= p[(k - 1) * m + j];
}

void by_hermite(const double* segment, int n, const double* ts, int m, double* result) {
    const double* const y_old = segment + kHead;
    const double* const F = y_old + n;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < m; ++j) {
            const double x = (ts[j] - segment[0]) / segment[2];
            double y = 0;
            for (int k = 0; k < kDop853Rows; ++k) {
                y += F[(kDop853Rows - 1 - k) * n + i];
                y *= k % 2 == 0 ? x : 1 - x;
            }
            result[i * m + j] = y + y_old[i];
        }
}

}  // namespace

size_t segment_size(Method method, int n, int columns) {
    const int rows = method == Method::DOP853  ? kDop853Rows
                     : method == Method::BDF   ? kBdfRows
                     : method == Method::Radau ? 3
                                               : columns;
    return kHead + static_cast<size_t>(n) * static_cast<size_t>(1 + rows);
}

void interpolate(const Blas& blas, Method method, const double* segment, int n, int columns, const double* ts, int m,
                 double* result) {
    if (method == Method::DOP853) return by_hermite(segment, n, ts, m, result);
    const double t_old = segment[0], t = segment[1], h = segment[2];
    const double* const y_old = segment + kHead;
    const double* const Q = y_old + n;
    const int k = method == Method::BDF ? static_cast<int>(segment[3]) : method == Method::Radau ? 3 : columns;
    std::vector<double> p(static_cast<size_t>(k) * static_cast<size_t>(m));
    for (int i = 0; i < k; ++i)
        for (int j = 0; j < m; ++j)
            p[static_cast<size_t>(i * m + j)] =
                method == Method::BDF ? (ts[j] - (t - h * i)) / (h * (1 + i)) : (ts[j] - t_old) / h;
    cumulate(p.data(), k, m);
    if (method == Method::BDF) {  // differences of the state, which is the first of them
        dot(blas, {Q + n, n, k, true}, {p.data(), k, m}, result);
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < m; ++j) result[i * m + j] += Q[i];
        return;
    }
    dot(blas, {Q, n, k}, {p.data(), k, m}, result);
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < m; ++j) {
            double& y = result[i * m + j];
            y = (method == Method::RK ? h * y : y) + y_old[i];
        }
}

}  // namespace pyop::ode
