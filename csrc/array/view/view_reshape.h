// array/view/view_reshape.h: reshape elements without moving them where that is possible.
#pragma once

#include "array/view/view_recipe.h"

namespace pyop {

// ViewOp::apply for Reshape, Expand and Ravel. Sets out.ndim and out.dims whenever the shapes agree.
ViewOp::Made apply_reshape(const ViewOp& op, const ArrayView& in, ArrayView& out, const npy_intp* sizes);

}  // namespace pyop
