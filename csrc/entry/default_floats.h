// entry/default_floats.h: threads of other libraries may take subnormal numbers for zero; NumPy's bits are made
// without.
#pragma once

#include <cfenv>

namespace pyop {

class DefaultFloats {
  public:
    DefaultFloats() {
        std::fegetenv(&before_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~DefaultFloats() { std::fesetenv(&before_); }
    DefaultFloats(const DefaultFloats&) = delete;
    DefaultFloats& operator=(const DefaultFloats&) = delete;

  private:
    std::fenv_t before_;
};

}  // namespace pyop
