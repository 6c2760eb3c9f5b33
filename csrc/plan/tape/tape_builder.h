// plan/tape/tape_builder.h: let native steps record themselves on a tape (TapeBuilder).
//
// Values are single numbers, each in a cell, and arrays, of which elements are read and written where they lie. A graph
// has values, not places: an array that was written is another value, and who reads the old one behind the write gets
// no tape. Blocks are arrays of few elements whose shape is known beforehand (tape_blocks.cpp): their elements lie in
// cells, and a part of an array, or of a constant, is one where it lies. Whatever a builder is asked for that it cannot
// do, it answers false, and what was written down is thrown away.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>

#include "array/call/tree_call.h"
#include "array/view/view_recipe.h"
#include "plan/tape/tape.h"

namespace pyop {

struct Program;

// How many cells a number takes.
inline size_t cells_of(PyArray_Descr* dtype) { return PyDataType_ELSIZE(dtype) > 8 ? 2 : 1; }

struct TapeValue {
    static constexpr int kAxes = 4;  // of a block, or of an array whose shape is known
    enum Kind : uint8_t { None, Number, Array, Block } kind = None;
    int ndim = 0;
    // Of a number; or of an array: where it lies, then size and stride of each axis.
    uint16_t cell = 0;
    PyArray_Descr* dtype = nullptr;  // borrowed; one of NumPy's own, which live for ever
    uint32_t memory = 0;  // of an array: whose memory it shows
    uint32_t version = 0;  // and when
    // Of a block, and of an array if it is `shaped`: it lies in C order then.
    bool shaped = false;
    std::array<npy_intp, kAxes> dims{}, strides{};
    TapePlace place;  // of a block
    bool borrows = false;  // a block that is a part of `memory`

    bool is_number(PyArray_Descr* of) const { return kind == Number && dtype == of; }
    npy_intp size() const {
        npy_intp n = 1;
        for (int d = 0; d < ndim; ++d) n *= dims[static_cast<size_t>(d)];
        return n;
    }
    // As NumPy has it: the strides of axes of one element do not matter.
    bool contiguous() const {
        npy_intp step = PyDataType_ELSIZE(dtype);
        for (auto d = static_cast<size_t>(ndim); d-- > 0;) {
            if (dims[d] != 1 && strides[d] != step) return false;
            step *= dims[d];
        }
        return true;
    }
};

class TapeBuilder {
  public:
    using Symbols = TreeCallObject::Layout;

    static constexpr npy_intp kMostElements = 64;  // of a block in a loop

    // `most_elements`: of a block; 0: values are no blocks. `anywhere`: the tape runs on threads that hold no GIL, so
    // nothing on it may look for, or set, a Python error.
    explicit TapeBuilder(npy_intp most_elements = 0, bool anywhere = false)
        : most_elements_(most_elements), anywhere_(anywhere) {}

    // --- values

    // Whether a dtype is one of NumPy's own, of at most 16 bytes, which need no more than 8 of alignment.
    static bool fits(PyArray_Descr* dtype);
    // A number that an operation is about to write.
    TapeValue number_new(PyArray_Descr* dtype);
    TapeValue constant(const void* bytes, PyArray_Descr* dtype);
    // An array of that kind, whose place the run will tell; `writeable`: it is the run's own; `dims`: if they are
    // known.
    TapeValue array_new(PyArray_Descr* dtype, int ndim, bool writeable, const npy_intp* dims = nullptr);
    // A constant of a program. None if it is neither.
    TapeValue known(PyObject* object);

    // --- operations

    bool operation(TapeOp op, const TapeValue& result, const TapeValue& x, const TapeValue& y);
    // One of the kernels' operations, by instructions of the tape's own if there are any. False: use call().
    bool operation(Operation does, Element element, const TapeValue* operands, size_t n);
    // As `astype`.
    bool cast(const TapeValue& to, const TapeValue& from);
    bool select(const TapeValue& result, const TapeValue& truth, const TapeValue& yes, const TapeValue& no);
    bool call(TapeCall call);
    bool compute(TapeCall::Function* function, const void* self, const TapeValue& result, const TapeValue& x,
                 const TapeValue& y);
    bool move(const TapeValue& to, const TapeValue& from);
    // The real or the imaginary part of a number; that of a real number is not imaginary.
    bool part_of_complex(const TapeValue& number, bool imaginary, TapeValue& result);

