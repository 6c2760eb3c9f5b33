// plan/machine_code/ir_arithmetic.h: write the operations of a tape as LLVM's, with the bits and the flags of the
// interpreter.
//
// Floating-point flags are results: NumPy warns by them. LLVM takes it that nobody looks at them, and drops, moves and
// speculates operations as it likes; so whatever may raise one of the four flags that NumPy knows is an intrinsic that
// it may not touch ("fpexcept.strict"). Sums and products are instructions of the processor: of two NaN one is the
// result, by their order, and LLVM exchanges operands. Conversions of integers, signs, and moves raise none of the
// four.
#pragma once

#include "plan/machine_code/ir_cells.h"

namespace pyop {

// What an operation needs of the function around it.
class IrArithmetic {
  public:
    IrArithmetic(IrText& text, IrCells& cells) : text_(text), cells_(cells) {}

    // Writes an operation on numbers. False: it is none.
    bool write(const TapeInstruction& instruction);
    // A byte that is not zero.
    std::string truth(uint16_t cell) { return is_true(cells_.read(cell, ir::Bool)); }
    // Goes to where the tape is left if that is so.
    void leave_if(const std::string& truth);
    // The number of an axis at a position, as NumPy counts, times its stride; leaves if there is none.
    std::string step_along(const std::string& position, uint16_t size_and_stride);
    std::string integer(const char* op, const std::string& x, const std::string& y) {
        return text_.define(std::string(op) + " i64 " + x + ", " + y);
    }

  private:
    using Value = std::string;
    Value of(const char* op, const IrType& t, const Value& x, const Value& y) {
        return text_.define(std::string(op) + " " + t.name + " " + x + ", " + y);
    }
    Value is_true(const Value& byte) { return text_.define("icmp ne i8 " + byte + ", 0"); }
    Value byte(const Value& truth) { return text_.define("zext i1 " + truth + " to i8"); }
    Value chosen(const IrType& t, const Value& truth, const Value& yes, const Value& no) {
        return text_.define("select i1 " + truth + ", " + t.name + " " + yes + ", " + t.name + " " + no);
    }
    Value compare(const char* ordered, const char* is_signed, const char* is_unsigned, const IrType& t, const Value& x,
                  const Value& y);
    Value compared(const char* how, const IrType& t, const Value& x, const Value& y);
    Value strict(const char* op, const IrType& t, const Value& x, const Value& y);
    Value instruction(const char* op, const IrType& t, const Value& x, const Value& y, TapeOp does);
    Value shifted(const char* op, const IrType& t, const Value& x, const Value& y, const Value& beyond);
    Value overflowing(const char* op, const IrType& t, const Value& x, const Value& y, Value& overflows);
    Value watched(const char* op, const IrType& t, const Value& x, const Value& y);
    Value checked(const char* op, const IrType& t, const Value& x, const Value& y);
    void leave_unless_divides(const IrType& t, const Value& x, const Value& y);
    Value converted(const IrType& from, const IrType& to, const Value& x);

    // One for each name of tape_ops.h.
    Value Add(const IrType& t, const Value& x, const Value& y);
    Value Subtract(const IrType& t, const Value& x, const Value& y);
    Value Multiply(const IrType& t, const Value& x, const Value& y);
    Value Minimum(const IrType& t, const Value& x, const Value& y);
    Value Maximum(const IrType& t, const Value& x, const Value& y);
    Value Divide(const IrType& t, const Value& x, const Value& y);
    Value BitwiseAnd(const IrType& t, const Value& x, const Value& y) { return of("and", t, x, y); }
    Value BitwiseOr(const IrType& t, const Value& x, const Value& y) { return of("or", t, x, y); }
    Value BitwiseXor(const IrType& t, const Value& x, const Value& y) { return of("xor", t, x, y); }
    Value LeftShift(const IrType& t, const Value& x, const Value& y);
    Value RightShift(const IrType& t, const Value& x, const Value& y);
    Value Less(const IrType& t, const Value& x, const Value& y) { return compare("olt", "slt", "ult", t, x, y); }
    Value LessEqual(const IrType& t, const Value& x, const Value& y) { return compare("ole", "sle", "ule", t, x, y); }
    Value Equal(const IrType& t, const Value& x, const Value& y) { return compare("oeq", "eq", "eq", t, x, y); }
    Value NotEqual(const IrType& t, const Value& x, const Value& y) { return compare("une", "ne", "ne", t, x, y); }
    Value Negative(const IrType& t, const Value& x);
    Value Absolute(const IrType& t, const Value& x);
    Value Square(const IrType& t, const Value& x) { return Multiply(t, x, x); }
    Value Sqrt(const IrType& t, const Value& x);
    Value LogicalAnd(const IrType&, const Value& x, const Value& y) { return logic("and", x, y); }
    Value LogicalOr(const IrType&, const Value& x, const Value& y) { return logic("or", x, y); }
    Value LogicalXor(const IrType&, const Value& x, const Value& y) { return logic("xor", x, y); }
    Value logic(const char* op, const Value& x, const Value& y);
    Value AddWatched(const IrType& t, const Value& x, const Value& y) { return watched("add", t, x, y); }
    Value SubtractWatched(const IrType& t, const Value& x, const Value& y) { return watched("sub", t, x, y); }
    Value MultiplyWatched(const IrType& t, const Value& x, const Value& y) { return watched("mul", t, x, y); }
    Value AddChecked(const IrType& t, const Value& x, const Value& y) { return checked("add", t, x, y); }
    Value SubtractChecked(const IrType& t, const Value& x, const Value& y) { return checked("sub", t, x, y); }
    Value MultiplyChecked(const IrType& t, const Value& x, const Value& y) { return checked("mul", t, x, y); }
    Value FloorDivide(const IrType& t, const Value& x, const Value& y);
    Value Remainder(const IrType& t, const Value& x, const Value& y);
    Value DivideChecked(const IrType& t, const Value& x, const Value& y);

    IrText& text_;
    IrCells& cells_;
};

}  // namespace pyop
