// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/engine/engine.hpp>
#include <troupe/comm/letters_plan.hpp>
#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/variable.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace troupe::comm {

struct exchange_options {
  /// Ranks of each process.
  std::vector<rank_mask> ranks_of_process;
  /// Values are sent in pieces of at most so many bytes.
  std::size_t piece_bytes = std::size_t{1} << 20;
  /// The values of a process are added first, so that it sends one value. This
  /// saves bytes and rounds differently: (x0 + x1) + (x2 + x3) for two
  /// processes of two ranks.
  bool sum_inside_first = false;
};

/// What a rank of this process gives; by value, as in `staged_call`.
struct own_values {
  std::size_t rank = 0;
  std::vector<tensor>* given = nullptr;
  const std::vector<std::vector<std::int64_t>>* rows = nullptr;
  /// Its memory must not be written to: the rank does not wait any more.
  bool is_fixed = false;
};

/// The result of a variable for all ranks of this process: a tensor, or rows.
struct merged_value {
  tensor dense;
  std::optional<selected_rows> rows;
};

/// Merges the values of a call over an engine.
///
/// Each value is cut into blocks, one per process, which owns it. A process
/// sends each block of its ranks' values to the owner. The owner adds the ranks
/// in rank order, as in one process, and sends the sum to all processes that
/// want it. With P processes of a rank each, a process sends and receives
/// 2 (P - 1) / P times the bytes of a value, which no algorithm betters for
/// sums of many values. Blocks are sent in pieces: while one is added, the next
/// ones are on their way.
///
/// Small values go to all processes that want the sum, and each adds them
/// itself. This takes one trip instead of two, and two processes send no more
/// bytes in this way.
///
/// A value that one rank alone gives, as in a broadcast, goes the same way: the
/// owners pass it on.
///
/// Thread rule: one thread at a time. The engine must have been closed before
/// the object is destroyed.
class exchange {
public:
  /// The engine and the memory must outlive the object.
  exchange(engine& by, exchange_options options, arena& memory);

  /// Merges a call whose letters have the values. Sends nothing.
  void merge_letters(const letters_plan& plan, std::span<own_values> own,
                     std::vector<merged_value>& results);
  /// Merges a call of any size. All processes must do so, in the same order.
  /// Returns an error if row numbers are wrong, the same in all processes.
  ///
  /// Throws the errors of `engine::wait`, and error(out_of_memory); then the
  /// engine cannot be used for transfers any more. Memory that an unfinished
  /// transfer could use is kept.
  std::optional<error> merge_values(const letters_plan& plan,
                                    std::span<own_values> own,
                                    std::vector<merged_value>& results);

private:
  /// One summand of a value: a rank's, or the sum of a process.
  struct source {
    std::size_t process;
    const std::byte* data; ///< null: another process has it
  };
  /// A dense value of the call.
  struct dense_job {
    std::size_t value;
    dtype type;
    std::size_t elements;
    bool is_direct;    ///< all processes that want the sum add it themselves
    std::size_t share; ///< elements of a block
    std::size_t piece; ///< elements of a piece
    std::vector<source> sources;
    std::byte* result;
  };
  /// The pieces of all blocks of a value that are sent at the same time.
  struct step {
    const dense_job* job = nullptr;
    std::size_t number = 0;
    std::vector<std::unique_ptr<transfer>> in, out;
  };
  struct range {
    std::size_t owner, first, count; ///< elements
  };
  struct own_rows {
    std::vector<std::int64_t> rows;
    tensor values;
  };
  using rows_of_ranks = std::vector<own_rows>;
  using transfers = std::vector<std::unique_ptr<transfer>>;

  std::size_t self() const noexcept { return engine_.process(); }
  std::size_t processes() const noexcept {
    return options_.ranks_of_process.size();
  }
  std::size_t process_of(std::size_t rank) const noexcept;
  bool wants(const letters_plan& plan, const dense_job& job,
             std::size_t process) const noexcept;
  bool has_taker(const letters_plan& plan, std::size_t i,
                 std::size_t process) const noexcept;

  void make_plain(const letters_plan& plan, std::span<own_values> own);
  std::vector<source> sources_of(const letters_plan& plan, std::size_t i,
                                 std::span<own_values> own,
                                 bool letters_have_values);
  tensor memory_of_result(const letters_plan& plan, std::size_t i,
                          std::span<own_values> own, std::size_t sources);
  dense_job job_of(const letters_plan& plan, std::size_t i,
                   std::span<own_values> own, bool letters_have_values,
                   merged_value& result);
  void add_inside(dense_job& job);

  void run_jobs(const letters_plan& plan, const std::vector<dense_job>& jobs);
  range range_of(const dense_job& job, std::size_t block,
                 std::size_t number) const noexcept;
  template <class Use>
  void for_each_range(const step& s, Use use) const;
  void begin(const letters_plan& plan, step& s, std::size_t slot);
  void add(const letters_plan& plan, step& s, std::size_t slot);
  void hand_out(const letters_plan& plan, const step& s);
  void take_back(const letters_plan& plan, const step& s);
  bool adds(const letters_plan& plan, const dense_job& job, std::size_t process,
            const range& r) const noexcept;
  std::byte* scratch(std::size_t slot, std::size_t number);

  std::optional<error> merge_rows(const letters_plan& plan, std::size_t i,
                                  std::span<own_values> own,
                                  merged_value& result);
  void send_rows(const letters_plan& plan, std::size_t i, rows_of_ranks& all);
  void send_parts(std::size_t to, std::span<const std::byte> bytes);
  void receive_parts(std::size_t from, std::span<std::byte> bytes);

  void wait_all(transfers& of);
  void keep(transfers& of);
  void keep_all(std::span<own_values> own,
                const std::vector<merged_value>& results);

  engine& engine_;
  exchange_options options_;
  arena& memory_;
  std::vector<buffer> scratch_; // pieces of other processes
  std::vector<buffer> inside_;  // sums of other processes in a small call
  std::vector<step> steps_;     // that are under way
  transfers results_;           // of sums that are under way
  // What transfers that did not end use.
  transfers kept_;
  std::vector<tensor> kept_values_;
  std::vector<std::vector<std::int64_t>> kept_rows_;
};

} // namespace troupe::comm
