// graph/passes/passes.h: list the passes by name, in the order in which they are first applied (plan/lower.cpp).
//
// Dead code goes twice, before and behind folding. Casts are left out before folding, and behind the views once more
// where only the arrays at hand can tell. Each pass can be switched off for one plan, so that a wrong result can be
// traced to the pass that makes it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace pyop {

enum class Pass : uint8_t { Prune, Merge, Casts, Fold, Loops, Fuse, Views, Schedule, InPlace, Tape };

struct PassInfo {
    std::string_view name, does;
};

inline constexpr std::array<PassInfo, 10> kPasses{{
    {"prune", "leaves out what no output needs"},
    {"merge", "lets equal stateless calls be one"},
    {"casts", "leaves out conversions that change nothing and converts inside the loops that read"},
    {"fold", "computes stateless calls of constants at compile"},
    {"loops", "runs NumPy's inner loops without calling Python"},
    {"fuse", "runs elementwise loops together, block by block"},
    {"views", "reshapes, transposes and slices without calling Python"},
    {"schedule", "runs each call shortly before its results are needed"},
    {"in-place", "writes results over arrays that nobody reads any more"},
    {"tape", "runs loops over single elements and numbers as a tape of operations"},
}};

// A set of passes.
class PassSet {
  public:
    static PassSet all() { return PassSet((1u << kPasses.size()) - 1); }
    static PassSet none() { return PassSet(0); }
    bool has(Pass pass) const { return bits_ >> static_cast<unsigned>(pass) & 1; }
    void remove(Pass pass) { bits_ &= ~(1u << static_cast<unsigned>(pass)); }

  private:
    explicit PassSet(uint32_t bits) : bits_(bits) {}
    uint32_t bits_;
};

}  // namespace pyop
