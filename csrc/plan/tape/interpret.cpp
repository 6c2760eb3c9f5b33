// plan/tape/interpret.cpp: run a tape. Each operation jumps to the next (labels as values), so that the processor can
// tell them apart when it guesses where a jump goes.
//
// Compiled without contraction: a product and a sum are two operations, as in NumPy.
#include <cmath>
#include <limits>
#include <type_traits>
#include <unordered_set>

#include "array/loop/fp_flags.h"
#include "plan/tape/tape.h"
#include "runtime/attach.h"
#include "runtime/forced_exit.h"
#include "runtime/up_calls.h"

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wgnu-label-as-value"
#elif defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpedantic"
#endif

namespace pyop {

// What stands for a place is what was there first: beyond some number of entries only that is kept, or the journal of a
// long nest of loops over few elements would outgrow the memory.
void TapeJournal::grow() {
    const size_t n = size();
    if (n >= kMany) {
        std::unordered_set<char*> seen;
        Entry* to = begin();
        for (const Entry* entry = begin(); entry != top_; ++entry)
            if (seen.insert(entry->at).second) *to++ = *entry;
        top_ = to;
        if (size() <= n / 2) return;
    }
    const size_t kept = size();
    auto wider = std::make_unique_for_overwrite<Entry[]>(4 * n);
    std::memcpy(wider.get(), begin(), kept * sizeof(Entry));
    more_ = std::move(wider);
    top_ = more_.get() + kept;
    limit_ = more_.get() + 4 * n;
}

namespace {

// Arithmetic on integers wraps around; narrow ones are promoted to int, which would not.
template <class T>
constexpr auto wrapping(T x) {
    if constexpr (!std::is_integral_v<T>)
        return x;
    else if constexpr (sizeof(T) < sizeof(unsigned))
        return static_cast<unsigned>(x);
    else
        return static_cast<std::make_unsigned_t<T>>(x);
}

template <class T>
T Add(T x, T y) {
    return static_cast<T>(wrapping(x) + wrapping(y));
}
template <class T>
T Subtract(T x, T y) {
    return static_cast<T>(wrapping(x) - wrapping(y));
}
template <class T>
T Multiply(T x, T y) {
    return static_cast<T>(wrapping(x) * wrapping(y));
}
template <class T>
T Divide(T x, T y) {
    return x / y;
}
// Comparisons are quiet about NaN, as NumPy's are.
template <class T>
bool Less(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) return __builtin_isless(x, y);
    return x < y;
}
template <class T>
bool LessEqual(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) return __builtin_islessequal(x, y);
    return x <= y;
}
template <class T>
bool Equal(T x, T y) {
    return x == y;
}
template <class T>
bool NotEqual(T x, T y) {
    return x != y;
}
// As the kernels: a NaN wins, the first before the second; of equal numbers the second is taken.
template <class T>
T Minimum(T x, T y) {
    return Less(x, y) || x != x ? x : y;
}
template <class T>
T Maximum(T x, T y) {
    return Less(y, x) || x != x ? x : y;
}
template <class T>
T BitwiseAnd(T x, T y) {
    return static_cast<T>(x & y);
}
template <class T>
T BitwiseOr(T x, T y) {
    return static_cast<T>(x | y);
}
template <class T>
T BitwiseXor(T x, T y) {
    return static_cast<T>(x ^ y);
}
// Shifts by all bits or more, or by a negative count, shift everything out.
template <class T>
bool may_shift(T y) {
    return static_cast<std::make_unsigned_t<T>>(y) < 8 * sizeof(T);
}
template <class T>
T LeftShift(T x, T y) {
    return may_shift(y) ? static_cast<T>(wrapping(x) << static_cast<unsigned>(y)) : T{0};
}
template <class T>
T RightShift(T x, T y) {
    if (may_shift(y)) return static_cast<T>(x >> static_cast<unsigned>(y));
    return x < T{0} ? static_cast<T>(-1) : T{0};
}
template <class T>
T Negative(T x) {
    if constexpr (std::is_floating_point_v<T>) return -x;
    return Subtract(T{0}, x);
}
inline float Absolute(float x) { return __builtin_fabsf(x); }
inline double Absolute(double x) { return __builtin_fabs(x); }
template <class T>
T Absolute(T x) {
    return x < T{0} ? Negative(x) : x;
}
template <class T>
T Square(T x) {
    return Multiply(x, x);
}
inline float Sqrt(float x) { return __builtin_sqrtf(x); }
inline double Sqrt(double x) { return __builtin_sqrt(x); }

