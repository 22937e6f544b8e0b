// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/simd/vector_math.hpp>

#include <cmath>
#include <concepts>
#include <limits>
#include <type_traits>

/// The arithmetic of the elementwise ops: stateless functions of X and Y, for T
/// = float, double, std::int32_t, std::int64_t. Integers wrap around.
namespace troupe::cpu::elementwise {

/// The unsigned type in which an integer wraps around; T itself if T is
/// floating.
template <class T>
struct wrapping {
  using type = T;
};
template <std::integral T>
struct wrapping<T> {
  using type = std::make_unsigned_t<T>;
};
template <class T>
using wrapping_t = typename wrapping<T>::type;

struct add {
  template <class T>
  static T apply(T x, T y) {
    return T(wrapping_t<T>(x) + wrapping_t<T>(y));
  }
};

struct subtract {
  template <class T>
  static T apply(T x, T y) {
    return T(wrapping_t<T>(x) - wrapping_t<T>(y));
  }
};

struct multiply {
  template <class T>
  static T apply(T x, T y) {
    return T(wrapping_t<T>(x) * wrapping_t<T>(y));
  }
};

/// Integers are truncated towards zero; Y must have no zeros.
struct divide {
  template <class T>
  static T apply(T x, T y) {
    if constexpr (std::integral<T>)
      return y == T(-1) ? subtract::apply(T(0), x) : T(x / y);
    else
      return x / y;
  }
};

/// The remainder with the sign of Y. For integers, Y must have no zeros.
struct modulo {
  template <class T>
  static T apply(T x, T y) {
    T rest;
    if constexpr (std::integral<T>)
      rest = y == T(-1) ? T(0) : T(x % y);
    else
      rest = std::fmod(x, y);
    return rest != T(0) && (y < T(0)) != (rest < T(0)) ? T(rest + y) : rest;
  }
};

/// The quotient rounded down. For integers, Y must have no zeros.
struct floor_divide {
  template <class T>
  static T apply(T x, T y) {
    if constexpr (std::integral<T>) {
      const T quotient = divide::apply(x, y);
      const bool inexact = y != T(-1) && x % y != 0;
      return inexact && (x < 0) != (y < 0) ? T(quotient - 1) : quotient;
    } else {
      return std::floor(x / y);
    }
  }
};

/// If either is NaN, so is the result.
struct maximum {
  template <class T>
  static T apply(T x, T y) {
    return x >= y || x != x ? x : y;
  }
};

struct minimum {
  template <class T>
  static T apply(T x, T y) {
    return x <= y || x != x ? x : y;
  }
};

struct power {
  template <class T>
  static T apply(T x, T y) {
    if constexpr (std::integral<T>)
      return integer_power(x, y);
    else
      return std::pow(x, y);
  }

private:
  // Computed in double; results that do not fit an integer saturate.
  template <class T>
  static T integer_power(T x, T y) {
    const double result =
      std::pow(static_cast<double>(x), static_cast<double>(y));
    if (result >= static_cast<double>(std::numeric_limits<T>::max()))
      return std::numeric_limits<T>::max();
    if (result <= static_cast<double>(std::numeric_limits<T>::min()))
      return std::numeric_limits<T>::min();
    return static_cast<T>(std::llrint(result));
  }
};

/// dX and dY of an op, per element of Out.
struct multiply_gradient {
  struct x {
    template <class T>
    static T apply(T, T b, T dout) {
      return dout * b;
    }
  };
  struct y {
    template <class T>
    static T apply(T a, T, T dout) {
      return dout * a;
    }
  };
};

struct divide_gradient {
  struct x {
    template <class T>
    static T apply(T, T b, T dout) {
      return dout / b;
    }
  };
  struct y {
    template <class T>
    static T apply(T a, T b, T dout) {
      return -dout * (a / b) / b;
    }
  };
};

/// If both are equal, Y gets the gradient.
struct maximum_gradient {
  struct x {
    template <class T>
    static T apply(T a, T b, T dout) {
      return a > b ? dout : T(0);
    }
  };
  struct y {
    template <class T>
    static T apply(T a, T b, T dout) {
      return a <= b ? dout : T(0);
    }
  };
};

struct minimum_gradient {
  struct x {
    template <class T>
    static T apply(T a, T b, T dout) {
      return a < b ? dout : T(0);
    }
  };
  struct y {
    template <class T>
    static T apply(T a, T b, T dout) {
      return a >= b ? dout : T(0);
    }
  };
};

struct power_gradient {
  struct x {
    template <class T>
    static T apply(T a, T b, T dout) {
      return dout * b * std::pow(a, b - T(1));
    }
  };
  struct y {
    template <class T>
    static T apply(T a, T b, T dout) {
      return dout * std::log(a) * std::pow(a, b);
    }
  };
};

} // namespace troupe::cpu::elementwise
