// array/loop/small_product.cpp: try the kernel, once for each layout.
#include "array/loop/small_product.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "array/loop/fp_flags.h"
#include "runtime/memo.h"

namespace pyop {

namespace {

constexpr int kTrials = 48;
constexpr npy_intp kLongestStep = 1 << 12;  // bytes

// Ordinary numbers of all sizes, and among them what arithmetic treats in ways of its own.
template <class T>
void fill(std::vector<T>& x, unsigned seed) {
    using Limits = std::numeric_limits<T>;
    constexpr T kSpecial[] = {T{0},
                              -T{0},
                              Limits::infinity(),
                              -Limits::infinity(),
                              Limits::quiet_NaN(),
                              Limits::max(),
                              Limits::lowest(),
                              Limits::denorm_min(),
                              Limits::min(),
                              T{1}};
    std::minstd_rand random(seed + 1);
    const unsigned among = seed % 3 == 2 ? 2 + seed % 7 : 0;  // one in so many is special
    const int spread = seed % 4 == 3 ? Limits::max_exponent / 2 - 2 : 4;
    for (T& item : x) {
        const T part = static_cast<T>(random()) / static_cast<T>(random.max()) - T{0.5};
        item = std::ldexp(part, static_cast<int>(random() % static_cast<unsigned>(2 * spread)) - spread);
        if (among && random() % among == 0) item = kSpecial[random() % std::size(kSpecial)];
    }
}

template <class T>
bool gives_the_same(const StridedLoop& loop, ProductKernel kernel, const npy_intp* sizes, const npy_intp* strides) {
    const npy_intp rows = sizes[0], inner = sizes[1], columns = sizes[2];
    const auto extent = [&](npy_intp n, npy_intp step, npy_intp m, npy_intp other) {
        return static_cast<size_t>(((n - 1) * step + (m - 1) * other) / static_cast<npy_intp>(sizeof(T)) + 1);
    };
    std::vector<T> x(extent(rows, strides[0], inner, strides[1])), y(extent(inner, strides[2], columns, strides[3]));
    std::vector<T> expected(static_cast<size_t>(rows * columns)), made(expected.size());
    const npy_intp once[] = {1, rows, inner, columns};
    npy_intp steps[9] = {};
    std::copy_n(strides, 6, steps + 3);
    char* data[] = {reinterpret_cast<char*>(x.data()), reinterpret_cast<char*>(y.data()), nullptr};
    for (unsigned seed = 0; seed < kTrials; ++seed) {
        fill(x, 2 * seed);
        fill(y, 2 * seed + 1);
        clear_all_fp_errors();
        data[2] = reinterpret_cast<char*>(made.data());
        if (!multiply_small(kernel, sizes, strides, data)) continue;
        const int raised = all_fp_errors();
        clear_all_fp_errors();
        char* moving[] = {data[0], data[1], reinterpret_cast<char*>(expected.data())};  // the loop may advance them
        if (loop.call_with_core(moving, once, steps) < 0 || all_fp_errors() != raised) return false;
        if (std::memcmp(made.data(), expected.data(), made.size() * sizeof(T)) != 0) return false;
    }
    return true;
}

using ProductLayout = std::array<npy_intp, 8>;  // the type, three sizes, four strides
struct ProductLayoutHash {
    size_t operator()(const ProductLayout& layout) const {
        size_t h = 0;
        for (const npy_intp n : layout) h = (h ^ static_cast<size_t>(n)) * 0x9E3779B97F4A7C15ull;
        return h;
    }
};

}  // namespace

ProductKernel find_small_product(const StridedLoop& loop, const npy_intp* sizes, const npy_intp* strides) {
    const int type = loop.dtype(0)->type_num;
    if ((type != NPY_DOUBLE && type != NPY_FLOAT) || loop.dtype(1)->type_num != type || loop.dtype(2)->type_num != type)
        return nullptr;
    const npy_intp itemsize = type == NPY_DOUBLE ? sizeof(double) : sizeof(float);
    const auto fits = [](npy_intp n) { return n >= 2 && n <= kMostInProduct; };
    const auto is_step = [&](npy_intp n) { return n >= itemsize && n <= kLongestStep && n % itemsize == 0; };
    if (!std::all_of(sizes, sizes + 3, fits) || !std::all_of(strides, strides + 4, is_step) ||
        strides[4] != sizes[2] * itemsize || strides[5] != itemsize)
        return nullptr;
    const ProductKernel kernel = find_product(type == NPY_DOUBLE ? Element::F64 : Element::F32, sizes[2]);
    if (!kernel) return nullptr;
    static constinit Memo<ProductLayout, bool, ProductLayoutHash> known;
    ProductLayout layout{type};
    std::copy_n(sizes, 3, layout.begin() + 1);
    std::copy_n(strides, 4, layout.begin() + 4);
    const bool* exact = known.find(layout);
    if (!exact) {
        const int before = all_fp_errors();
        exact = &known.keep(layout, type == NPY_DOUBLE ? gives_the_same<double>(loop, kernel, sizes, strides)
                                                       : gives_the_same<float>(loop, kernel, sizes, strides));
        clear_all_fp_errors();
        if (before) std::feraiseexcept(before);
    }
    return *exact ? kernel : nullptr;
}

}  // namespace pyop
