// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/bodies/movement.hpp>

namespace troupe::cuda {

// Row-sparse values: entry i has the values of row `numbers[i]` of a tall
// matrix. Several entries may have the same row, whose values are added. An
// entry whose number is -1 is no row.

/// numbers[i] = ids[i], or -1 for an id outside of the table.
struct number_rows {
  static constexpr const char* name = "lookup_table_v2_grad";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    row_numbers ids;
    std::int64_t* numbers;
    fault_report* fault;
    std::int64_t count;
    std::int64_t height;
    std::int64_t padding; ///< an id that may lie outside; -1: none
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count()) {
      const auto id = a.ids[i];
      const bool inside = id >= 0 && id < a.height;
      if (!inside && !(a.padding != -1 && id == a.padding))
        a.fault->note(fault_report::bad_index, id, a.height);
      a.numbers[i] = inside ? id : -1;
    }
  }
};

/// For each entry: the next one of the same row; -1: none. `is_first` tells
/// whether there is none before. Entries that are no rows are first nowhere.
struct link_rows {
  static constexpr const char* name = "merge_selected_rows";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const std::int64_t* numbers;
    std::int32_t* next;
    std::int32_t* is_first;
    std::int64_t count;
    std::int64_t height;
    std::int64_t left_out; ///< a row that counts as none; -1: none
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count()) {
      const auto row = a.numbers[i];
      bool found = row < 0 || row >= a.height || row == a.left_out;
      for (std::int64_t j = 0; j < i && !found; ++j)
        found = a.numbers[j] == row;
      a.is_first[i] = found ? 0 : 1;
      auto next = i + 1;
      while (next < a.count && a.numbers[next] != row)
        ++next;
      a.next[i] = next < a.count ? static_cast<std::int32_t>(next) : -1;
    }
  }
};

/// Entries with links. A sum has the order of the entries, whichever thread
/// makes it.
struct linked_entries {
  const std::int64_t* numbers; ///< [count]
  const std::int32_t* next;
  const std::int32_t* is_first;
  const float* values; ///< [count, width]
  std::int64_t count;
  std::int64_t width;

  TROUPE_BODY float sum(std::int64_t first, std::int64_t column) const {
    float total = 0;
    for (auto entry = first; entry >= 0; entry = next[entry])
      total += values[entry * width + column];
    return total;
  }
};

/// to[row, :] = the sum of the row's entries, or is increased by it. Other rows
/// are not written.
struct sum_rows {
  static constexpr const char* name = "lookup_table_v2_grad";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    linked_entries rows;
    float* to; ///< [height, width]
    bool adds;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    const auto width = a.rows.width;
    for (auto i = at.index(); i < a.rows.count * width; i += at.count()) {
      const auto entry = i / width, column = i % width;
      if (a.rows.is_first[entry] == 0)
        continue;
      auto& to = a.to[a.rows.numbers[entry] * width + column];
      const auto sum = a.rows.sum(entry, column);
      to = a.adds ? to + sum : sum;
    }
  }
};

/// Each row once: its first entry has the sum. The other entries are no rows
/// any more, and their values are 0.
struct merge_entries {
  static constexpr const char* name = "merge_selected_rows";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    linked_entries rows;
    std::int64_t* numbers; ///< [count]
    float* values;         ///< [count, width]
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    const auto width = a.rows.width;
    for (auto i = at.index(); i < a.rows.count * width; i += at.count()) {
      const auto entry = i / width, column = i % width;
      const bool keeps = a.rows.is_first[entry] != 0;
      a.values[i] = keeps ? a.rows.sum(entry, column) : 0.0f;
      if (column == 0)
        a.numbers[entry] = keeps ? a.rows.numbers[entry] : -1;
    }
  }
};

/// first[row] = the row's first entry. Other rows are not written.
struct find_rows {
  static constexpr const char* name = "merge_selected_rows";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    linked_entries rows;
    std::int32_t* first; ///< [height]
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.rows.count; i += at.count())
      if (a.rows.is_first[i] != 0)
        a.first[a.rows.numbers[i]] = static_cast<std::int32_t>(i);
  }
};

// -- gradients as updates see them --------------------------------------------

/// An element of a parameter and its gradient.
struct gradient_element {
  std::int64_t at; ///< in the parameter; -1: there is none
  float value;
  bool is_missing; ///< its row has no entry
};

/// A gradient for each element.
struct dense_gradient {
  static constexpr bool is_sparse = false;
  const float* g;
  std::int64_t count; ///< how many elements to look at

  TROUPE_BODY gradient_element element(std::int64_t i) const {
    return {i, g[i], false};
  }
};

/// The rows that have entries, and only those.
struct present_rows {
  static constexpr bool is_sparse = true;
  linked_entries rows;
  std::int64_t count;

  TROUPE_BODY gradient_element element(std::int64_t i) const {
    const auto entry = i / rows.width, column = i % rows.width;
    if (rows.is_first[entry] == 0)
      return {-1, 0, false};
    return {rows.numbers[entry] * rows.width + column, rows.sum(entry, column),
            false};
  }
};

/// All rows; those without entries have the gradient 0.
struct all_rows {
  static constexpr bool is_sparse = true;
  linked_entries rows;
  const std::int32_t* first; ///< [height], by row; -1: none
  std::int64_t count;

  TROUPE_BODY gradient_element element(std::int64_t i) const {
    const auto entry = first[i / rows.width];
    return {i, entry < 0 ? 0.0f : rows.sum(entry, i % rows.width), entry < 0};
  }
};

} // namespace troupe::cuda
