// tests/cpp/registry.h: C++ tests that pytest runs one by one (test_cpp.py), on the main thread, attached.
//
//     PYOP_TEST(clone_is_independent) { EXPECT(1 + 1 == 2); }
#pragma once

#include <stdexcept>  // std::runtime_error
#include <string>     // std::string, std::to_string
#include <vector>     // std::vector

#include "runtime/python.h"

namespace ctests {

struct Test {
    const char* name;
    void (*run)();
};

inline std::vector<Test>& registry() {
    static std::vector<Test> tests;
    return tests;
}

struct Registrar {
    Registrar(const char* name, void (*run)()) { registry().push_back({name, run}); }
};

[[noreturn]] inline void fail(const char* file, int line, const std::string& what) {
    throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

// Methods that scenarios.cpp, bench.cpp, kernels.cpp, results.cpp and entry_threads.cpp add to the module; each ends
// with a null entry.
extern PyMethodDef scenario_methods[];
extern PyMethodDef bench_methods[];
extern PyMethodDef kernel_methods[];
extern PyMethodDef result_methods[];
extern PyMethodDef entry_methods[];

}  // namespace ctests

#define PYOP_TEST(name)                                           \
    static void name();                                           \
    static const ctests::Registrar registrar_##name{#name, name}; \
    static void name()

#define EXPECT(condition)                                                           \
    do {                                                                            \
        if (!(condition)) ctests::fail(__FILE__, __LINE__, "expected " #condition); \
    } while (false)

// For integers: says what came.
#define EXPECT_EQ(got, wanted)                                                                                 \
    do {                                                                                                       \
        auto got_ = (got);                                                                                     \
        auto wanted_ = static_cast<decltype(got_)>(wanted);                                                    \
        if (got_ != wanted_)                                                                                   \
            ctests::fail(__FILE__, __LINE__,                                                                   \
                         "expected " #got " == " + std::to_string(wanted_) + ", got " + std::to_string(got_)); \
    } while (false)
