// plan/updates.h: find which writes of a program are in place, and which make a copy of the array first.
#pragma once

#include <vector>

#include "plan/program.h"

namespace pyop {

enum class Update : uint8_t { None, InPlace, Copy };

// By instruction, as far as can be told before a run: an array that somebody else holds then is copied all the same.
// `own_feeds`: so many behind the first are the program's to write into; SIZE_MAX: all.
std::vector<Update> updates_of(const Program& p, const Graph& g, size_t own_feeds);

struct UpdateCounts {
    size_t in_place = 0, copies = 0;
};
// Those of the loops and branches in it are counted with them, each once.
UpdateCounts count_updates(const Program& p, const Graph& g, size_t own_feeds = 0);
UpdateCounts count_updates_inside(const NativeStep& step);

}  // namespace pyop
