// plan/tape/tape_fill.cpp: x[a:b] = number between positions that the graph computes, on a tape.
#include <algorithm>

#include "plan/tape/tape_builder.h"

namespace pyop {

namespace {

constexpr npy_intp kMostFilled = 1 << 16;  // what is overwritten is kept

// A number into the elements from one computed position to another, as a slice counts them: `cells` are those of the
// array, the positions (or 0, if there is none) and the number; `sizes` are added to the positions, and tell which are.
bool fill_between(const TapeCall& call, TapeCell* r, TapeJournal& journal) {
    const TapeCell* const array = r + call.cells[0];
    const npy_intp size = array[1].I64, stride = array[2].I64;
    npy_intp ends[2] = {0, size};
    for (size_t k = 0; k < 2; ++k) {
        if (!call.sizes[2 + k]) continue;
        if (__builtin_add_overflow(r[call.cells[1 + k]].I64, call.sizes[k], &ends[k])) return false;
        ends[k] = std::clamp<npy_intp>(ends[k] + (ends[k] < 0 ? size : 0), 0, size);
    }
    if (ends[1] - ends[0] > kMostFilled) return false;
    const auto bytes = static_cast<size_t>(call.n);
    for (npy_intp i = ends[0]; i < ends[1]; ++i) {
        char* const to = array->data + i * stride;
        if (bytes == 8)
            journal.note<8>(to);
        else if (bytes == 4)
            journal.note<4>(to);
        else if (bytes == 2)
            journal.note<2>(to);
        else
            journal.note<1>(to);
        std::memcpy(to, &r[call.cells[3]], bytes);
    }
    return true;
}

}  // namespace

// x[a:b] = number, of an array of one axis.
bool TapeBuilder::fill(const TapeValue& array, const std::vector<ViewRecipe>& recipes, const Symbols* sizes,
                       const TapeValue* inputs, const std::vector<uint32_t>* integers, const TapeValue& value) {
    const auto is_whole = [](const AxisItem& item) {
        return item.kind == AxisItem::Keep ||
               (item.kind == AxisItem::Slice && !item.has_start && !item.has_stop && item.step == 1);
    };
    for (size_t k = 1; k < recipes.size(); ++k)
        for (const ViewOp& op : recipes[k].ops)
            if (op.kind != ViewOp::Axes || !std::all_of(op.items.begin(), op.items.end(), is_whole)) return false;
    const std::vector<ViewOp>& ops = recipes.front().ops;
    if (array.ndim != 1 || recipes.front().ndim != 1 || ops.size() != 1 || ops[0].kind != ViewOp::Axes ||
        ops[0].items.size() != 1 || PyDataType_ELSIZE(array.dtype) > 8)
        return false;
    const AxisItem& item = ops[0].items[0];
    if (item.kind != AxisItem::Slice || item.step != 1 || (item.start.expr < 0 && item.stop.expr < 0)) return false;
    Place ends[2] = {{0, 0}, {0, 0}};
    if (item.has_start && !place(item.start, sizes, inputs, integers, ends[0])) return false;
    if (item.has_stop && !place(item.stop, sizes, inputs, integers, ends[1])) return false;
    TapeCall call;
    call.block = fill_between;
    call.n = PyDataType_ELSIZE(array.dtype);
    call.cells = {array.cell, ends[0].cell, ends[1].cell, value.cell};
    call.sizes = {ends[0].offset, ends[1].offset, item.has_start, item.has_stop};
    return call_block(std::move(call));
}

}  // namespace pyop
