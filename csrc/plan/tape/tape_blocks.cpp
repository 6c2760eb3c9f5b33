// plan/tape/tape_blocks.cpp: record blocks on a tape: arrays of few elements and known shape.
//
// What is computed lies in cells of its own, which are written once in an iteration, so that views of it need no copy.
// A part of an array is read where it lies, and only as long as nobody has written there. How the elements of an
// operand lie decides over the last bits of what NumPy's loops and BLAS compute; so blocks have the strides that
// NumPy's arrays would have, and arrays that are read so must lie as their shapes say (Memory::relied_on).
#include <algorithm>

#include "plan/tape/tape_builder.h"

namespace pyop {

namespace {

constexpr size_t kAxes = TapeValue::kAxes;

// Eight bytes in a row, as nearly all elements are.
void copy_line(npy_intp n, char* to, npy_intp there, const char* from, npy_intp here) {
    for (npy_intp i = 0; i < n; ++i) std::memcpy(to + i * there, from + i * here, 8);
}

// The axes of a copy, the last one innermost, behind each other: sizes, strides of the target, strides of the source.
void copy_axes(const npy_intp* sizes, size_t ndim, char* to, const char* from, size_t bytes) {
    if (ndim == 0) {
        std::memcpy(to, from, bytes);
        return;
    }
    const npy_intp n = sizes[0], there = sizes[kAxes], here = sizes[2 * kAxes];
    if (ndim == 1 && bytes == 8) return copy_line(n, to, there, from, here);
    if (ndim == 2 && bytes == 8) {
        for (npy_intp i = 0; i < n; ++i)
            copy_line(sizes[1], to + i * there, sizes[kAxes + 1], from + i * here, sizes[2 * kAxes + 1]);
        return;
    }
    for (npy_intp i = 0; i < n; ++i) copy_axes(sizes + 1, ndim - 1, to + i * there, from + i * here, bytes);
}

void note_axes(const npy_intp* sizes, size_t ndim, char* to, size_t bytes, TapeJournal& journal) {
    if (ndim == 1 && bytes == 8) {
        for (npy_intp i = 0; i < sizes[0]; ++i) journal.note<8>(to + i * sizes[kAxes]);
        return;
    }
    if (ndim > 0) {
        for (npy_intp i = 0; i < sizes[0]; ++i) note_axes(sizes + 1, ndim - 1, to + i * sizes[kAxes], bytes, journal);
        return;
    }
    for (; bytes >= 8; bytes -= 8, to += 8) journal.note<8>(to);
    if (bytes & 4) journal.note<4>(to);
    if (bytes & 2) journal.note<2>(to + (bytes & 4));
    if (bytes & 1) journal.note<1>(to + (bytes & 6));
}

bool copy_side_by_side(const TapeCall& call, TapeCell* r, TapeJournal&) {
    std::memcpy(call.operands[0].find(r), call.operands[1].find(r), static_cast<size_t>(call.n));
    return true;
}

bool copy_strided(const TapeCall& call, TapeCell* r, TapeJournal&) {
    copy_axes(call.strides.data(), static_cast<size_t>(call.sizes[0]), call.operands[0].find(r),
              call.operands[1].find(r), static_cast<size_t>(call.n));
    return true;
}

// As NumPy: source and target may share memory.
bool store_strided(const TapeCall& call, TapeCell* r, TapeJournal& journal) {
    alignas(16) char aside[TapeBuilder::kMostElements * 16];
    char* const to = call.operands[0].find(r);
    const auto ndim = static_cast<size_t>(call.sizes[0]), bytes = static_cast<size_t>(call.n);
    note_axes(call.strides.data(), ndim, to, bytes, journal);
    copy_axes(call.strides.data() + 3 * kAxes, ndim, aside, call.operands[1].find(r), bytes);
    copy_axes(call.strides.data() + 6 * kAxes, ndim, to, aside, bytes);
    return true;
}

// What lies in cells shares no memory with an array.
bool store_cells(const TapeCall& call, TapeCell* r, TapeJournal& journal) {
    char* const to = call.operands[0].find(r);
    const auto ndim = static_cast<size_t>(call.sizes[0]), bytes = static_cast<size_t>(call.n);
    note_axes(call.strides.data(), ndim, to, bytes, journal);
    copy_axes(call.strides.data(), ndim, to, call.operands[1].find(r), bytes);
    return true;
}

char* nowhere() {
    alignas(16) static char stretch[16];
    return stretch;
}

// What lies side by side on all sides is copied at once, if it is no single line of eight bytes.
void join_axes(TapeCall& call) {
    npy_intp bytes = call.n, ndim = call.sizes[0];
    const auto is_beside = [&](size_t k, npy_intp d) {
        const npy_intp size = call.strides[static_cast<size_t>(d)];
        return size == 1 || call.strides[k * kAxes + static_cast<size_t>(d)] == bytes;
    };
    for (; ndim > 0 && is_beside(1, ndim - 1) && is_beside(2, ndim - 1); --ndim)
        bytes *= call.strides[static_cast<size_t>(ndim) - 1];
    if (call.n == 8 && bytes <= 64) return;
    call.n = bytes;
    call.sizes[0] = ndim;
}

ArrayView view_of(const TapeValue& value) {
    ArrayView view;
    view.data = nowhere();
    view.descr = value.dtype;
    view.itemsize = PyDataType_ELSIZE(value.dtype);
    view.ndim = value.ndim;
    view.writeable = true;
    std::copy_n(value.dims.begin(), value.ndim, view.dims);
    std::copy_n(value.strides.begin(), value.ndim, view.strides);
    return view;
}

}  // namespace

TapeValue TapeBuilder::block_new(PyArray_Descr* dtype, int ndim, const npy_intp* dims) {
    if (with_blocks() && ndim == 0) return number_new(dtype);
    TapeValue value = block_of(dtype, ndim, dims);
    if (value.kind == TapeValue::None) return value;
    const size_t n = static_cast<size_t>(value.size() * PyDataType_ELSIZE(dtype) + 7) / 8;
    value.cell = cells_new(n, true);
    if (!full_) scratch_.emplace_back(value.cell, n);
    value.place.cell = value.cell;
    return value;
}

// Without a place.
TapeValue TapeBuilder::block_of(PyArray_Descr* dtype, int ndim, const npy_intp* dims) {
    TapeValue value;
    if (!with_blocks() || !fits(dtype) || ndim < 1 || ndim > TapeValue::kAxes) return value;
    value.dtype = dtype;
    value.ndim = ndim;
    value.shaped = true;
    npy_intp step = PyDataType_ELSIZE(dtype), n = 1;
    for (auto d = static_cast<size_t>(ndim); d-- > 0;) {
        value.dims[d] = dims[d];
        value.strides[d] = step;
        step *= dims[d];
        n *= dims[d];
        if (n < 1 || n > most_elements_) return {};
    }
    value.kind = TapeValue::Block;
    return value;
}

TapeValue TapeBuilder::like_new(const TapeValue& value) {
    if (value.kind == TapeValue::Number) return number_new(value.dtype);
    return value.kind == TapeValue::Block ? block_new(value.dtype, value.ndim, value.dims.data()) : TapeValue{};
}

TapeValue TapeBuilder::known_block(PyArrayObject* a) {
    TapeValue value = block_of(PyArray_DESCR(a), PyArray_NDIM(a), PyArray_DIMS(a));
    if (value.kind == TapeValue::None) return value;
    std::copy_n(PyArray_STRIDES(a), value.ndim, value.strides.begin());
    value.place = {TapePlace::Known, 0, 0, PyArray_BYTES(a)};
    return value;
}

TapePlace TapeBuilder::place_of(const TapeValue& value) {
    if (value.kind == TapeValue::Block) return value.place;
    TapePlace place;
    place.cell = value.cell;
    return place;
}

Ref TapeBuilder::stand_in(const TapeValue& value) {
    Py_INCREF(value.dtype);
    char* const data = nowhere() + (value.kind == TapeValue::Block ? value.place.offset % 16 + 16 : 0) % 16;
    const bool number = value.kind == TapeValue::Number;
    return Ref::steal(PyArray_NewFromDescr(&PyArray_Type, value.dtype, number ? 0 : value.ndim, value.dims.data(),
                                           value.strides.data(), data, NPY_ARRAY_WRITEABLE, nullptr));
}

bool TapeBuilder::call_block(TapeCall call) {
    if (call.places.size() > 8) return false;
    for (const TapePlace& place : call.places) call.operands.push_back(operand(place));
    call.places.clear();
    const TapeOp op = call.kernel ? TapeOp::CallKernelOnBlock : TapeOp::CallOnBlock;
    return emit_call(op, std::move(call));
}

TapeOperand TapeBuilder::operand(const TapePlace& place) {
    if (place.how == TapePlace::Pointer) return {place.cell, place.offset};
    const bool known = place.how == TapePlace::Known;
    const auto [at, fresh] = addresses_.try_emplace({known ? uint16_t{0} : place.cell, known ? place.known : nullptr});
    if (fresh) {
        at->second = cells_new(1);
        if (full_) return {0, 0};
        if (known)
            tape_.cells[at->second].data = place.known;
        else
            tape_.addresses.emplace_back(at->second, place.cell);
    }
    return {at->second, place.offset};
}

bool TapeBuilder::copy(const TapeValue& to, const TapeValue& from) {
    // One element of the size of a cell, from cells to cells.
    const auto in_cells = [](const TapeValue& value) {
        return value.kind == TapeValue::Number ||
               (value.kind == TapeValue::Block && value.place.how == TapePlace::Frame && value.size() == 1);
    };
    const auto cell_of = [](const TapeValue& value) {
        return static_cast<uint16_t>(value.kind == TapeValue::Number ? value.cell
                                                                     : value.place.cell + value.place.offset / 8);
    };
    if (to.dtype == from.dtype && PyDataType_ELSIZE(to.dtype) == 8 && in_cells(to) && in_cells(from) &&
        from.ndim <= to.ndim) {
        emit(TapeOp::Move, cell_of(to), cell_of(from), 0);
        return !full_;
    }
    return copy_elements(to, from, false);
}

bool TapeBuilder::copy_once(const TapeValue& to, const TapeValue& from) {
    const bool known = from.kind == TapeValue::Block && from.place.how == TapePlace::Known;
    const bool in_cells = from.kind == TapeValue::Number || from.place.how == TapePlace::Frame;
    if (!copy_elements(to, from, false)) return false;
    if (!known && !(in_cells && held_.contains(from.cell))) return true;
    tape_.code.pop_back();
    tape_.ahead.push_back(tape_.calls.size() - 1);
    return true;
}

bool TapeBuilder::copy_elements(const TapeValue& to, const TapeValue& from, bool journal) {
    if (!readable(from) || from.dtype != to.dtype || (from.kind == TapeValue::Block && from.ndim > to.ndim))
        return false;
    if (journal && to.size() > kMostElements) return false;
    const npy_intp itemsize = PyDataType_ELSIZE(to.dtype);
    const auto ndim = static_cast<size_t>(to.ndim), own = static_cast<size_t>(from.ndim);
    TapeCall call;
    call.places = {place_of(to), place_of(from)};
    call.n = itemsize;
    call.sizes = {to.ndim};
    call.strides.resize(9 * kAxes);
    npy_intp step = itemsize;
    bool whole = !journal && to.contiguous();
    for (size_t d = ndim; d-- > 0;) {
        const npy_intp have = d < ndim - own ? 1 : from.dims[d - (ndim - own)];
        if (have != 1 && have != to.dims[d]) return false;
        const npy_intp stride = have == 1 ? 0 : from.strides[d - (ndim - own)];
        // To the target, and for a journal aside and from there.
        const npy_intp axis[] = {to.dims[d], to.strides[d], stride,        to.dims[d], step,
                                 stride,     to.dims[d],    to.strides[d], step};
        for (size_t k = 0; k < 9; ++k) call.strides[k * kAxes + d] = axis[k];
        whole &= to.dims[d] == 1 || stride == step;
        step *= to.dims[d];
    }
    if (whole)
        call.n = step;
    else
        join_axes(call);
    const bool cells = from.kind == TapeValue::Number || from.place.how == TapePlace::Frame;
    call.block = journal ? (cells ? store_cells : store_strided) : whole ? copy_side_by_side : copy_strided;
    return call_block(std::move(call));
}

uint16_t TapeBuilder::address_of(const TapeValue& block) {
    const TapePlace& place = block.place;
    if (place.how == TapePlace::Pointer && place.offset == 0) return place.cell;
    const uint16_t address = cells_new(1);
    if (full_) return 0;
    if (place.how == TapePlace::Known)
        tape_.cells[address].data = place.known + place.offset;
    else
        emit(place.how == TapePlace::Frame ? TapeOp::Address : TapeOp::Advance, address, place.cell, 0, place.offset);
    return address;
}

// Of the element at a position that is computed.
uint16_t TapeBuilder::address_of(const TapeValue& block, const TapeValue& position) {
    const uint16_t from = address_of(block), address = cells_new(1), extent = cells_new(2);
    if (full_) return 0;
    tape_.cells[extent].I64 = block.dims[0];
    tape_.cells[extent + size_t{1}].I64 = block.strides[0];
    emit(TapeOp::Element, address, from, position.cell);
    tape_.code.back().more = {extent, 0, 0};
    return address;
}

bool TapeBuilder::load_of_block(const TapeValue& block, const TapeValue& position, TapeValue& result) {
    if (block.ndim != 1 || !readable(block) || position.kind != TapeValue::Number ||
        position.dtype->type_num != NPY_INTP)
        return false;
    TapeValue element = block;
    element.ndim = 0;
    element.place = {TapePlace::Pointer, address_of(block, position), 0, nullptr};
    result = number_new(block.dtype);
    if (block.borrows) memories_[block.memory].relied_on = true;
    return !full_ && copy(result, element);
}

bool TapeBuilder::store_in_block(const TapeValue& block, const TapeValue& position, const TapeValue& value,
                                 TapeValue& result) {
    if (block.ndim != 1 || block.borrows || !value.is_number(block.dtype) || position.kind != TapeValue::Number ||
        position.dtype->type_num != NPY_INTP || !block.contiguous())
        return false;
    result = like_new(block);
    if (result.kind != TapeValue::Block || !copy(result, block)) return false;
    TapeValue element = result;
    element.ndim = 0;
    element.place = {TapePlace::Pointer, address_of(result, position), 0, nullptr};
    return !full_ && copy(element, value);
}

bool TapeBuilder::part_of(const TapeValue& array, const ViewRecipe& recipe, const Symbols* sizes,
                          const TapeValue* inputs, const std::vector<uint32_t>* integers, TapeValue& result) {
    const bool whole = array.kind == TapeValue::Array;
    if (!with_blocks() || !array.shaped || recipe.ndim != array.ndim) return false;
    if (array.kind == TapeValue::None || array.kind == TapeValue::Number) return false;
    // Positions that are computed are counted from the first one, which is there.
    ViewRecipe still = recipe;
    struct Move {
        size_t axis;
        Place position;
        npy_intp window;  // so many elements from there on; 0: one, counted from the end if it is negative
    };
    std::vector<Move> moves;
    for (size_t k = 0; k < still.ops.size(); ++k) {
        ViewOp& op = still.ops[k];
        for (AxisItem& item : op.items) {
            if (item.start.expr < 0 && item.stop.expr < 0) continue;
            const bool window = item.kind == AxisItem::Slice && item.has_start && item.has_stop && item.step == 1;
            if (k > 0 || (!window && (item.kind != AxisItem::At || item.stop.expr >= 0))) return false;
            Place position, end;
            if (!place(item.start, sizes, inputs, integers, position)) return false;
            npy_intp length = 0;
            if (window) {
                // As many in each iteration: both ends are moved by the same number.
                if (!place(item.stop, sizes, inputs, integers, end) || end.cell != position.cell) return false;
                length = end.offset - position.offset;
                if (length < 1 || length > array.dims[item.axis]) return false;
                item.stop = {length};
            }
            moves.push_back({item.axis, position, length});
            item.start = {};
        }
        for (const ViewSize& size : op.shape)
            if (size.expr >= 0) return false;
    }
    const ArrayView base = view_of(array);
    ArrayView shown;
    still.copies_item = false;
    if (!still.apply(base, shown) || shown.ndim > TapeValue::kAxes || shown.descr != array.dtype) return false;
    if (shown.size() < 1 || shown.size() > most_elements_) return false;
    const auto offset = static_cast<npy_intp>(shown.data - base.data);
    if (offset < INT32_MIN / 2 || offset > INT32_MAX / 2) return false;

    TapeValue at = array;
    if (whole) at.place = {TapePlace::Pointer, array.cell, 0, nullptr};
    if (!moves.empty()) {
        uint16_t from = address_of(at);
        const uint16_t address = cells_new(1);
        for (const auto& [axis, position, window] : moves) {
            uint16_t extent = static_cast<uint16_t>(array.cell + 1 + 2 * axis);
            const npy_intp places = array.dims[axis] - (window ? window - 1 : 0);
            if (!whole || window) {
                extent = cells_new(2);
                if (full_) return false;
                tape_.cells[extent].I64 = places;
                tape_.cells[extent + size_t{1}].I64 = array.strides[axis];
            }
            if (window) {
                // Slices that begin before the array, or go on behind it, are others. Where the place is none of the
                // array's, this leaves; where it is one that is counted from the end, the one below does.
                if (position.offset - places < INT32_MIN) return false;
                const uint16_t beside = cells_new(1);
                emit(TapeOp::Element, beside, from, position.cell);
                tape_.code.back().more = {extent, 0, static_cast<int32_t>(position.offset)};
            }
            emit(TapeOp::Element, address, from, position.cell);
            tape_.code.back().more = {extent, 0, static_cast<int32_t>(position.offset - (window ? places : 0))};
            from = address;
        }
        at.place = {TapePlace::Pointer, address, 0, nullptr};
    }
    at.place.offset += static_cast<int32_t>(offset);
    result = at;
    result.kind = TapeValue::Block;
    result.shaped = true;
    result.borrows = whole || array.borrows;
    result.cell = at.place.cell;
    result.ndim = shown.ndim;
    std::copy_n(shown.dims, shown.ndim, result.dims.begin());
    std::copy_n(shown.strides, shown.ndim, result.strides.begin());
    if (result.borrows) memories_[result.memory].relied_on = true;
    return !full_;
}

bool TapeBuilder::part(const TapeValue& array, const std::vector<ViewRecipe>& recipes, const Symbols* sizes,
                       const TapeValue* inputs, const std::vector<uint32_t>* integers, TapeValue& result) {
    result = array;
    if (array.kind == TapeValue::Array ? !is_current(array) : !readable(array)) return false;
    for (const ViewRecipe& recipe : recipes) {
        const TapeValue from = result;
        if (!part_of(from, recipe, sizes, inputs, integers, result)) return false;
    }
    if (result.ndim > 0) return !recipes.empty();
    if (recipes.empty() || !recipes.back().copies_item) return false;
    const TapeValue number = number_new(array.dtype);
    const auto bytes = PyDataType_ELSIZE(array.dtype);
    const uint16_t address = address_of(result);
    emit(bytes == 1   ? TapeOp::Fetch1
         : bytes == 2 ? TapeOp::Fetch2
         : bytes == 4 ? TapeOp::Fetch4
         : bytes == 8 ? TapeOp::Fetch8
                      : TapeOp::Fetch16,
         number.cell, address, 0);
    result = number;
    return !full_;
}

bool TapeBuilder::store_part(const TapeValue& array, const std::vector<ViewRecipe>& recipes, const Symbols* sizes,
                             const TapeValue* inputs, const std::vector<uint32_t>* integers, const TapeValue& value,
                             TapeValue& result) {
    if (recipes.empty() || value.dtype != array.dtype || !readable(value)) return false;
    const bool whole = array.kind == TapeValue::Array;
    if (whole ? !is_current(array) || !memories_[array.memory].writeable : !readable(array)) return false;
    if (whole && value.kind == TapeValue::Number && fill(array, recipes, sizes, inputs, integers, value)) {
        written(array, result);
        return !full_;
    }
    result = array;
    if (!whole) {
        // What was there before may still be read.
        result = like_new(array);
        if (result.kind != TapeValue::Block || !array.contiguous() || !copy(result, array)) return false;
    }
    TapeValue target = result;
    for (const ViewRecipe& recipe : recipes) {
        const TapeValue from = target;
        if (!part_of(from, recipe, sizes, inputs, integers, target)) return false;
    }
    if (!copy_elements(target, value, whole)) return false;
    if (whole) written(array, result);
    return !full_;
}

void TapeBuilder::written(const TapeValue& array, TapeValue& result) {
    Memory& memory = memories_[array.memory];
    memory.written = true;
    ++n_stores_;
    result = array;
    result.version = ++memory.version;
}

}  // namespace pyop
