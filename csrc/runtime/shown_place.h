// runtime/shown_place.h: show places to readers, and keep them as they are.
//
// A cell of a notebook is compiled under the name of a temporary file. That name finds its source and is kept; who
// reads an error knows the cell by its number. Outside of notebooks the two are the same.
//
// Threads: attached only, with no error set.
#pragma once

#include "runtime/origin.h"

namespace pyop {

// "file.py:12" as it is kept; origin_text is that text as it is shown.
Ref kept_place(const Origin& origin);

// That text as it is shown; itself where it cannot be told. Null only where `text` is.
Ref shown_place(Ref text);

}  // namespace pyop
