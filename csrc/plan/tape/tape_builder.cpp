// plan/tape/tape_builder.cpp: make cells for values, and instructions for operations and elements.
#include "plan/tape/tape_builder.h"

#include <algorithm>

#include "plan/tape/element_cast.h"

namespace pyop {

namespace {

PyArray_Descr* intp() {
    PyArray_Descr* d = PyArray_DescrFromType(NPY_INTP);  // lives for ever
    Py_DECREF(d);
    return d;
}

struct TapeRow {
    Operation does;
    Element element;
    TapeOp op;
};
constexpr TapeRow kTapeRows[] = {
#define X(name, element) {Operation::name, Element::element, TapeOp::name##element},
    PYOP_TAPE_BINARY(X) PYOP_TAPE_COMPARISON(X) PYOP_TAPE_UNARY(X) PYOP_TAPE_LOGIC(X)
#undef X
};

TapeOp by_size(size_t bytes, TapeOp one, TapeOp two, TapeOp four, TapeOp eight, TapeOp sixteen) {
    return bytes == 1 ? one : bytes == 2 ? two : bytes == 4 ? four : bytes == 8 ? eight : sixteen;
}

}  // namespace

bool TapeBuilder::fits(PyArray_Descr* d) {
    if (!d || !(PyTypeNum_ISNUMBER(d->type_num) || d->type_num == NPY_BOOL)) return false;
    if (PyDataType_ELSIZE(d) > 16 || d->type_num == NPY_LONGDOUBLE || d->type_num == NPY_CLONGDOUBLE) return false;
    PyArray_Descr* builtin = PyArray_DescrFromType(d->type_num);
    Py_DECREF(builtin);
    return d == builtin;
}

void TapeBuilder::emit(TapeOp op, uint16_t a, uint16_t b, uint16_t c, int64_t number) {
    TapeInstruction i{};
    i.op = op;
    i.a = a;
    i.b = b;
    i.c = c;
    i.number = number;
    tape_.code.push_back(i);
}

uint16_t TapeBuilder::cells_new(size_t n, bool even) {
    size_t first = tape_.cells.size();
    if (even && first % 2) ++first;
    if (first + n > UINT16_MAX) {
        full_ = true;
        return 0;
    }
    tape_.cells.resize(first + n, TapeCell{.I64 = 0});
    return static_cast<uint16_t>(first);
}

Tape TapeBuilder::finish() {
    // What each run begins with is copied, but for long stretches that it writes itself.
    constexpr size_t kWorthwhile = 16;
    size_t from = 0;
    const auto fill = [&](size_t end) {
        if (end > from) tape_.filled.emplace_back(static_cast<uint16_t>(from), static_cast<uint16_t>(end - from));
    };
    for (const auto& [first, n] : scratch_) {
        if (n < kWorthwhile) continue;
        fill(first);
        from = first + n;
    }
    fill(tape_.cells.size());
    return std::move(tape_);
}

// --- values

TapeValue TapeBuilder::number_new(PyArray_Descr* dtype) {
    TapeValue value;
    if (!fits(dtype)) return value;
    value.kind = TapeValue::Number;
    value.dtype = dtype;
    value.cell = cells_new(cells_of(dtype), cells_of(dtype) > 1);
    return value;
}

TapeValue TapeBuilder::constant(const void* bytes, PyArray_Descr* dtype) {
    if (!fits(dtype)) return {};
    const auto size = static_cast<size_t>(PyDataType_ELSIZE(dtype));
    const std::string key = std::to_string(dtype->type_num) + ":" + std::string(static_cast<const char*>(bytes), size);
    if (const auto it = constants_.find(key); it != constants_.end()) {
        TapeValue value;
        value.kind = TapeValue::Number;
        value.dtype = dtype;
        value.cell = it->second;
        return value;
    }
    const TapeValue value = number_new(dtype);
    if (full_) return {};
    std::memcpy(&tape_.cells[value.cell], bytes, size);
    constants_.emplace(key, value.cell);
    if (dtype == intp()) tape_.integers.push_back(value.cell);
    return value;
}

TapeValue TapeBuilder::integer(int64_t number) { return constant(&number, intp()); }

TapeValue TapeBuilder::position(const TapeValue& number) {
    if (number.kind != TapeValue::Number || !PyTypeNum_ISINTEGER(number.dtype->type_num)) return {};
    if (number.dtype == intp()) return number;
    const TapeValue made = number_new(intp());
    TapeCall::Function* const fits = find_store_cast(number.dtype->type_num, NPY_INTP);
    return fits && compute(fits, nullptr, made, number, number) ? made : TapeValue{};
}

TapeValue TapeBuilder::array_new(PyArray_Descr* dtype, int ndim, bool writeable, const npy_intp* dims) {
    TapeValue value;
    if (!fits(dtype) || ndim < 1) return value;
    value.kind = TapeValue::Array;
    value.dtype = dtype;
    value.ndim = ndim;
    value.cell = cells_new(1 + 2 * static_cast<size_t>(ndim));
    value.memory = static_cast<uint32_t>(memories_.size());
    memories_.push_back({writeable});
    if (!dims || ndim > TapeValue::kAxes) return value;
    value.shaped = true;
    npy_intp step = PyDataType_ELSIZE(dtype);
    for (auto d = static_cast<size_t>(ndim); d-- > 0;) {
        value.dims[d] = dims[d];
        value.strides[d] = step;
        step *= dims[d];
    }
    return value;
}

TapeValue TapeBuilder::known(PyObject* object) {
    if (!is_exact_array(object)) return {};
    PyArrayObject* a = as_array(object);
    if (!PyArray_ISALIGNED(a)) return {};
    if (PyArray_NDIM(a) == 0) return constant(PyArray_DATA(a), PyArray_DESCR(a));
    if (TapeValue block = known_block(a); block.kind != TapeValue::None) return block;
    const npy_intp* dims = PyArray_IS_C_CONTIGUOUS(a) ? PyArray_DIMS(a) : nullptr;
    TapeValue value = array_new(PyArray_DESCR(a), PyArray_NDIM(a), false, dims);
    if (value.kind == TapeValue::None || full_) return {};
    TapeCell* cell = &tape_.cells[value.cell];
    cell++->data = PyArray_BYTES(a);
    for (int d = 0; d < value.ndim; ++d) {
        cell++->I64 = PyArray_DIM(a, d);
        cell++->I64 = PyArray_STRIDE(a, d);
    }
    return value;
}

// --- operations

bool TapeBuilder::operation(TapeOp op, const TapeValue& result, const TapeValue& x, const TapeValue& y) {
    emit(op, result.cell, x.cell, y.cell);
    return !full_;
}

bool TapeBuilder::operation(Operation does, Element element, const TapeValue* operands, size_t n) {
    if (does == Operation::Greater || does == Operation::GreaterEqual) {
        const TapeValue swapped[] = {operands[1], operands[0], operands[2]};
        const bool strict = does == Operation::Greater;
        return operation(strict ? Operation::Less : Operation::LessEqual, element, swapped, n);
    }
    if (does == Operation::Where) return select(operands[3], operands[0], operands[1], operands[2]);
    if (element == Element::Bool) {
        if (does == Operation::BitwiseAnd || does == Operation::Multiply) does = Operation::LogicalAnd;
        if (does == Operation::BitwiseOr || does == Operation::Add) does = Operation::LogicalOr;
        if (does == Operation::BitwiseXor || does == Operation::NotEqual) does = Operation::LogicalXor;
        if (does == Operation::LogicalNot || does == Operation::Invert) {
            emit(TapeOp::Not, operands[1].cell, operands[0].cell, 0);
            return !full_;
        }
    }
    if (does == Operation::Positive && size_of(element) <= 8 && element != Element::Bool) {
        emit(TapeOp::Move, operands[1].cell, operands[0].cell, 0);
        return !full_;
    }
    for (const TapeRow& row : kTapeRows) {
        if (row.does != does || row.element != element) continue;
        const bool binary = n == 3;
        emit(row.op, operands[n - 1].cell, operands[0].cell, binary ? operands[1].cell : uint16_t{0});
        return !full_;
    }
    return false;
}

bool TapeBuilder::select(const TapeValue& result, const TapeValue& truth, const TapeValue& yes, const TapeValue& no) {
    if (cells_of(result.dtype) == 1) {
        emit(TapeOp::Select, result.cell, yes.cell, no.cell);
        tape_.code.back().more = {truth.cell, 0, 0};
        return !full_;
    }
    const size_t otherwise = here();
    emit(TapeOp::JumpIfFalse, truth.cell, 0, 0);
    if (!move(result, yes)) return false;
    const size_t end = here();
    emit(TapeOp::Jump, 0, 0, 0);
    jump_here(otherwise);
    if (!move(result, no)) return false;
    jump_here(end);
    return true;
}

bool TapeBuilder::cast(const TapeValue& to, const TapeValue& from) {
    const int a = from.dtype->type_num, b = to.dtype->type_num;
    const auto is = [](int type, Element e) {
        switch (e) {
            case Element::Bool:
                return type == NPY_BOOL;
            case Element::U8:
                return type == NPY_UINT8;
            case Element::I32:
                return type == NPY_INT32;
            case Element::I64:
                return type == NPY_INT64;
            case Element::F32:
                return type == NPY_FLOAT;
            case Element::F64:
                return type == NPY_DOUBLE;
            default:
                return false;
        }
    };
#define X(f, t)                                              \
    if (is(a, Element::f) && is(b, Element::t)) {            \
        emit(TapeOp::From##f##To##t, to.cell, from.cell, 0); \
        return !full_;                                       \
    }
    PYOP_TAPE_CASTS(X)
#undef X
    TapeCall::Function* const function = find_element_cast(a, b);
    return function && compute(function, nullptr, to, from, from);
}

bool TapeBuilder::call(TapeCall call) {
    if (call.cells.size() > 8) return false;
    const TapeOp op = call.kernel ? TapeOp::CallKernel : TapeOp::CallLoop;
    return emit_call(op, std::move(call));
}

bool TapeBuilder::emit_call(TapeOp op, TapeCall call) {
    tape_.calls_loops |= call.loop != nullptr;
    emit(op, 0, 0, 0);
    tape_.calls.push_back(std::make_unique<TapeCall>(std::move(call)));
    tape_.code.back().call = tape_.calls.back().get();
    return !full_;
}

bool TapeBuilder::compute(TapeCall::Function* function, const void* self, const TapeValue& result, const TapeValue& x,
                          const TapeValue& y) {
    auto made = std::make_unique<TapeCall>();
    made->function = function;
    made->self = self;
    tape_.calls_loops = true;  // steps put flags back by feraiseexcept, which goes by the x87 unit for some
    emit(TapeOp::Compute, result.cell, x.cell, y.cell);
    tape_.code.back().call = made.get();
    tape_.calls.push_back(std::move(made));
    return !full_;
}

bool TapeBuilder::move(const TapeValue& to, const TapeValue& from) {
    if (from.kind == TapeValue::Block && to.kind == TapeValue::Block)
        return to.dtype == from.dtype && to.ndim == from.ndim && to.dims == from.dims && from.contiguous() &&
               copy(to, from);
    if (from.kind != TapeValue::Number || to.dtype != from.dtype) return false;
    if (to.cell != from.cell) emit(cells_of(to.dtype) > 1 ? TapeOp::Move16 : TapeOp::Move, to.cell, from.cell, 0);
    return !full_;
}

bool TapeBuilder::part_of_complex(const TapeValue& number, bool imaginary, TapeValue& result) {
    const int type = number.dtype->type_num;
    if (type != NPY_CFLOAT && type != NPY_CDOUBLE) {
        result = number;
        return !imaginary;
    }
    PyArray_Descr* const real = PyArray_DescrFromType(type == NPY_CFLOAT ? NPY_FLOAT : NPY_DOUBLE);  // lives for ever
    Py_DECREF(real);
    result = number_new(real);
    if (type == NPY_CDOUBLE) {
        emit(TapeOp::Move, result.cell, static_cast<uint16_t>(number.cell + imaginary), 0);
    } else if (!imaginary) {
        emit(TapeOp::Move, result.cell, number.cell, 0);  // the first half of the cell
    } else {
        emit(TapeOp::RightShiftU64, result.cell, number.cell, integer(32).cell);
    }
    return !full_;
}

bool TapeBuilder::leave_unless(const TapeValue& truth, bool holds) {
    if (truth.kind != TapeValue::Number || truth.dtype->type_num != NPY_BOOL) return false;
    emit(TapeOp::LeaveUnless, truth.cell, 0, 0, holds);
    return !full_;
}

TapeBuilder::Mark TapeBuilder::mark() const {
    Mark mark{tape_.code.size(), tape_.calls.size(), {}};
    for (const Memory& memory : memories_) mark.memories.emplace_back(memory.version, memory.written);
    return mark;
}

void TapeBuilder::reset(const Mark& mark) {
    tape_.code.resize(mark.code);
    tape_.calls.resize(mark.calls);
    while (!tape_.ahead.empty() && tape_.ahead.back() >= mark.calls) tape_.ahead.pop_back();
    memories_.resize(mark.memories.size());
    for (size_t k = 0; k < memories_.size(); ++k) {
        memories_[k].version = mark.memories[k].first;
        memories_[k].written = mark.memories[k].second;
    }
}

// --- elements

bool TapeBuilder::place_of_poly(const SizePoly& poly, const Symbols& sizes, const TapeValue* inputs, Place& place) {
    const auto symbol = [&](uint16_t k, uint16_t& cell) {
        const auto [array, axis] = sizes.carriers[k];
        const TapeValue& value = inputs[array];
        if (axis < 0 ? !value.is_number(intp()) : value.kind != TapeValue::Array || value.ndim <= axis) return false;
        cell = static_cast<uint16_t>(axis < 0 ? value.cell : value.cell + 1 + 2 * axis);
        return true;
    };
    place = {0, 0};
    bool any = false;
    TapeValue sum;
    for (const SizePoly::Term& term : poly.terms) {
        if (term.symbols.empty()) {
            if (__builtin_add_overflow(place.offset, term.factor, &place.offset)) return false;
            continue;
        }
        uint16_t cell;
        if (!symbol(term.symbols[0], cell)) return false;
        for (size_t k = 1; k < term.symbols.size(); ++k) {
            uint16_t other;
            if (!symbol(term.symbols[k], other)) return false;
            const TapeValue product = number_new(intp());
            emit(TapeOp::MultiplyCheckedI64, product.cell, cell, other);
            cell = product.cell;
        }
        if (term.factor != 1) {
            const TapeValue factor = integer(term.factor), product = number_new(intp());
            emit(TapeOp::MultiplyCheckedI64, product.cell, cell, factor.cell);
            cell = product.cell;
        }
        if (any) {
            const TapeValue both = number_new(intp());
            emit(TapeOp::AddCheckedI64, both.cell, place.cell, cell);
            cell = both.cell;
        }
        place.cell = cell;
        any = true;
    }
    if (!any) place.cell = integer(0).cell;
    return !full_;
}

bool TapeBuilder::size(const Symbols& sizes, uint32_t which, const TapeValue* inputs, TapeValue& result) {
    Place place;
    if (!place_of_poly(sizes.sizes[which].poly, sizes, inputs, place)) return false;
    result = number_new(intp());
    emit(TapeOp::AddCheckedI64, result.cell, place.cell, integer(place.offset).cell);
    return !full_;
}

bool TapeBuilder::place(const ViewSize& at, const Symbols* sizes, const TapeValue* inputs,
                        const std::vector<uint32_t>* integers, Place& place) {
    const size_t own = sizes ? sizes->sizes.size() : 0;
    if (at.expr < 0) {
        place = {integer(0).cell, at.value};
    } else if (static_cast<size_t>(at.expr) >= own) {
        if (!integers || static_cast<size_t>(at.expr) - own >= integers->size()) return false;
        const TapeValue at_run = position(inputs[(*integers)[static_cast<size_t>(at.expr) - own]]);
        if (at_run.kind == TapeValue::None) return false;
        place = {at_run.cell, 0};
    } else {
        if (!sizes || !sizes->sizes[static_cast<size_t>(at.expr)].is_poly) return false;
        if (!place_of_poly(sizes->sizes[static_cast<size_t>(at.expr)].poly, *sizes, inputs, place)) return false;
    }
    if (place.offset >= INT16_MIN && place.offset <= INT16_MAX) return !full_;
    const TapeValue by = integer(place.offset), moved = number_new(intp());
    emit(TapeOp::AddCheckedI64, moved.cell, place.cell, by.cell);
    place = {moved.cell, 0};
    return !full_;
}

bool TapeBuilder::places_of(const std::vector<AxisItem>& items, const Symbols* sizes, const TapeValue* inputs,
                            const std::vector<uint32_t>* integers, const TapeValue& array, std::vector<Place>& places) {
    if (array.kind != TapeValue::Array || array.ndim != static_cast<int>(items.size())) return false;
    places.resize(items.size());
    for (const AxisItem& item : items)
        if (!place(item.start, sizes, inputs, integers, places[item.axis])) return false;
    return true;
}

bool TapeBuilder::access(bool stores, const TapeValue& array, const std::vector<Place>& places, uint16_t value) {
    const auto bytes = static_cast<size_t>(PyDataType_ELSIZE(array.dtype));
    if (places.size() == 1 && bytes <= 8 && (!stores || bytes == 8)) {
        const TapeOp op =
            stores ? TapeOp::Store8
                   : by_size(bytes, TapeOp::Load1, TapeOp::Load2, TapeOp::Load4, TapeOp::Load8, TapeOp::Load8);
        emit(op, value, array.cell, places[0].cell, places[0].offset);
        return !full_;
    }
    if (places.size() == 2 && bytes == 8) {
        emit(stores ? TapeOp::Store8At2 : TapeOp::Load8At2, value, array.cell, places[0].cell);
        tape_.code.back().more = {places[1].cell, static_cast<int16_t>(places[0].offset),
                                  static_cast<int32_t>(places[1].offset)};
        return !full_;
    }
    uint16_t from = array.cell;
    const uint16_t address = cells_new(1);
    for (size_t d = 0; d < places.size(); ++d) {
        emit(TapeOp::Element, address, from, places[d].cell);
        tape_.code.back().more = {static_cast<uint16_t>(array.cell + 1 + 2 * d), 0,
                                  static_cast<int32_t>(places[d].offset)};
        from = address;
    }
    emit(stores ? by_size(bytes, TapeOp::Put1, TapeOp::Put2, TapeOp::Put4, TapeOp::Put8, TapeOp::Put16)
                : by_size(bytes, TapeOp::Fetch1, TapeOp::Fetch2, TapeOp::Fetch4, TapeOp::Fetch8, TapeOp::Fetch16),
         value, address, 0);
    return !full_;
}

bool TapeBuilder::load_at(const TapeValue& array, const std::vector<Place>& places, TapeValue& result) {
    if (!is_current(array)) return false;
    result = number_new(array.dtype);
    return access(false, array, places, result.cell);
}

bool TapeBuilder::store_at(const TapeValue& array, const std::vector<Place>& places, const TapeValue& value,
                           TapeValue& result) {
    if (!is_current(array) || !value.is_number(array.dtype)) return false;
    Memory& memory = memories_[array.memory];
    if (!memory.writeable || !access(true, array, places, value.cell)) return false;
    memory.written = true;
    ++n_stores_;
    result = array;
    result.version = ++memory.version;
    return true;
}

bool TapeBuilder::load(const TapeValue& array, const std::vector<AxisItem>& items, const Symbols* sizes,
                       const TapeValue* inputs, TapeValue& result, const std::vector<uint32_t>* integers) {
    std::vector<Place> places;
    return places_of(items, sizes, inputs, integers, array, places) && load_at(array, places, result);
}

bool TapeBuilder::load(const TapeValue& array, const TapeValue& number, TapeValue& result) {
    const TapeValue at = position(number);
    if (at.kind == TapeValue::None) return false;
    if (array.kind == TapeValue::Block) return load_of_block(array, at, result);
    return array.kind == TapeValue::Array && array.ndim == 1 && load_at(array, {{at.cell, 0}}, result);
}

bool TapeBuilder::store(const TapeValue& array, const std::vector<AxisItem>& items, const Symbols* sizes,
                        const TapeValue* inputs, const TapeValue& value, TapeValue& result,
                        const std::vector<uint32_t>* integers) {
    std::vector<Place> places;
    return places_of(items, sizes, inputs, integers, array, places) && store_at(array, places, value, result);
}

bool TapeBuilder::store(const TapeValue& array, const TapeValue& number, const TapeValue& value, TapeValue& result) {
    const TapeValue at = position(number);
    if (at.kind == TapeValue::None) return false;
    if (array.kind == TapeValue::Block) return store_in_block(array, at, value, result);
    return array.kind == TapeValue::Array && array.ndim == 1 && store_at(array, {{at.cell, 0}}, value, result);
}

}  // namespace pyop
