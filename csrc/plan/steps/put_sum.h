// plan/steps/put_sum.h: declare `put` of several arrays.
#pragma once

#include "plan/steps/steps.h"

namespace pyop {

// Makes the step of a node that calls `put` with more than one array, if enough is known of it.
void make_put_sum(const Rewrite& r, uint32_t node, std::unique_ptr<NativeStep>& step);

}  // namespace pyop
