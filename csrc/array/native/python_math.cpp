// array/native/python_math.cpp: compute vector_norm of CPython's Modules/mathmodule.c, operation by operation. Nothing
// here may be contracted (CMakeLists.txt), since the errors of products are computed.
#include "array/native/python_math.h"

#include <cfloat>
#include <cmath>
#include <limits>

namespace pyop {

namespace {

struct Pair {
    double high, low;
};

Pair halves(double x) {
    const double t = x * 134217729.0;  // 2**27 + 1
    const double high = t - (t - x);
    return {high, x - high};
}

// The sum of squares, with what rounding has lost beside it. It begins at 1, so that each term is smaller.
struct SplitSum {
    double sum = 1.0, first = 0.0, second = 0.0, third = 0.0;

    static double add(double& sum, double x) {
        const double before = sum;
        sum += x;
        return (before - sum) + x;
    }

    void add_square(double x) {
        const Pair h = halves(x);
        first += add(sum, h.high * h.high);
        second += add(sum, 2.0 * h.high * h.low);
        third += h.low * h.low;
    }

    void subtract_square(double x) {
        const Pair h = halves(x);
        first += add(sum, -h.high * h.high);
        second += add(sum, -2.0 * h.high * h.low);
        third += add(sum, -h.low * h.low);
    }

    double total() const { return sum - 1.0 + (first + second + third); }
};

struct FusedSum {
    double sum = 1.0, first = 0.0, second = 0.0;

    void add_product(double x, double y) {
        const double high = x * y;
        const double low = std::fma(x, y, -high);
        const double before = sum;
        sum += high;
        first += low;
        second += (before - sum) + high;
    }

    void add_square(double x) { add_product(x, x); }
    void subtract_square(double x) { add_product(-x, x); }
    double total() const { return sum - 1.0 + (first + second); }
};

// Of numbers so small that the scale would overflow.
double tiny(const double* x, int count, double largest) {
    double sum = 1.0, lost = 0.0;
    for (int k = 0; k < count; ++k) {
        const double part = x[k] / largest;
        lost += SplitSum::add(sum, part * part);
    }
    return largest * std::sqrt(sum - 1.0 + lost);
}

template <class Sum>
double norm(double* x, int count) {
    double largest = 0.0;
    bool is_nan = false;
    for (int k = 0; k < count; ++k) {
        x[k] = std::fabs(x[k]);
        is_nan = is_nan || std::isnan(x[k]);
        if (x[k] > largest) largest = x[k];
    }
    if (std::isinf(largest)) return largest;
    if (is_nan) return std::numeric_limits<double>::quiet_NaN();
    if (largest == 0.0) return largest;
    int exponent;
    std::frexp(largest, &exponent);
    Sum sum;
    if (exponent < -1023) {
        if constexpr (requires { sum.third; }) {
            return tiny(x, count, largest);
        } else {
            for (int k = 0; k < count; ++k) x[k] /= DBL_MIN;
            return DBL_MIN * norm<Sum>(x, count);
        }
    }
    const double scale = std::ldexp(1.0, -exponent);
    for (int k = 0; k < count; ++k) sum.add_square(x[k] * scale);
    const double root = std::sqrt(sum.total());
    sum.subtract_square(root);
    return (root + sum.total() / (2.0 * root)) / scale;
}

}  // namespace

double hypot2_split(double x, double y) {
    double all[] = {x, y};
    return norm<SplitSum>(all, 2);
}

double hypot3_split(double x, double y, double z) {
    double all[] = {x, y, z};
    return norm<SplitSum>(all, 3);
}

double hypot2_fused(double x, double y) {
    double all[] = {x, y};
    return norm<FusedSum>(all, 2);
}

double hypot3_fused(double x, double y, double z) {
    double all[] = {x, y, z};
    return norm<FusedSum>(all, 3);
}

}  // namespace pyop
