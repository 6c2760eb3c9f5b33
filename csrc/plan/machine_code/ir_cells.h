// plan/machine_code/ir_cells.h: write the cells of a tape as machine code has them.
//
// A cell that nothing on the tape writes is a value of LLVM's: an integer that is the same in every run stands in the
// text, others are loaded where the function begins. One whose address is
// given to C stays where it is, in the memory of the run. All others are variables, which LLVM keeps in registers; a
// variable that is always read and written as one floating-point type is of that type.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "plan/tape/tape.h"

namespace pyop {

// A type of numbers, as LLVM names it.
struct IrType {
    const char* name;
    unsigned bits;
    bool floats, is_signed;

    bool operator==(const IrType& other) const { return name == other.name && is_signed == other.is_signed; }
};

namespace ir {
inline constexpr char kI8[] = "i8", kI16[] = "i16", kI32[] = "i32", kI64[] = "i64", kF32[] = "float", kF64[] = "double";
inline constexpr IrType Bool{kI8, 8, false, false}, U8{kI8, 8, false, false}, I8{kI8, 8, false, true},
    I16{kI16, 16, false, true}, U16{kI16, 16, false, false}, I32{kI32, 32, false, true}, U32{kI32, 32, false, false},
    I64{kI64, 64, false, true}, U64{kI64, 64, false, false}, F32{kF32, 32, true, true}, F64{kF64, 64, true, true};
}  // namespace ir

inline const IrType& integer_of(size_t bytes) {
    return bytes == 1 ? ir::U8 : bytes == 2 ? ir::U16 : bytes == 4 ? ir::U32 : ir::U64;
}

// What an instruction does to cells. `type`: null where bytes are moved, whatever they are.
struct CellVisitor {
    std::function<void(uint16_t cell, const IrType* type)> reads, writes;
    std::function<void(uint16_t cell)> gives_address;  // of it and the next one
    std::function<void(uint16_t to, uint16_t from)> moves;  // they had better be of one type
    std::function<void(uint16_t cell)> takes_whole;  // all of its bytes, of whatever type
};
// False: this instruction has no machine code.
bool visit_cells(const TapeInstruction& instruction, const CellVisitor& visitor);

// Text of LLVM's, in the making: a function's entry and what follows it.
class IrText {
  public:
    std::string define(const std::string& value) {
        const std::string name = "%t" + std::to_string(n_++);
        line(name + " = " + value);
        return name;
    }
    void line(const std::string& text) { body_ += "  " + text + "\n"; }
    void block(const std::string& label) { body_ += label + ":\n"; }
    void jump(const std::string& label) { line("br label %" + label); }
    void branch(const std::string& truth, const std::string& yes, const std::string& no, const char* hint = "") {
        line("br i1 " + truth + ", label %" + yes + ", label %" + no + hint);
    }
    std::string label_new(const char* stem) { return stem + std::to_string(n_++); }
    // At the entry of the function, where it is executed once.
    std::string define_at_entry(const std::string& value) {
        const std::string name = "%e" + std::to_string(n_++);
        entry_ += "  " + name + " = " + value + "\n";
        return name;
    }
    void line_at_entry(const std::string& text) { entry_ += "  " + text + "\n"; }
    std::string text() const { return "entry:\n" + entry_ + "  br label %begin\nbegin:\n" + body_; }

  private:
    std::string entry_, body_;
    size_t n_ = 0;
};

class IrCells {
  public:
    // The text must live as long. `unknown`: the first instruction that has no machine code, or null.
    IrCells(const Tape& tape, IrText& text, const TapeInstruction*& unknown);

    std::string read(uint16_t cell, const IrType& type);
    void write(uint16_t cell, const IrType& type, const std::string& value);
    // As which type so many bytes are best moved into or out of the cell; or whatever is in it.
    const IrType& moved_as(uint16_t cell, size_t bytes) const;
    const IrType& moved_as(uint16_t cell) const { return type_of(cell); }
    std::string pointer(uint16_t cell) { return text_.define("inttoptr i64 " + read(cell, ir::I64) + " to ptr"); }
    // The address of the cell in the memory of the run.
    std::string address(uint16_t cell);
    // Writes a variable where the run finds it.
    void store_back(uint16_t cell);

  private:
    enum class Place : uint8_t { Unused, Constant, Variable, Memory };
    struct Cell {
        Place place = Place::Unused;
        uint16_t type_of = 0;  // the cell that has the type of its variables
        const IrType* type = nullptr;
        bool mixed = false, whole = false;
        std::string variable;
    };
    uint16_t root(uint16_t cell);
    const IrType& type_of(uint16_t cell) const;
    std::string convert(const std::string& value, const IrType& from, const IrType& to);
    std::string variable(uint16_t cell);

    const Tape& tape_;
    IrText& text_;
    std::vector<Cell> cells_;
    std::map<std::pair<uint16_t, const char*>, std::string> constants_;
    std::map<uint16_t, std::string> addresses_;
};

}  // namespace pyop
