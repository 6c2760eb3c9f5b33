// entry/default_floats.h: compute with subnormal numbers, as NumPy does, on threads of other libraries that may flush
// them to zero.
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
