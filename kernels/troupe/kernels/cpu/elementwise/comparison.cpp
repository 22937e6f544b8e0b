// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/elementwise/binary.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <cmath>

namespace troupe::cpu {

namespace {

struct equal {
  template <class T>
  static bool apply(T x, T y) {
    return x == y;
  }
};

struct not_equal {
  template <class T>
  static bool apply(T x, T y) {
    return x != y;
  }
};

struct less_than {
  template <class T>
  static bool apply(T x, T y) {
    return x < y;
  }
};

struct less_equal {
  template <class T>
  static bool apply(T x, T y) {
    return x <= y;
  }
};

struct greater_than {
  template <class T>
  static bool apply(T x, T y) {
    return x > y;
  }
};

struct greater_equal {
  template <class T>
  static bool apply(T x, T y) {
    return x >= y;
  }
};

struct logical_and {
  template <class T>
  static bool apply(T x, T y) {
    return x != T(0) && y != T(0);
  }
};

struct logical_or {
  template <class T>
  static bool apply(T x, T y) {
    return x != T(0) || y != T(0);
  }
};

struct logical_xor {
  template <class T>
  static bool apply(T x, T y) {
    return (x != T(0)) != (y != T(0));
  }
};

struct logical_not {
  template <class T>
  static bool apply(T x) {
    return x == T(0);
  }
};

struct is_finite {
  template <class T>
  static bool apply(T x) {
    return std::isfinite(static_cast<double>(x));
  }
};

struct is_infinite {
  template <class T>
  static bool apply(T x) {
    return std::isinf(static_cast<double>(x));
  }
};

struct is_nan {
  template <class T>
  static bool apply(T x) {
    return x != x;
  }
};

template <class F>
void for_number_or_bool(std::string_view slot, dtype type, F f) {
  if (type == dtype::boolean)
    return f(bool{});
  for_number_type(slot, type, f);
}

template <class Op>
void compare(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const tensor y = ctx.input("Y");
  require_type("Y", y.type(), x.type());
  const auto axis = ctx.attributes().get_int("axis", -1);
  const broadcast_plan plan = plan_broadcast(x.dims(), y.dims(), axis);
  for_number_or_bool("X", x.type(), [&]<class T>(T) {
    tensor out = ctx.output("Out", plan.out, dtype::boolean);
    apply_broadcast<Op>(plan, out.data<bool>(), x.data<T>(), y.data<T>());
  });
}

template <class Op>
void test(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  for_number_or_bool("X", x.type(), [&]<class T>(T) {
    tensor out = ctx.output("Out", x.dims(), dtype::boolean);
    const auto from = x.values<T>();
    bool* to = out.data<bool>();
    for (std::size_t i = 0; i < from.size(); ++i)
      to[i] = Op::apply(from[i]);
  });
}

struct comparison_entry {
  const char* op_type;
  kernel_function run;
};

constexpr comparison_entry comparison_entries[] = {
  {"equal", compare<equal>},
  {"not_equal", compare<not_equal>},
  {"less_than", compare<less_than>},
  {"less_equal", compare<less_equal>},
  {"greater_than", compare<greater_than>},
  {"greater_equal", compare<greater_equal>},
  {"logical_and", compare<logical_and>},
  {"logical_or", compare<logical_or>},
  {"logical_xor", compare<logical_xor>},
  {"logical_not", test<logical_not>},
  {"isfinite_v2", test<is_finite>},
  {"isinf_v2", test<is_infinite>},
  {"isnan_v2", test<is_nan>},
};

} // namespace

void add_comparisons(kernel_table& table) {
  for (const auto& [op_type, run] : comparison_entries)
    table.add(op_type, device_kind::cpu, run);
}

} // namespace troupe::cpu
