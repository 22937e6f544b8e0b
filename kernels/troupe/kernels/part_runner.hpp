// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace troupe {

/// A reference to a callable `void(std::size_t part)`, which outlives it.
class part_function {
public:
  /// Refers to `f`; implicit, so that a lambda can be passed.
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, part_function>)
    part_function(F&& f)
  noexcept
    : callable_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
      call_([](void* callable, std::size_t part) {
        (*static_cast<std::remove_reference_t<F>*>(callable))(part);
      }) {}

  void operator()(std::size_t part) const { call_(callable_, part); }

private:
  void* callable_;
  void (*call_)(void*, std::size_t);
};

/// Runs the parts of one piece of work side by side: parallelism inside of an
/// op. Which thread takes which part is open, so parts write to different
/// places and results do not depend on it.
class part_runner {
public:
  virtual ~part_runner() = default;

  /// Calls `part(i)` once for each i in [0, parts), concurrently for different
  /// i, and returns when all calls have. If calls throw, one of the exceptions
  /// comes out of `run`; parts that have not begun then are left out.
  virtual void run(std::size_t parts, const part_function& part) = 0;
};

/// The same by `helpers` if there are any, else by the calling thread alone.
inline void run_parts(part_runner* helpers, std::size_t parts,
                      const part_function& part) {
  if (helpers && parts > 1)
    return helpers->run(parts, part);
  for (std::size_t i = 0; i < parts; ++i)
    part(i);
}

} // namespace troupe