    // A symbolic size: the number of one of `sizes`, of the shapes of inputs, or of numbers among them.
    bool size(const Symbols& sizes, uint32_t which, const TapeValue* inputs, TapeValue& result);

    // The element of an array at positions along its axes (ViewRecipe::places), or at a number. `integers`: the inputs
    // that are the sizes behind those of the call (plan/steps/computed_key.h); may be null.
    bool load(const TapeValue& array, const std::vector<AxisItem>& places, const Symbols* sizes,
              const TapeValue* inputs, TapeValue& result, const std::vector<uint32_t>* integers = nullptr);
    bool load(const TapeValue& array, const TapeValue& position, TapeValue& result);
    // `result`: the array as it is then.
    bool store(const TapeValue& array, const std::vector<AxisItem>& places, const Symbols* sizes,
               const TapeValue* inputs, const TapeValue& value, TapeValue& result,
               const std::vector<uint32_t>* integers = nullptr);
    bool store(const TapeValue& array, const TapeValue& position, const TapeValue& value, TapeValue& result);

    // --- blocks

    bool with_blocks() const { return most_elements_ > 0; }
    bool anywhere() const { return anywhere_; }
    // Elements that are about to be written. None if they are too many.
    TapeValue block_new(PyArray_Descr* dtype, int ndim, const npy_intp* dims);
    // A number or a block of the kind of another.
    TapeValue like_new(const TapeValue& value);
    // Whether it may be read now.
    bool readable(const TapeValue& value) const {
        return value.kind == TapeValue::Number ||
               (value.kind == TapeValue::Block && (!value.borrows || memories_[value.memory].version == value.version));
    }
    static TapePlace place_of(const TapeValue& value);
    // What stands for a number or a block before whoever looks at layouts: nothing is read from it. Null with an error
    // set.
    static Ref stand_in(const TapeValue& value);
    bool call_block(TapeCall call);
    // What a run is given and nothing on the tape writes into.
    void holds(const TapeValue& value) {
        if (value.kind != TapeValue::None) held_.insert(value.cell);
    }
    // What is called may raise flags that only all_fp_errors() sees.
    void calls_loops() { tape_.calls_loops = true; }
    void calls_blas() { tape_.calls_blas = true; }
    // The elements, repeated where strides are 0 or axes are missing, side by side.
    bool copy(const TapeValue& to, const TapeValue& from);
    // The same, into what nothing else is written into: when a run begins, if they are known then.
    bool copy_once(const TapeValue& to, const TapeValue& from);
    // What a recipe shows of an array or a block; `copies`: an element of it is a number.
    bool part(const TapeValue& array, const std::vector<ViewRecipe>& recipes, const Symbols* sizes,
              const TapeValue* inputs, const std::vector<uint32_t>* integers, TapeValue& result);
    bool store_part(const TapeValue& array, const std::vector<ViewRecipe>& recipes, const Symbols* sizes,
                    const TapeValue* inputs, const std::vector<uint32_t>* integers, const TapeValue& value,
                    TapeValue& result);
    // The arrays that must lie as their shapes say.
    bool relies_on(const TapeValue& array) const { return memories_[array.memory].relied_on; }

    // --- programs

    // All instructions of a program whose feeds are these values.
    bool program(const Program& p, const std::vector<TapeValue>& feeds, std::vector<TapeValue>& outputs);
    // A counted loop of a program, with a condition or without: `inputs` are its bounds, what is carried, and what
    // stays.
    bool loop(const Program& body, const Program* test, size_t n_carried, npy_intp step, const TapeValue* inputs,
              TapeValue* results);
    bool branch(const TapeValue& truth, const Program& yes, const Program& no, const TapeValue* inputs,
                TapeValue* results);

    // The iteration of a loop on cells that are given: number, carried and constant. Ends with the outputs in the
    // cells of what is carried.
    bool iteration(const Program& body, const Program* test, size_t n_carried, const std::vector<TapeValue>& feeds,
                   size_t& stop);
    // What is carried on is of a new value, in the cells of the old.
    bool carry(const std::vector<TapeValue>& from, const std::vector<TapeValue>& to, size_t n);

