// kernels/fast.cpp: compute transcendental functions in vectors for precision="fast", to 4 units in the last place.
//
// They are glibc's libmvec, found at run time: a wheel for older systems cannot be linked against it, and what is not
// found (another system, a function that this glibc does not have yet) is simply no kernel, so that NumPy's loop
// runs. libmvec is accurate for ordinary arguments only, and neither its flags nor its special values are NumPy's.
// So every function has a range of ordinary arguments; the others (also NaN) go through the scalar function of libm,
// whose values and flags are NumPy's, and of what libmvec raises nothing is kept.
//
// The error is measured in tests/kernels/test_kernels.py; the ranges below are those for which it holds.
#include <cmath>        // ::sin and the like
#include <string_view>  // std::string_view
#if defined(__x86_64__) && defined(__gnu_linux__)
#include <dlfcn.h>  // dlopen, dlsym
#endif

#include "kernels/flags.h"
#include "kernels/loops.h"

namespace pyop::PYOP_KERNEL_LEVEL {

Kernel find_fast(std::string_view ufunc_name, Element e);

#if defined(__x86_64__) && defined(__gnu_linux__)

namespace {

// The widest vectors of the level, and the letter they have in the names of vector functions.
#if defined(__AVX512F__)
#define PYOP_VECTOR_BYTES 64
constexpr char kLetter = 'e';
#elif defined(__AVX2__)
#define PYOP_VECTOR_BYTES 32
constexpr char kLetter = 'd';
#else
#define PYOP_VECTOR_BYTES 16
constexpr char kLetter = 'b';
#endif
typedef double Doubles __attribute__((vector_size(PYOP_VECTOR_BYTES)));
typedef float Floats __attribute__((vector_size(PYOP_VECTOR_BYTES)));

template <class T>
using Vector = std::conditional_t<sizeof(T) == 8, Doubles, Floats>;
template <class T>
constexpr int kLanes = PYOP_VECTOR_BYTES / sizeof(T);

// _ZGVdN4v_sin, _ZGVdN8vv_powf, ...
template <class T, int inputs>
void* vector_function(const char* name) {
    static void* const library = dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return nullptr;
    char symbol[32] = "_ZGV";
    char* end = symbol + 4;
    *end++ = kLetter;
    *end++ = 'N';
    if (kLanes<T> >= 10) *end++ = '1';
    *end++ = static_cast<char>('0' + kLanes<T> % 10);
    for (int i = 0; i < inputs; ++i) *end++ = 'v';
    *end++ = '_';
    while (*name) *end++ = *name++;
    if (sizeof(T) == 4) *end++ = 'f';
    *end = 0;
    return dlsym(library, symbol);
}

// A function of one argument, as data, so that one loop serves them all: the vector function, where arguments are
// ordinary (from `low` to `high`), the function of the others.
template <class T>
struct OfOne {
    static constexpr int inputs = 1;
    T low, high;
    T (*of)(T);
    bool ordinary(T x, T, T) const { return (x >= low) & (x <= high); }
    T scalar(T x, T) const { return of(x); }
};

// Which elements are not ordinary; whether there are any.
template <class F, class T>
bool find_odd(const F& f, const T* x, const T* y, const T* result, std::ptrdiff_t n, Byte* odd) {
    int any = 0;
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) any |= !f.ordinary(x[i], y[i], result[i]);
    if (!any) return false;
    PYOP_INDEPENDENT
    for (std::ptrdiff_t i = 0; i < n; ++i) odd[i] = !f.ordinary(x[i], y[i], result[i]);
    return true;
}

// What libmvec makes of the arguments; `result` is apart from them.
template <int inputs, class T>
void compute(void* function, const T* x, const T* y, T* result, std::ptrdiff_t n) {
    constexpr std::ptrdiff_t lanes = sizeof(Vector<T>) / sizeof(T);
    const auto call = [&](const T* a, const T* b, T* to) {
        Vector<T> v, w;
        __builtin_memcpy(&v, a, sizeof v);
        if constexpr (inputs == 1) {
            v = reinterpret_cast<Vector<T> (*)(Vector<T>)>(function)(v);
        } else {
            __builtin_memcpy(&w, b, sizeof w);
            v = reinterpret_cast<Vector<T> (*)(Vector<T>, Vector<T>)>(function)(v, w);
        }
        __builtin_memcpy(to, &v, sizeof v);
    };
    std::ptrdiff_t i = 0;
    for (; i + lanes <= n; i += lanes) call(x + i, y + i, result + i);
    if (i == n) return;
    T a[lanes], b[lanes], to[lanes];
    for (int k = 0; k < lanes; ++k) a[k] = b[k] = T{1};
    for (int k = 0; k < n - i; ++k) a[k] = x[i + k], b[k] = y[i + k];
    call(a, b, to);
    for (int k = 0; k < n - i; ++k) result[i + k] = to[k];
}

constexpr std::ptrdiff_t kChunk = 128;

template <class F, class T>
void in_chunks(const F& f, void* function, char* const* data, std::ptrdiff_t n) {
    const T *x = in<T>(data, 0), *y = in<T>(data, F::inputs - 1);
    T* to = out<T>(data, F::inputs);
    T apart[kChunk];
    Byte odd[kChunk];
    for (std::ptrdiff_t i = 0; i < n; i += kChunk) {
        const std::ptrdiff_t count = n - i < kChunk ? n - i : kChunk;
        // The arguments are still wanted after their results.
        const bool in_place = to == x || to == y;
        T* result = in_place ? apart : to + i;
        bool any_odd;
        {
            const KeepFlags keep;
            compute<F::inputs, T>(function, x + i, y + i, result, count);
            any_odd = find_odd(f, x + i, y + i, result, count, odd);
        }
        if (any_odd)
            for (std::ptrdiff_t k = 0; k < count; ++k)
                if (odd[k]) result[k] = f.scalar(x[i + k], y[i + k]);
        if (in_place) __builtin_memcpy(to + i, result, static_cast<std::size_t>(count) * sizeof(T));
    }
}

// The vector function of one element type: looked for once, before the kernel is handed out.
template <class F, class T>
void* found() {
    static void* const pointer = vector_function<T, F::template Of<T>::inputs>(F::name);
    return pointer;
}

template <class F, class T>
void fast(char* const* data, std::ptrdiff_t n) {
    in_chunks<typename F::template Of<T>, T>(F::template of<T>(), found<F, T>(), data, n);
}

// Of one argument, ordinary from `low` to `high`, for doubles and for floats.
#define PYOP_FAST(function, low, high, low_float, high_float)   \
    struct Fast_##function {                                    \
        static constexpr const char* name = #function;          \
        template <class T>                                      \
        using Of = OfOne<T>;                                    \
        template <class T>                                      \
        static Of<T> of() {                                     \
            if constexpr (sizeof(T) == 8)                       \
                return {low, high, &::function};                \
            else                                                \
                return {low_float, high_float, &::function##f}; \
        }                                                       \
    };

constexpr double kTiny = 0x1p-1022, kMax = 0x1.fffffffffffffp1023;
constexpr float kTinyFloat = 0x1p-126f, kMaxFloat = 0x1.fffffep127f;

PYOP_FAST(sin, -kMax, kMax, -kMaxFloat, kMaxFloat)
PYOP_FAST(cos, -kMax, kMax, -kMaxFloat, kMaxFloat)
PYOP_FAST(tan, -kMax, kMax, -kMaxFloat, kMaxFloat)
PYOP_FAST(asin, -1.0, 1.0, -1.0f, 1.0f)
PYOP_FAST(acos, -1.0, 1.0, -1.0f, 1.0f)
PYOP_FAST(atan, -kMax, kMax, -kMaxFloat, kMaxFloat)
PYOP_FAST(sinh, -709.0, 709.0, -88.0f, 88.0f)
PYOP_FAST(cosh, -709.0, 709.0, -88.0f, 88.0f)
PYOP_FAST(tanh, -kMax, kMax, -kMaxFloat, kMaxFloat)
PYOP_FAST(asinh, -kMax, kMax, -kMaxFloat, kMaxFloat)
PYOP_FAST(acosh, 1.0, kMax, 1.0f, kMaxFloat)
PYOP_FAST(atanh, -0.9999999, 0.9999999, -0.9999f, 0.9999f)
PYOP_FAST(exp, -708.0, 709.0, -87.0f, 88.0f)
PYOP_FAST(exp2, -1022.0, 1023.0, -126.0f, 127.0f)
PYOP_FAST(expm1, -709.0, 709.0, -88.0f, 88.0f)
PYOP_FAST(log, kTiny, kMax, kTinyFloat, kMaxFloat)
PYOP_FAST(log2, kTiny, kMax, kTinyFloat, kMaxFloat)
PYOP_FAST(log10, kTiny, kMax, kTinyFloat, kMaxFloat)
PYOP_FAST(log1p, -0.9999999, kMax, -0.9999f, kMaxFloat)
PYOP_FAST(cbrt, -kMax, kMax, -kMaxFloat, kMaxFloat)
PYOP_FAST(erf, -kMax, kMax, -kMaxFloat, kMaxFloat)
PYOP_FAST(erfc, -kMax, 26.0, -kMaxFloat, 9.0f)

// Of two: ordinary if the result is an ordinary number.
template <class T>
struct Power {
    static constexpr int inputs = 2;
    static constexpr T tiny = sizeof(T) == 8 ? kTiny : kTinyFloat;
    static constexpr T max = sizeof(T) == 8 ? kMax : kMaxFloat;
    bool ordinary(T x, T, T r) const { return (x >= tiny) & (x <= max) & (r >= tiny) & (r <= max); }
    double scalar(double x, double y) const { return ::pow(x, y); }
    float scalar(float x, float y) const { return ::powf(x, y); }
};
struct Fast_pow {
    static constexpr const char* name = "pow";
    template <class T>
    using Of = Power<T>;
    template <class T>
    static Of<T> of() {
        return {};
    }
};

// Where NumPy's own vectors are faster on such processors, or libm's scalar function is.
#if defined(__AVX512F__)
constexpr std::string_view kLeftDoubles[] = {"power", "float_power", "log", "tanh"};
constexpr std::string_view kLeftFloats[] = {"power", "float_power", "cbrt"};
#elif defined(__AVX2__)
constexpr std::string_view kLeftDoubles[] = {{}};
constexpr std::string_view kLeftFloats[] = {{}};
#else
constexpr std::string_view kLeftDoubles[] = {"power", "float_power", "log", "log2", "arcsin", "arccos"};
constexpr std::string_view kLeftFloats[] = {{}};
#endif

bool left_to_numpy(std::string_view ufunc, Element e) {
    for (const std::string_view name : kLeftDoubles)
        if (e == Element::F64 && name == ufunc) return true;
    for (const std::string_view name : kLeftFloats)
        if (e == Element::F32 && name == ufunc) return true;
    return false;
}

struct Row {
    std::string_view ufunc;
    Kernel (*find)(Element e);
};

template <class F>
Kernel find(Element e) {
    if (e == Element::F64 && found<F, double>()) return &fast<F, double>;
    if (e == Element::F32 && found<F, float>()) return &fast<F, float>;
    return nullptr;
}

constexpr Row kRows[] = {
    {"sin", find<Fast_sin>},       {"cos", find<Fast_cos>},       {"tan", find<Fast_tan>},
    {"arcsin", find<Fast_asin>},   {"arccos", find<Fast_acos>},   {"arctan", find<Fast_atan>},
    {"sinh", find<Fast_sinh>},     {"cosh", find<Fast_cosh>},     {"tanh", find<Fast_tanh>},
    {"arcsinh", find<Fast_asinh>}, {"arccosh", find<Fast_acosh>}, {"arctanh", find<Fast_atanh>},
    {"exp", find<Fast_exp>},       {"exp2", find<Fast_exp2>},     {"expm1", find<Fast_expm1>},
    {"log", find<Fast_log>},       {"log2", find<Fast_log2>},     {"log10", find<Fast_log10>},
    {"log1p", find<Fast_log1p>},   {"cbrt", find<Fast_cbrt>},     {"erf", find<Fast_erf>},
    {"erfc", find<Fast_erfc>},     {"power", find<Fast_pow>},     {"float_power", find<Fast_pow>},
};

}  // namespace

Kernel find_fast(std::string_view ufunc_name, Element e) {
    if (left_to_numpy(ufunc_name, e)) return nullptr;
    for (const Row& row : kRows)
        if (row.ufunc == ufunc_name) return row.find(e);
    return nullptr;
}

#else

Kernel find_fast(std::string_view, Element) { return nullptr; }

#endif

}  // namespace pyop::PYOP_KERNEL_LEVEL
