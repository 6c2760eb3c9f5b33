// array/loop/ufunc_errors.h: report floating-point errors as NumPy's ufuncs do.
#pragma once

namespace pyop {

// What np.errstate asks for: nothing, a RuntimeWarning, FloatingPointError, a call … in the name of a ufunc. `flags` as
// in fp_flags.h. 0, or -1 with the error set. Attached threads.
int report_fp_errors(const char* ufunc_name, int flags);

// While one is there, what this thread runs is a trial: where NumPy would have to say something it is left instead,
// with an error that is no more than that (leave), so that nothing has been said when the work is done another way.
class Trial {
  public:
    Trial() : before_(current_) { current_ = this; }
    ~Trial() { current_ = before_; }
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;

    static bool running() { return current_ != nullptr; }
    // -1 with the error set.
    static int leave();
    // Whether the pending error is that one.
    bool left() const { return left_; }

  private:
    static thread_local Trial* current_;
    Trial* before_;
    bool left_ = false;
};

}  // namespace pyop
