// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/bodies/elementwise.hpp>

namespace troupe::cuda {

/// Copies `count` elements, whatever their dtype: the operands X and Y of
/// `pairs` are where each lies in `x` and where it goes in `out`.
template <class T>
struct move_elements {
  static constexpr const char* name = "move_elements";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const T* x;
    T* out;
    std::int64_t count;
    pairing pairs;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count()) {
      std::int64_t from, to;
      a.pairs.offsets(i, from, to);
      a.out[to] = a.x[from];
    }
  }
};

/// Keeps the lower or the upper triangle of matrices; zeros elsewhere.
template <class T>
struct keep_triangle {
  static constexpr const char* name = "tril_triu";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const T* x;
    T* out;
    std::int64_t count;
    std::int64_t rows; ///< of a matrix
    std::int64_t columns;
    std::int64_t diagonal; ///< 0: the main one; positive: above it
    bool lower;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count()) {
      const auto above = i % a.columns - i / a.columns % a.rows - a.diagonal;
      const bool kept = a.lower ? above <= 0 : above >= 0;
      a.out[i] = kept ? a.x[i] : T(0);
    }
  }
};

/// out[i] = start + i * step
template <class T>
struct count_up {
  static constexpr const char* name = "range";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    T* out;
    std::int64_t count;
    T start;
    T step;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count())
      a.out[i] = static_cast<T>(a.start + static_cast<T>(i) * a.step);
  }
};

/// Row numbers as int64 or int32, whichever is given.
struct row_numbers {
  const std::int64_t* wide;
  const std::int32_t* narrow;

  TROUPE_BODY std::int64_t operator[](std::int64_t i) const {
    return wide ? wide[i] : narrow[i];
  }
};

/// out[i, :] = table[ids[i], :]; zeros for `padding`, which may be -1: none.
struct look_up {
  static constexpr const char* name = "lookup_table_v2";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* table; ///< [height, width]
    row_numbers ids;
    float* out; ///< [rows, width]
    fault_report* fault;
    std::int64_t rows;
    std::int64_t height;
    std::int64_t width;
    std::int64_t padding;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.rows * a.width; i += at.count()) {
      const auto id = a.ids[i / a.width], column = i % a.width;
      const bool pads = a.padding != -1 && id == a.padding;
      const bool inside = id >= 0 && id < a.height;
      if (!inside && !pads && column == 0)
        a.fault->note(fault_report::bad_index, id, a.height);
      a.out[i] = pads || !inside ? 0.0f : a.table[id * a.width + column];
    }
  }
};

} // namespace troupe::cuda
