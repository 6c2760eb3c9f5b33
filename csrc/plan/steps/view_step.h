// plan/steps/view_step.h: make the views of a node, and those before it that nobody else reads, without calling
// NumPy's function (ViewStep).
#pragma once

#include "array/memory/recycle.h"
#include "plan/native_step.h"
#include "plan/steps/view_reading.h"

namespace pyop {

class ViewStep final : public NativeStep {
  public:
    // `before`: the recipes that lead from the step's input to the array that `view` is of, in order. If there are any,
    // the step has that one input.
    ViewStep(Fallback fallback, ViewCall view, std::vector<ViewRecipe> before = {})
        : NativeStep(std::move(fallback)), view_(std::move(view)), before_(std::move(before)) {
        const bool alone = before_.empty() && view_.recipes.size() == 1;
        places_ = alone && view_.recipes[0].copies_item ? view_.recipes[0].places() : nullptr;
    }
    int run(PyObject* const* inputs, PyObject** results, const StepContext& context) const override;
    bool record(TapeBuilder& tape, const TapeValue* inputs, TapeValue* results) const override;
    // What the only result shows of the array that the step is given, if there are no sizes in it. False: not this way.
    bool show(PyArrayObject* base, ArrayView& out) const;
    std::string describe(size_t member) const override;
    bool shows_inputs() const override { return true; }

  private:
    ViewCall view_;
    std::vector<ViewRecipe> before_;
    const std::vector<AxisItem>* places_;  // of the one element that is read; null: it is more than that
    mutable ResultRecycler numbers_;  // the GIL guards it
};

}  // namespace pyop