inline uint8_t LogicalAnd(uint8_t x, uint8_t y) { return (x != 0) & (y != 0); }
inline uint8_t LogicalOr(uint8_t x, uint8_t y) { return (x != 0) | (y != 0); }
inline uint8_t LogicalXor(uint8_t x, uint8_t y) { return (x != 0) ^ (y != 0); }

inline void watch(bool overflows) {
    if (__builtin_expect(overflows, 0)) raise_fp_errors(FE_OVERFLOW);
}
template <class T>
T AddWatched(T x, T y) {
    T result;
    watch(__builtin_add_overflow(x, y, &result));
    return result;
}
template <class T>
T SubtractWatched(T x, T y) {
    T result;
    watch(__builtin_sub_overflow(x, y, &result));
    return result;
}
template <class T>
T MultiplyWatched(T x, T y) {
    T result;
    watch(__builtin_mul_overflow(x, y, &result));
    return result;
}

// These answer whether the result is what it should be.
template <class T>
bool AddChecked(T x, T y, T& result) {
    return !__builtin_add_overflow(x, y, &result);
}
template <class T>
bool SubtractChecked(T x, T y, T& result) {
    return !__builtin_sub_overflow(x, y, &result);
}
template <class T>
bool MultiplyChecked(T x, T y, T& result) {
    return !__builtin_mul_overflow(x, y, &result);
}
template <class T>
bool divides(T x, T y) {
    if (y == T{0}) return false;
    if constexpr (std::is_signed_v<T>) return y != T{-1} || x != std::numeric_limits<T>::min();
    return true;
}
template <class T>
bool FloorDivide(T x, T y, T& result) {
    if (!divides(x, y)) return false;
    result = static_cast<T>(x / y);
    if constexpr (std::is_signed_v<T>)
        if (x % y != 0 && (x < 0) != (y < 0)) --result;
    return true;
}
template <class T>
bool Remainder(T x, T y, T& result) {
    if (!divides(x, y)) return false;
    result = static_cast<T>(x % y);
    if constexpr (std::is_signed_v<T>)
        if (result != 0 && (result < 0) != (y < 0)) result = static_cast<T>(result + y);
    return true;
}
inline bool DivideChecked(double x, double y, double& result) {
    if (y == 0.0) return false;
    result = x / y;
    return true;
}

// A position on an axis, as NumPy counts. False if there is none.
inline bool find(int64_t& i, int64_t size) {
    i += i < 0 ? size : 0;
    return static_cast<uint64_t>(i) < static_cast<uint64_t>(size);
}
// Of a counter and an offset, which wrap around only far outside of any array.
inline int64_t offset(int64_t i, int64_t by) {
    return static_cast<int64_t>(static_cast<uint64_t>(i) + static_cast<uint64_t>(by));
}

}  // namespace

bool call_for_one(const TapeCall& call, TapeCell* cells) {
    char* data[8];
    for (size_t k = 0; k < call.cells.size(); ++k) data[k] = reinterpret_cast<char*>(&cells[call.cells[k]]);
    if (PYOP_LIKELY(call.quiet)) return (*call.loop)(data, 1, call.strides.data()) == 0;
    if (call.kernel) {
        call.kernel(data, 1);
        return true;
    }
    // Some of NumPy's loops clear the flags; what was raised before must stay.
    const int before = all_fp_errors();
    const int status = (*call.loop)(data, 1, call.strides.data());
    if (call.loop->ignores_flags()) clear_all_fp_errors();
    if (PYOP_UNLIKELY(before != 0)) std::feraiseexcept(before);
    if (status == 0 && !(call.may_fail && PyErr_Occurred())) return true;
    if (call.may_fail) PyErr_Clear();  // else there may be no GIL
    return false;
}

int look_around() {
    if (!attached()) return 0;
    if (PyErr_CheckSignals() < 0) return -1;
    // Where a function of Python's begins, the interpreter hands the GIL to a thread that has waited long enough. If it
    // were given up here and taken again, that thread would wake too late, each time, and begin to wait once more.
    return Ref::steal(vectorcall_new(up_calls.moment, nullptr, 0)) ? 0 : -1;
}