    void emit(TapeOp op, uint16_t a, uint16_t b, uint16_t c, int64_t number = 0);
    bool emit_call(TapeOp op, TapeCall call);
    size_t here() const { return tape_.code.size(); }
    void jump_here(size_t from) { tape_.code[from].number = static_cast<int64_t>(here()); }
    uint16_t cells_new(size_t n, bool even = false);
    bool was_written(const TapeValue& array) const { return memories_[array.memory].written; }
    bool is_current(const TapeValue& array) const {
        return array.kind == TapeValue::Array && memories_[array.memory].version == array.version;
    }
    bool full() const { return full_; }
    size_t n_stores() const { return n_stores_; }
    // Whether what is written down is a part of a loop or branch, whose results have memory of their own.
    bool in_part() const { return depth_ > 0; }
    // Leaves unless a bool is so.
    bool leave_unless(const TapeValue& truth, bool holds);
    // Whatever is written down behind a mark can be thrown away; cells and constants stay.
    struct Mark {
        size_t code, calls;
        std::vector<std::pair<uint32_t, bool>> memories;  // version, written
    };
    Mark mark() const;
    void reset(const Mark& mark);
    // The tape; the builder is used up.
    Tape finish();

  private:
    struct Memory {
        bool writeable, written = false, relied_on = false;
        uint32_t version = 0;
    };
    struct Place {
        uint16_t cell;
        int64_t offset;
    };

    bool instructions(const Program& p, const std::vector<TapeValue>& feeds, std::vector<TapeValue>& outputs);
    bool place(const ViewSize& at, const Symbols* sizes, const TapeValue* inputs, const std::vector<uint32_t>* integers,
               Place& place);
    bool place_of_poly(const SizePoly& poly, const Symbols& sizes, const TapeValue* inputs, Place& place);
    bool access(bool stores, const TapeValue& array, const std::vector<Place>& places, uint16_t value);
    bool load_at(const TapeValue& array, const std::vector<Place>& places, TapeValue& result);
    bool store_at(const TapeValue& array, const std::vector<Place>& places, const TapeValue& value, TapeValue& result);
    bool places_of(const std::vector<AxisItem>& items, const Symbols* sizes, const TapeValue* inputs,
                   const std::vector<uint32_t>* integers, const TapeValue& array, std::vector<Place>& places);
    TapeValue integer(int64_t number);
    // A number of any integer type as one by which arrays are indexed. None if it is none.
    TapeValue position(const TapeValue& number);
    TapeValue known_block(PyArrayObject* a);
    uint16_t address_of(const TapeValue& block);
    uint16_t address_of(const TapeValue& block, const TapeValue& position);
    bool part_of(const TapeValue& array, const ViewRecipe& recipe, const Symbols* sizes, const TapeValue* inputs,
                 const std::vector<uint32_t>* integers, TapeValue& result);
    bool fill(const TapeValue& array, const std::vector<ViewRecipe>& recipes, const Symbols* sizes,
              const TapeValue* inputs, const std::vector<uint32_t>* integers, const TapeValue& value);
    void written(const TapeValue& array, TapeValue& result);
    bool load_of_block(const TapeValue& block, const TapeValue& position, TapeValue& result);
    bool store_in_block(const TapeValue& block, const TapeValue& position, const TapeValue& value, TapeValue& result);
    TapeOperand operand(const TapePlace& place);
    bool copy_elements(const TapeValue& to, const TapeValue& from, bool journal);

    TapeValue block_of(PyArray_Descr* dtype, int ndim, const npy_intp* dims);

    const npy_intp most_elements_;
    const bool anywhere_;
    Tape tape_;
    std::vector<std::pair<size_t, size_t>>
        scratch_;  // cells that are written before they are read: first, and how many
    std::vector<Memory> memories_;
    std::map<std::string, uint16_t> constants_;  // by dtype and bytes
    std::map<std::pair<uint16_t, char*>, uint16_t> addresses_;  // of cells, and of what is known
    std::set<uint16_t> held_;
    size_t n_stores_ = 0;
    unsigned depth_ = 0;  // of parts
    bool full_ = false;  // more cells than instructions can name
};

}  // namespace pyop
