// plan/steps/view_step.h: ViewStep, a node whose results are views, made without calling NumPy's function.
#pragma once

#include "plan/native_step.h"
#include "plan/steps/view_reading.h"

namespace pyop {

class ViewStep final : public NativeStep {
  public:
    ViewStep(Members members, ViewCall view) : NativeStep(std::move(members)), view_(std::move(view)) {}
    int run(PyObject* const* inputs, PyObject** results, const StepContext& context) const override;
    std::string describe(size_t member) const override;

  private:
    ViewCall view_;
};

}  // namespace pyop