TapeEnd interpret(const TapeInstruction* const code, TapeCell* const r, TapeJournal& journal, unsigned& until_look,
                  const bool impatient) {
    static const void* const labels[] = {
#define X(name, element) &&do_##name##element,
        PYOP_TAPE_BINARY(X) PYOP_TAPE_COMPARISON(X) PYOP_TAPE_UNARY(X) PYOP_TAPE_LOGIC(X) PYOP_TAPE_WATCHED(X)
            PYOP_TAPE_CHECKED(X)
#undef X
#define X(from, to) &&do_From##from##To##to,
                PYOP_TAPE_CASTS(X)
#undef X
#define X(name) &&do_##name,
                    PYOP_TAPE_OTHERS(X)
#undef X
    };
    const TapeInstruction* at = code;
#define PYOP_GO goto* labels[static_cast<uint16_t>(at->op)]
#define PYOP_NEXT \
    do {          \
        ++at;     \
        PYOP_GO;  \
    } while (false)

    PYOP_GO;

#define X(name, element)                                                              \
    do_##name##element : r[at->a].element = name(r[at->b].element, r[at->c].element); \
    PYOP_NEXT;
    PYOP_TAPE_BINARY(X)
    PYOP_TAPE_LOGIC(X)
    PYOP_TAPE_WATCHED(X)
#undef X
#define X(name, element)                                                           \
    do_##name##element : r[at->a].Bool = name(r[at->b].element, r[at->c].element); \
    PYOP_NEXT;
    PYOP_TAPE_COMPARISON(X)
#undef X
#define X(name, element)                                            \
    do_##name##element : r[at->a].element = name(r[at->b].element); \
    PYOP_NEXT;
    PYOP_TAPE_UNARY(X)
#undef X
#define X(name, element)                                                                                              \
    do_##name##element                                                                                                \
        : if (__builtin_expect(!name(r[at->b].element, r[at->c].element, r[at->a].element), 0)) return TapeEnd::Left; \
    PYOP_NEXT;
    PYOP_TAPE_CHECKED(X)
#undef X
#define X(from, to)                                                                           \
    do_From##from##To##to : r[at->a].to = static_cast<decltype(TapeCell::to)>(r[at->b].from); \
    PYOP_NEXT;
    PYOP_TAPE_CASTS(X)
#undef X

do_Not:
    r[at->a].Bool = r[at->b].Bool == 0;
    PYOP_NEXT;
do_Select:  // d: the condition
    r[at->a].U64 = r[at->more.d].Bool ? r[at->b].U64 : r[at->c].U64;
    PYOP_NEXT;
do_Move:
    r[at->a].U64 = r[at->b].U64;
    PYOP_NEXT;
do_Move16:
    std::memcpy(&r[at->a], &r[at->b], 16);
    PYOP_NEXT;

// a = element of the array b of one axis, at c plus a number
#define PYOP_LOAD(size)                                                        \
    {                                                                          \
        int64_t i = offset(r[at->c].I64, at->number);                          \
        const TapeCell* const array = r + at->b;                               \
        if (__builtin_expect(!find(i, array[1].I64), 0)) return TapeEnd::Left; \
        std::memcpy(&r[at->a], array->data + i * array[2].I64, size);          \
        PYOP_NEXT;                                                             \
    }
do_Load1:
    PYOP_LOAD(1)
do_Load2:
    PYOP_LOAD(2)
do_Load4:
    PYOP_LOAD(4)
do_Load8:
    PYOP_LOAD(8)

// a = element of the array b of two axes, at c + e and d + f; or the other way round
#define PYOP_PLACE_2                                                                                 \
    int64_t i = offset(r[at->c].I64, at->more.e), j = offset(r[at->more.d].I64, at->more.f);         \
    const TapeCell* const array = r + at->b;                                                         \
    if (__builtin_expect(!find(i, array[1].I64) || !find(j, array[3].I64), 0)) return TapeEnd::Left; \
    char* const place = array->data + i * array[2].I64 + j * array[4].I64;
do_Load8At2:
    {
        PYOP_PLACE_2
        std::memcpy(&r[at->a], place, 8);
        PYOP_NEXT;
    }
do_Store8:
    {
        int64_t i = offset(r[at->c].I64, at->number);
        const TapeCell* const array = r + at->b;
        if (__builtin_expect(!find(i, array[1].I64), 0)) return TapeEnd::Left;
        char* const place = array->data + i * array[2].I64;
        journal.note<8>(place);
        std::memcpy(place, &r[at->a], 8);
        PYOP_NEXT;
    }
do_Store8At2:
    {
        PYOP_PLACE_2
        journal.note<8>(place);
        std::memcpy(place, &r[at->a], 8);
        PYOP_NEXT;
    }

do_Element:
    {  // a = address b, moved along the axis whose size and stride are d and behind it, to c + f
        int64_t i = offset(r[at->c].I64, at->more.f);
        const TapeCell* const axis = r + at->more.d;
        if (__builtin_expect(!find(i, axis[0].I64), 0)) return TapeEnd::Left;
        r[at->a].data = r[at->b].data + i * axis[1].I64;
        PYOP_NEXT;
    }
do_Address:
    r[at->a].data = reinterpret_cast<char*>(r + at->b) + at->number;
    PYOP_NEXT;
do_Advance:
    r[at->a].data = r[at->b].data + at->number;
    PYOP_NEXT;
#define PYOP_FETCH(size)                                          \
    do_Fetch##size : std::memcpy(&r[at->a], r[at->b].data, size); \
    PYOP_NEXT;
    PYOP_FETCH(1)
    PYOP_FETCH(2)
    PYOP_FETCH(4)
    PYOP_FETCH(8)
    PYOP_FETCH(16)
#define PYOP_PUT(size)                                \
    do_Put##size : journal.note<size>(r[at->b].data); \
    std::memcpy(r[at->b].data, &r[at->a], size);      \
    PYOP_NEXT;
    PYOP_PUT(1)
    PYOP_PUT(2)
    PYOP_PUT(4)
    PYOP_PUT(8)
do_Put16:
    journal.note<8>(r[at->b].data);
    journal.note<8>(r[at->b].data + 8);
    std::memcpy(r[at->b].data, &r[at->a], 16);
    PYOP_NEXT;

do_CallKernel:
do_CallLoop:
    if (__builtin_expect(!call_for_one(*at->call, r), 0)) return TapeEnd::Left;
    PYOP_NEXT;
do_CallKernelOnBlock:
    {
        const TapeCall& call = *at->call;
        char* data[8];
        for (size_t k = 0; k < call.operands.size(); ++k) data[k] = call.operands[k].find(r);
        call.kernel(data, call.n);
        PYOP_NEXT;
    }
do_CallOnBlock:
    if (__builtin_expect(!at->call->block(*at->call, r, journal), 0)) return TapeEnd::Left;
    until_look -= until_look > kBlockLook ? kBlockLook : 0;
    PYOP_NEXT;
do_Compute:
    if (__builtin_expect(!at->call->function(at->call->self, &r[at->b], &r[at->c], &r[at->a]), 0)) return TapeEnd::Left;
    PYOP_NEXT;

do_Jump:
    at = code + at->number;
    PYOP_GO;
do_JumpIfFalse:
    at = r[at->a].Bool ? at + 1 : code + at->number;
    PYOP_GO;
do_Trips:
    {  // a = how often b counts up to c by the number
        const int64_t first = r[at->b].I64, end = r[at->c].I64, step = at->number;
        const auto u = [](int64_t x) { return static_cast<uint64_t>(x); };
        uint64_t n = 0;
        if (step > 0 && first < end) n = (u(end) - u(first) - 1) / u(step) + 1;
        if (step < 0 && first > end) n = (u(first) - u(end) - 1) / (0 - u(step)) + 1;
        r[at->a].U64 = n;
        r[static_cast<uint16_t>(at->a + 1)].Bool = n != 0;
        PYOP_NEXT;
    }
do_Repeat:  // a += c, and back to f, as long as --b is not 0
    r[at->a].I64 = offset(r[at->a].I64, r[at->c].I64);
    if (--r[at->b].U64 == 0) PYOP_NEXT;
    if (__builtin_expect(--until_look == 0, 0)) {
        until_look = kUntilLook;
        if (look_around() < 0) return TapeEnd::Failed;
        if (impatient) return TapeEnd::Left;
    }
    at = code + at->more.f;
    PYOP_GO;
do_Next:  // as Repeat, from the beginning, by the number
    r[at->a].I64 = offset(r[at->a].I64, at->number);
    if (--r[at->b].U64 == 0) return TapeEnd::Done;
    at = code;
    PYOP_GO;
do_LeaveUnless:
    if (__builtin_expect((r[at->a].Bool != 0) != (at->number != 0), 0)) return TapeEnd::Left;
    PYOP_NEXT;
do_Stop:
    return TapeEnd::Stopped;
}

}  // namespace pyop
