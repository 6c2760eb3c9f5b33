// plan/tape/tape_builder.h: TapeBuilder, with which native steps write themselves down on a tape.
//
// Values are single numbers, each in a cell, and arrays, of which elements are read and written where they lie. A graph
// has values, not places: an array that was written is another value, and who reads the old one behind the write gets
// no tape. Whatever a builder is asked for that it cannot do, it answers false, and what was written down is thrown
// away.
#pragma once

#include <map>
#include <string>

#include "array/call/tree_call.h"
#include "array/view/view_recipe.h"
#include "plan/tape/tape.h"

namespace pyop {

struct Program;

struct TapeValue {
    enum Kind : uint8_t { None, Number, Array } kind = None;
    int ndim = 0;
    // Of a number; or of an array: where it lies, then size and stride of each axis.
    uint16_t cell = 0;
    PyArray_Descr* dtype = nullptr;  // borrowed; one of NumPy's own, which live for ever
    uint32_t memory = 0;  // of an array: whose memory it shows
    uint32_t version = 0;  // and when

    bool is_number(PyArray_Descr* of) const { return kind == Number && dtype == of; }
};

class TapeBuilder {
  public:
    using Symbols = TreeCallObject::Layout;

    // --- values

    // A number that an operation is about to write.
    TapeValue number_new(PyArray_Descr* dtype);
    TapeValue constant(const void* bytes, PyArray_Descr* dtype);
    // An array of that kind, whose place the run will tell; `writeable`: it is the run's own.
    TapeValue array_new(PyArray_Descr* dtype, int ndim, bool writeable);
    // A constant of a program. None if it is neither.
    TapeValue known(PyObject* object);

    // --- operations

    bool operation(TapeOp op, const TapeValue& result, const TapeValue& x, const TapeValue& y);
    // One of the kernels' operations, by instructions of the tape's own if there are any. False: use call().
    bool operation(Operation does, Element element, const TapeValue* operands, size_t n);
    bool cast(const TapeValue& to, const TapeValue& from);
    bool call(TapeCall call);
    bool compute(TapeCall::Function* function, const void* self, const TapeValue& result, const TapeValue& x,
                 const TapeValue& y);
    bool move(const TapeValue& to, const TapeValue& from);

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
        bool writeable, written = false;
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

    Tape tape_;
    std::vector<Memory> memories_;
    std::map<std::string, uint16_t> constants_;  // by dtype and bytes
    size_t n_stores_ = 0;
    unsigned depth_ = 0;  // of parts
    bool full_ = false;  // more cells than instructions can name
};

}  // namespace pyop
