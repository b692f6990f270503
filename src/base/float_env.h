#pragma once

namespace drafthorse {

/// Sets this thread's floating-point state to the one of the numeric contract (MXCSR 0x1f80: round to nearest even,
/// denormals kept, no traps) and puts the old state back at the end of the scope.
class FloatEnv {
 public:
  FloatEnv();
  ~FloatEnv();
  FloatEnv(const FloatEnv&) = delete;
  FloatEnv& operator=(const FloatEnv&) = delete;

 private:
  unsigned saved_;
};

}  // namespace drafthorse
