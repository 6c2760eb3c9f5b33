// graph/value_sequence.h: declare len(), iteration and `in` of Values, and the names of methods that only arrays have.
#pragma once

#include <vector>

#include "array/protocol/stand_in.h"

namespace pyop {

extern StandIn value_stand_in;

int value_sequence_slots(std::vector<PyType_Slot>& slots);

}  // namespace pyop
