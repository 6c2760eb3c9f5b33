// plan/machine_code/ir_cells.cpp: decide which cells are constants, variables and memory.
#include "plan/machine_code/ir_cells.h"

#include <algorithm>

namespace pyop {

bool visit_cells(const TapeInstruction& i, const CellVisitor& visitor) {
    const auto reads = [&](size_t cell, const IrType* type) { visitor.reads(static_cast<uint16_t>(cell), type); };
    const auto writes = [&](size_t cell, const IrType* type) { visitor.writes(static_cast<uint16_t>(cell), type); };
    const auto array = [&](size_t axes) {
        for (size_t k = 0; k <= 2 * axes; ++k) reads(i.b + k, &ir::I64);
    };
    switch (i.op) {
#define X(name, element)           \
    case TapeOp::name##element:    \
        reads(i.b, &ir::element);  \
        reads(i.c, &ir::element);  \
        writes(i.a, &ir::element); \
        return true;
        PYOP_TAPE_BINARY(X)
        PYOP_TAPE_LOGIC(X)
        PYOP_TAPE_WATCHED(X)
        PYOP_TAPE_CHECKED(X)
#undef X
#define X(name, element)          \
    case TapeOp::name##element:   \
        reads(i.b, &ir::element); \
        reads(i.c, &ir::element); \
        writes(i.a, &ir::Bool);   \
        return true;
        PYOP_TAPE_COMPARISON(X)
#undef X
#define X(name, element)           \
    case TapeOp::name##element:    \
        reads(i.b, &ir::element);  \
        writes(i.a, &ir::element); \
        return true;
        PYOP_TAPE_UNARY(X)
#undef X
#define X(from, to)                  \
    case TapeOp::From##from##To##to: \
        reads(i.b, &ir::from);       \
        writes(i.a, &ir::to);        \
        return true;
        PYOP_TAPE_CASTS(X)
#undef X
        case TapeOp::Not:
            reads(i.b, &ir::Bool);
            writes(i.a, &ir::Bool);
            return true;
        case TapeOp::Select:
            reads(i.more.d, &ir::Bool);
            visitor.moves(i.a, i.b);
            visitor.moves(i.a, i.c);
            return true;
        case TapeOp::Move:
            visitor.moves(i.a, i.b);
            return true;
        case TapeOp::Move16:
            visitor.gives_address(i.a);
            visitor.gives_address(i.b);
            return true;
        case TapeOp::Load1:
        case TapeOp::Load2:
        case TapeOp::Load4:
        case TapeOp::Load8:
            array(1);
            reads(i.c, &ir::I64);
            writes(i.a, nullptr);
            if (i.op == TapeOp::Load8) visitor.takes_whole(i.a);
            return true;
        case TapeOp::Load8At2:
            array(2);
            reads(i.c, &ir::I64);
            reads(i.more.d, &ir::I64);
            writes(i.a, nullptr);
            visitor.takes_whole(i.a);
            return true;
        case TapeOp::Store8:
            array(1);
            reads(i.c, &ir::I64);
            reads(i.a, nullptr);
            visitor.takes_whole(i.a);
            return true;
        case TapeOp::Store8At2:
            array(2);
            reads(i.c, &ir::I64);
            reads(i.more.d, &ir::I64);
            reads(i.a, nullptr);
            visitor.takes_whole(i.a);
            return true;
        case TapeOp::Element:
            reads(i.b, &ir::I64);
            reads(i.c, &ir::I64);
            reads(i.more.d, &ir::I64);
            reads(size_t{i.more.d} + 1, &ir::I64);
            writes(i.a, &ir::I64);
            return true;
        case TapeOp::Fetch1:
        case TapeOp::Fetch2:
        case TapeOp::Fetch4:
        case TapeOp::Fetch8:
            reads(i.b, &ir::I64);
            writes(i.a, nullptr);
            if (i.op == TapeOp::Fetch8) visitor.takes_whole(i.a);
            return true;
        case TapeOp::Put1:
        case TapeOp::Put2:
        case TapeOp::Put4:
        case TapeOp::Put8:
            reads(i.b, &ir::I64);
            reads(i.a, nullptr);
            if (i.op == TapeOp::Put8) visitor.takes_whole(i.a);
            return true;
        case TapeOp::Fetch16:
        case TapeOp::Put16:
            visitor.gives_address(i.a);
            reads(i.b, &ir::I64);
            return true;
        case TapeOp::CallKernel:
        case TapeOp::CallLoop:
            for (const uint16_t cell : i.call->cells) visitor.gives_address(cell);
            return true;
        case TapeOp::Compute:
            visitor.gives_address(i.a);
            visitor.gives_address(i.b);
            visitor.gives_address(i.c);
            return true;
        case TapeOp::Jump:
        case TapeOp::Stop:
            return true;
        case TapeOp::JumpIfFalse:
        case TapeOp::LeaveUnless:
            reads(i.a, &ir::Bool);
            return true;
        case TapeOp::Trips:
            reads(i.b, &ir::I64);
            reads(i.c, &ir::I64);
            writes(i.a, &ir::I64);
            writes(size_t{i.a} + 1, &ir::Bool);
            return true;
        case TapeOp::Repeat:
            reads(i.c, &ir::I64);
            [[fallthrough]];
        case TapeOp::Next:
            for (const uint16_t cell : {i.a, i.b}) {
                reads(cell, &ir::I64);
                writes(cell, &ir::I64);
            }
            return true;
        case TapeOp::Address:
        case TapeOp::Advance:
        case TapeOp::CallKernelOnBlock:
        case TapeOp::CallOnBlock:
            return false;
    }
    return false;
}

IrCells::IrCells(const Tape& tape, IrText& text, const TapeInstruction*& unknown)
    : tape_(tape), text_(text), cells_(tape.cells.size() + 1) {
    unknown = nullptr;
    for (size_t k = 0; k < cells_.size(); ++k) cells_[k].type_of = static_cast<uint16_t>(k);
    const auto note = [&](uint16_t c, Place place, const IrType* type) {
        Cell& cell = cells_[c];
        cell.place = std::max(cell.place, place);
        if (!type) return;
        Cell& types = cells_[root(c)];
        types.mixed |= types.type && !(*types.type == *type);
        types.type = type;
    };
    CellVisitor visitor;
    visitor.reads = [&](uint16_t c, const IrType* type) { note(c, Place::Constant, type); };
    visitor.writes = [&](uint16_t c, const IrType* type) { note(c, Place::Variable, type); };
    visitor.gives_address = [&](uint16_t c) {
        note(c, Place::Memory, nullptr);
        note(static_cast<uint16_t>(c + 1), Place::Memory, nullptr);
        cells_[root(c)].whole = true;
    };
    visitor.takes_whole = [&](uint16_t c) { cells_[root(c)].whole = true; };
    visitor.moves = [&](uint16_t to, uint16_t from) {
        note(from, Place::Constant, nullptr);
        note(to, Place::Variable, nullptr);
        Cell &a = cells_[root(to)], &b = cells_[root(from)];
        if (&a == &b) return;
        a.mixed |= b.mixed || (a.type && b.type && !(*a.type == *b.type));
        a.whole |= b.whole;
        if (!a.type) a.type = b.type;
        cells_[root(from)].type_of = root(to);
    };
    for (const TapeInstruction& i : tape.code)
        if (!visit_cells(i, visitor) && !unknown) unknown = &i;
    if (!unknown)
        for (size_t k = 0; k < cells_.size(); ++k) cells_[k].type_of = root(static_cast<uint16_t>(k));
}

uint16_t IrCells::root(uint16_t cell) {
    while (cells_[cell].type_of != cell) cell = cells_[cell].type_of;
    return cell;
}

const IrType& IrCells::type_of(uint16_t cell) const {
    const Cell& types = cells_[cells_[cell].type_of];
    // Two floats may be one number, of which the first is looked at.
    const bool one = types.type && types.type->floats && !types.mixed && (types.type->bits == 64 || !types.whole);
    return one ? *types.type : ir::U64;
}

const IrType& IrCells::moved_as(uint16_t cell, size_t bytes) const {
    const IrType& type = type_of(cell);
    return type.floats && type.bits == 8 * bytes ? type : integer_of(bytes);
}

// The lowest bytes of a value, in another type; what lies above them is nothing that anybody reads.
std::string IrCells::convert(const std::string& value, const IrType& from, const IrType& to) {
    if (from.name == to.name) return value;
    std::string bits = value;
    const IrType &here = integer_of(from.bits / 8), &there = integer_of(to.bits / 8);
    if (from.floats) bits = text_.define("bitcast " + std::string(from.name) + " " + bits + " to " + here.name);
    if (here.bits != there.bits)
        bits = text_.define((here.bits > there.bits ? "trunc " : "zext ") + std::string(here.name) + " " + bits +
                            " to " + there.name);
    return to.floats ? text_.define("bitcast " + std::string(there.name) + " " + bits + " to " + to.name) : bits;
}

std::string IrCells::address(uint16_t cell) {
    std::string& name = addresses_[cell];
    if (name.empty()) name = text_.define_at_entry("getelementptr i64, ptr %cells, i64 " + std::to_string(cell));
    return name;
}

std::string IrCells::variable(uint16_t cell) {
    std::string& name = cells_[cell].variable;
    if (!name.empty()) return name;
    const std::string type = type_of(cell).name;
    name = text_.define_at_entry("alloca " + type);
    const std::string given = text_.define_at_entry("load " + type + ", ptr " + address(cell) + ", align 8");
    text_.line_at_entry("store " + type + " " + given + ", ptr " + name);
    return name;
}

std::string IrCells::read(uint16_t cell, const IrType& type) {
    const std::string name = type.name;
    switch (cells_[cell].place) {
        case Place::Variable: {
            const std::string held =
                text_.define("load " + std::string(type_of(cell).name) + ", ptr " + variable(cell));
            return convert(held, type_of(cell), type);
        }
        case Place::Memory:
            return text_.define("load " + name + ", ptr " + address(cell) + ", align 8");
        default: {
            if (type.name == ir::kI64 &&
                std::find(tape_.integers.begin(), tape_.integers.end(), cell) != tape_.integers.end())
                return std::to_string(tape_.cells[cell].I64);
            std::string& value = constants_[{cell, type.name}];
            if (value.empty()) value = text_.define_at_entry("load " + name + ", ptr " + address(cell) + ", align 8");
            return value;
        }
    }
}

void IrCells::write(uint16_t cell, const IrType& type, const std::string& value) {
    if (cells_[cell].place == Place::Memory) {
        text_.line("store " + std::string(type.name) + " " + value + ", ptr " + address(cell) + ", align 8");
        return;
    }
    const IrType& held = type_of(cell);
    text_.line("store " + std::string(held.name) + " " + convert(value, type, held) + ", ptr " + variable(cell));
}

void IrCells::store_back(uint16_t cell) {
    if (cells_[cell].place != Place::Variable) return;
    const IrType& type = type_of(cell);
    text_.line("store " + std::string(type.name) + " " + read(cell, type) + ", ptr " + address(cell) + ", align 8");
}

}  // namespace pyop
