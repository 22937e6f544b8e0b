// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace troupe {

/// A non-owning reference to a callable `void(std::size_t part)`. The callable
/// must outlive it.
class part_function {
public:
  /// Implicit, so that a lambda can be passed.
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, part_function>)
    part_function(F&& f)
  noexcept
    : callable_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
      call_([](void* callable, std::size_t part) {
        (*static_cast<std::remove_reference_t<F>*>(callable))(part);
      }) {}

  /// Calls the callable.
  void operator()(std::size_t part) const { call_(callable_, part); }

private:
  void* callable_;
  void (*call_)(void*, std::size_t);
};

/// Runs the parts of one op in parallel. The assignment of parts to threads is
/// unspecified. Parts must write to disjoint memory, so that results do not
/// depend on it.
class part_runner {
public:
  virtual ~part_runner() = default;

  /// Calls `part(i)` once for each i in [0, parts), possibly concurrently, and
  /// returns when all calls have returned. If a call throws, `run` rethrows one
  /// of the exceptions and skips the parts that have not begun.
  virtual void run(std::size_t parts, const part_function& part) = 0;
};

/// Runs the parts with `helpers`, or on the calling thread alone if it is null.
inline void run_parts(part_runner* helpers, std::size_t parts,
                      const part_function& part) {
  if (helpers && parts > 1)
    return helpers->run(parts, part);
  for (std::size_t i = 0; i < parts; ++i)
    part(i);
}

} // namespace troupe
