// runtime/memo.h: keep what has been found out once for each key for the life of the process: which loop of NumPy
// computes a ufunc, what it starts from, whether a kernel gives its bits (Memo).
//
// Nothing is ever changed or taken out, so what `find` and `keep` return is good for ever. Of two threads that find out
// the same thing at once the first is kept; both are right. Constant-initialised, never destroyed.
//
// Threads: where there is a GIL, attached only, and it guards the table. Without one a lock does, which is never held
// while Python runs: values are made before `keep` is called.
#pragma once

#include <mutex>
#include <unordered_map>

#include "runtime/python.h"

namespace pyop {

template <class Key, class Value, class Hash = std::hash<Key>>
class Memo {
  public:
    // Null if nobody has asked before.
    const Value* find(const Key& key) {
        const Lock lock(*this);
        const auto it = table().find(key);
        return it == table().end() ? nullptr : &it->second;
    }

    const Value& keep(const Key& key, Value value) {
        const Lock lock(*this);
        return table().try_emplace(key, std::move(value)).first->second;
    }

  private:
    using Table = std::unordered_map<Key, Value, Hash>;

    struct Lock {
#ifdef Py_GIL_DISABLED
        explicit Lock(Memo& memo) : held(memo.mutex_) {}
        std::lock_guard<std::mutex> held;
#else
        explicit Lock(Memo&) {}
#endif
    };

    Table& table() {
        if (PYOP_UNLIKELY(!table_)) table_ = new Table;
        return *table_;
    }

    Table* table_ = nullptr;
#ifdef Py_GIL_DISABLED
    std::mutex mutex_;
#endif
};

}  // namespace pyop
