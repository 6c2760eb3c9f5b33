// array/native/scalar_loops.cpp: loop over C functions of numbers.
//
// Functions of float64 alone, or float32 alone, have loops of their own. For any other mixture of types there would be
// too many, so those are called through what the calling conventions of x86-64 (System V) and AArch64 have in common:
// integers and floating-point numbers travel in registers of two kinds, each counted by itself, up to six of a kind
// here; a narrow number lies in the low bits of its register. So f(int, double) is called as g(int64_t, double) is, and
// f(double, int) too. On other machines there are only the loops of one type.
#include <cstdint>
#include <cstring>
#include <utility>

#include "array/native/native_code.h"

namespace pyop {

namespace {

// Whether the function has raised: no element after that is computed. Any thread, with the GIL or without it: a
// thread's pending exception is its own. Always false where the function cannot raise.
class Raised {
  public:
    explicit Raised(const NativeCode& code) : thread_(code.may_raise ? PyGILState_GetThisThreadState() : nullptr) {}
    explicit operator bool() const {
#if PY_VERSION_HEX >= 0x030c0000
        return thread_ && thread_->current_exception;
#else
        return thread_ && thread_->curexc_type;
#endif
    }

  private:
    const PyThreadState* thread_;
};

template <typename T, size_t... I>
void loop_over(const NativeCode& code, char* const* data, npy_intp n, const npy_intp* strides,
               std::index_sequence<I...>) {
    using Function = T (*)(decltype((void)I, T{})...);
    const auto f = reinterpret_cast<Function>(code.function);
    constexpr size_t kOut = sizeof...(I);
    const Raised raised(code);
    for (npy_intp k = 0; k < n && !raised; ++k)
        *reinterpret_cast<T*>(data[kOut] + k * strides[kOut]) =
            f(*reinterpret_cast<const T*>(data[I] + k * strides[I])...);
}

template <typename T, size_t kInputs>
void loop_of(const NativeCode& code, char* const* data, npy_intp n, const npy_intp* strides) {
    loop_over<T>(code, data, n, strides, std::make_index_sequence<kInputs>());
}

template <typename T>
ScalarLoop find_loop_of(size_t n_in) {
    switch (n_in) {
        case 1:
            return loop_of<T, 1>;
        case 2:
            return loop_of<T, 2>;
        case 3:
            return loop_of<T, 3>;
        default:
            return nullptr;
    }
}

#if (defined(__x86_64__) && !defined(_WIN32)) || defined(__aarch64__)

constexpr size_t kRegisters = 6;  // of each kind

struct Registers {
    int64_t integers[kRegisters];
    double floats[kRegisters];
    int64_t integer;  // the result
    double real;
};

template <size_t... I, size_t... F>
void call_with(void (*function)(), Registers& r, bool returns_integer, std::index_sequence<I...>,
               std::index_sequence<F...>) {
    if (returns_integer)
        r.integer = reinterpret_cast<int64_t (*)(decltype((void)I, int64_t{})..., decltype((void)F, double{})...)>(
            function)(r.integers[I]..., r.floats[F]...);
    else
        r.real = reinterpret_cast<double (*)(decltype((void)I, int64_t{})..., decltype((void)F, double{})...)>(
            function)(r.integers[I]..., r.floats[F]...);
}

using CallWith = void (*)(void (*)(), Registers&, bool);
template <size_t kIntegers, size_t kFloats>
void call_registers(void (*function)(), Registers& r, bool returns_integer) {
    call_with(function, r, returns_integer, std::make_index_sequence<kIntegers>(), std::make_index_sequence<kFloats>());
}

// What a register more holds is not read, so one function serves for fewer: all are called with all registers.
constexpr CallWith kCallAll = call_registers<kRegisters, kRegisters>;

bool is_float(int type) { return type == NPY_FLOAT || type == NPY_DOUBLE; }

template <typename T>
int64_t widened(const char* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return static_cast<int64_t>(value);
}

int64_t integer_at(int type, const char* at) {
    switch (type) {
        case NPY_BOOL:
        case NPY_UBYTE:
            return widened<npy_ubyte>(at);
        case NPY_BYTE:
            return widened<npy_byte>(at);
        case NPY_SHORT:
            return widened<npy_short>(at);
        case NPY_USHORT:
            return widened<npy_ushort>(at);
        case NPY_INT:
            return widened<npy_int>(at);
        case NPY_UINT:
            return widened<npy_uint>(at);
        default:
            return widened<int64_t>(at);
    }
}

size_t size_of(int type) {
    switch (type) {
        case NPY_BOOL:
        case NPY_BYTE:
        case NPY_UBYTE:
            return 1;
        case NPY_SHORT:
        case NPY_USHORT:
            return 2;
        case NPY_INT:
        case NPY_UINT:
        case NPY_FLOAT:
            return 4;
        default:
            return 8;
    }
}

void loop_by_registers(const NativeCode& code, char* const* data, npy_intp n, const npy_intp* strides) {
    const auto n_in = static_cast<size_t>(code.n_in);
    const int* const types = code.types->data();
    const int out = types[n_in];
    const size_t out_size = size_of(out);
    Registers r{};  // those behind the arguments stay zero
    const Raised raised(code);
    for (npy_intp k = 0; k < n && !raised; ++k) {
        size_t n_integers = 0, n_floats = 0;
        for (size_t i = 0; i < n_in; ++i) {
            const char* const at = data[i] + k * strides[i];
            if (is_float(types[i]))
                std::memcpy(&r.floats[n_floats++], at, size_of(types[i]));
            else
                r.integers[n_integers++] = integer_at(types[i], at);
        }
        kCallAll(code.function, r, !is_float(out));
        char* const to = data[n_in] + k * strides[n_in];
        // C's bool is 0 or 1 in the low byte, and the lowest bit of it is what counts.
        if (out == NPY_BOOL) r.integer &= 1;
        std::memcpy(to, is_float(out) ? static_cast<const void*>(&r.real) : &r.integer, out_size);
    }
}

bool fits_registers(const std::vector<int>& types, size_t zeros) {
    size_t n_integers = zeros, n_floats = 0;
    for (size_t i = 0; i < types.size(); ++i) {
        const bool integer = types[i] == NPY_BOOL || PyTypeNum_ISINTEGER(types[i]);
        if (!integer && !is_float(types[i])) return false;
        if (i + 1 < types.size()) ++(integer ? n_integers : n_floats);
    }
    return n_integers <= kRegisters && n_floats <= kRegisters;
}

#else

bool fits_registers(const std::vector<int>&, size_t) { return false; }
constexpr ScalarLoop loop_by_registers = nullptr;

#endif

}  // namespace

ScalarLoop find_scalar_loop(const std::vector<int>& types, size_t zeros) {
    const size_t n_in = types.size() - 1;
    bool alike = zeros == 0;
    for (const int type : types) alike &= type == types[0];
    ScalarLoop found = nullptr;
    if (alike && types[0] == NPY_DOUBLE) found = find_loop_of<npy_double>(n_in);
    if (alike && types[0] == NPY_FLOAT) found = find_loop_of<npy_float>(n_in);
    if (!found && fits_registers(types, zeros)) found = loop_by_registers;
    return found;
}

}  // namespace pyop
