// array/loop/exact_loop.cpp: list the kernels, and try each against NumPy.
#include "array/loop/exact_loop.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "array/loop/flag_trial.h"
#include "array/loop/fp_flags.h"

#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

namespace pyop {

namespace {

constexpr std::ptrdiff_t kFew = 4;  // that NumPy's loop does alone
constexpr size_t kMostFunctions = 12;

// Written under the GIL before its kernel is handed out, and never again.
struct Slot {
    const ExactFunction* function = nullptr;
    const StridedLoop* loop = nullptr;
    std::atomic<const char*> state{nullptr};  // null: not asked for
    bool on = false;
};
std::array<Slot, kMostFunctions> slots;

constexpr npy_intp kSideBySide[] = {sizeof(double), sizeof(double)};

// Plans look for the flags of kernels in one register only; NumPy's loops may raise them in the other too.
void gather_flags() {
#if defined(__x86_64__)
    if (const int flags = x87_errors(); PYOP_UNLIKELY(flags != 0)) {
        clear_all_fp_errors();
        _mm_setcsr(_mm_getcsr() | static_cast<unsigned>(flags));
    }
#endif
}

bool rounds_to_nearest() {
#if defined(__x86_64__)
    return (_mm_getcsr() & _MM_ROUND_MASK) == _MM_ROUND_NEAREST;
#else
    return false;
#endif
}

void run_loop(const StridedLoop& loop, const char* x, char* to, std::ptrdiff_t n) {
    char* data[] = {const_cast<char*>(x), to};
    loop(data, n, kSideBySide);
    gather_flags();
}

// Apart, since a single number needs none of this memory.
[[gnu::noinline]] void settle_most(const Slot& slot, const double* x, double* to, std::ptrdiff_t n) {
    OpenLanes open;
    double rest[kMostExact];
    const double slack = slot.function->slack();
    for (std::ptrdiff_t i = 0; i < n; i += kMostExact) {
        const std::ptrdiff_t count = std::min(n - i, kMostExact);
        slot.function->settle(x + i, to + i, count, slack, open);
        if (open.n == 0) continue;
        run_loop(*slot.loop, reinterpret_cast<const char*>(open.arguments), reinterpret_cast<char*>(rest), open.n);
        for (std::ptrdiff_t k = 0; k < open.n; ++k) to[i + open.places[k]] = rest[k];
    }
}

template <size_t k>
void exact(char* const* data, std::ptrdiff_t n) {
    const Slot& slot = slots[k];
    if (n < kFew || PYOP_UNLIKELY(!rounds_to_nearest())) return run_loop(*slot.loop, data[0], data[1], n);
    settle_most(slot, reinterpret_cast<const double*>(data[0]), reinterpret_cast<double*>(data[1]), n);
}

template <size_t... k>
constexpr std::array<Kernel, sizeof...(k)> kernels_of(std::index_sequence<k...>) {
    return {&exact<k>...};
}
constexpr auto kKernels = kernels_of(std::make_index_sequence<kMostFunctions>());

// --- the trial

constexpr int kHard = 4096;          // arguments that the kernel just answers
constexpr int kNearMiddle = 512;     // and those that it just does not
constexpr double kReach = 0.1;       // units of the last place beyond what is left open
constexpr int kMostBlocks = 1 << 8;  // tried for them

// Since this version the sources of libm say what their errors are.
bool libm_has_bounds() {
#if defined(__GLIBC__)
    char* end;
    const long major = std::strtol(gnu_get_libc_version(), &end, 10);
    const long minor = *end == '.' ? std::strtol(end + 1, nullptr, 10) : 0;
    return major > 2 || (major == 2 && minor >= 28);
#else
    return false;
#endif
}

bool turned_off() {
    const char* given = std::getenv("PYOP_EXACT_KERNELS");
    return given && std::strcmp(given, "0") == 0;
}

struct Trial {
    const ExactFunction& function;
    const StridedLoop& loop;
    std::mt19937_64 random{20'231};
    double x[kMostExact], settled[kMostExact], numpys[kMostExact];
    OpenLanes open, nearly;
    int hard = 0, near_middle = 0;

    // Half of them simple, half of all sizes that are ordinary to the function: doubles are ordered as their bits are.
    void fill() {
        const auto least = std::bit_cast<uint64_t>(std::max(function.smallest, 0x1p-30));
        const auto most = std::bit_cast<uint64_t>(function.largest);
        for (std::ptrdiff_t k = 0; k < kMostExact; ++k) {
            const uint64_t chance = random();
            const double simple = function.usual * static_cast<double>(chance >> 11) * 0x1p-53;
            const double size = k % 2 ? std::bit_cast<double>(least + (chance >> 1) % (most - least)) : simple;
            x[k] = function.of_negatives && (chance & 1) ? -size : std::max(size, function.smallest);
        }
    }

    // Null, or what is wrong.
    const char* block() {
        fill();
        function.settle(x, settled, kMostExact, function.slack() + kReach, nearly);
        function.settle(x, settled, kMostExact, function.slack(), open);
        const char* const asked = reinterpret_cast<const char*>(nearly.arguments);
        run_loop(loop, asked, reinterpret_cast<char*>(numpys), nearly.n);
        std::ptrdiff_t next = 0;  // of the open ones, which are among those that are nearly so
        for (std::ptrdiff_t k = 0; k < nearly.n; ++k) {
            const bool is_open = next < open.n && open.places[next] == nearly.places[k];
            const double expected = is_open ? function.libm(nearly.arguments[k]) : settled[nearly.places[k]];
            next += is_open;
            if (std::memcmp(&expected, numpys + k, sizeof expected) == 0) continue;
            return is_open ? "off: NumPy's loop is not libm's" : "off: libm's results are not within its bound";
        }
        hard += static_cast<int>(nearly.n - open.n);
        near_middle += static_cast<int>(open.n);
        return nullptr;
    }

    const char* run() {
        for (int k = 0; k < kMostBlocks && (hard < kHard || near_middle < kNearMiddle); ++k)
            if (const char* wrong = block()) return wrong;
        return hard >= kHard && near_middle >= kNearMiddle ? nullptr : "off: not enough arguments to try it with";
    }
};

const char* try_out(const ExactFunction& function, const StridedLoop& loop) {
    if (turned_off()) return "off: PYOP_EXACT_KERNELS=0";
    if (!libm_has_bounds()) return "off: libm is not glibc of 2.28 or later";
    if (!rounds_to_nearest()) return "off: numbers were not rounded to the nearest when it was asked for";
    if (!keeps_flags(loop)) return "off: NumPy's loop clears floating-point flags";
    const int before = all_fp_errors();
    const auto trial = std::make_unique<Trial>(function, loop);
    const char* wrong = trial->run();
    clear_all_fp_errors();
    if (before) std::feraiseexcept(before);
    return wrong;
}

}  // namespace

Kernel find_exact_kernel(std::string_view ufunc, const StridedLoop& loop) {
    const auto functions = exact_functions();
    for (size_t k = 0; k < functions.size() && k < kMostFunctions; ++k) {
        if (functions[k]->ufunc != ufunc) continue;
        if (loop.n_inputs() != 1 || loop.n_outputs() != 1 || loop.dtype(0)->type_num != NPY_DOUBLE ||
            loop.dtype(1)->type_num != NPY_DOUBLE)
            return nullptr;
        Slot& slot = slots[k];
        if (!slot.state.load(std::memory_order_acquire)) {
            const char* wrong = try_out(*functions[k], loop);
            slot.function = functions[k];
            slot.loop = &loop;
            slot.on = wrong == nullptr;
            slot.state.store(wrong ? wrong : "on", std::memory_order_release);
        }
        return slot.on ? kKernels[k] : nullptr;
    }
    return nullptr;
}

bool is_exact_kernel(Kernel kernel) { return std::find(kKernels.begin(), kKernels.end(), kernel) != kKernels.end(); }

std::vector<std::pair<std::string, std::string>> exact_kernel_states() {
    std::vector<std::pair<std::string, std::string>> states;
    const auto functions = exact_functions();
    for (size_t k = 0; k < functions.size() && k < kMostFunctions; ++k) {
        const char* state = slots[k].state.load(std::memory_order_acquire);
        states.emplace_back(functions[k]->ufunc, state          ? state
                                                 : turned_off() ? "off: PYOP_EXACT_KERNELS=0"
                                                                : "not asked for");
    }
    return states;
}

}  // namespace pyop
