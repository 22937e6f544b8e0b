// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/engine/engine.hpp>
#include <troupe/comm/engine/nearby_signals.hpp>
#include <troupe/comm/engine/neighbours.hpp>
#include <troupe/comm/letters_plan.hpp>
#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/variable.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
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
  /// The processes of each host, both in order. The values of a host are then
  /// added first. Empty: each rank's value is sent on its own.
  std::vector<std::vector<std::size_t>> hosts = {};
  /// The processes of this host, numbered as in `hosts`. Null: there is only
  /// this one, or `hosts` is empty.
  neighbours* nearby = nullptr;
};

/// What a rank of this process gives; by value, as in `staged_call`.
struct own_values {
  std::size_t rank = 0;
  std::vector<tensor>* given = nullptr;
  std::vector<std::vector<std::int64_t>>* rows = nullptr;
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
/// **Hosts.** With `exchange_options::hosts`, hosts take the place of
/// processes. For each block, one process of a host is its *agent*: it adds the
/// values of all ranks of the host where they lie, exchanges the sum with the
/// owner, and has the result. The other processes of the host copy the result
/// from the agent's memory. So a host with any number of ranks sends as much as
/// one rank, and all its processes share the work. The order of additions is
/// (x0 + x1) + (x2 + x3) for two hosts of two ranks. A process writes its own
/// memory only. Processes of a host tell each other through their memory where
/// values lie, which pieces are complete, and that they read no more
/// (`nearby_signals`); the engine carries nothing between them.
///
/// Thread rule: one thread at a time; `stop` from any. The engine must have
/// been closed before the object is destroyed.
class exchange {
public:
  /// Transfers of one tag meet in order, so each purpose has its own.
  enum tag : std::uint32_t {
    raw_tag = 1,
    sum_tag,
    rows_tag,
  };

  /// The engine, the memory and the neighbours must outlive the object.
  /// @param memory that all neighbours can read, if there are any
  exchange(engine& by, exchange_options options, arena& memory);

  /// Merges a call whose letters have the values, in rank order. Sends nothing.
  void merge_letters(const letters_plan& plan, std::span<own_values> own,
                     std::vector<merged_value>& results);
  /// Merges a call of any size. All processes must do so, in the same order.
  /// Returns an error if row numbers are wrong, the same in all processes.
  ///
  /// Throws the errors of `engine::wait`, also after `stop`, and
  /// error(out_of_memory); then the engine cannot be used for transfers any
  /// more. Memory that an unfinished transfer could use is kept.
  std::optional<error> merge_values(const letters_plan& plan,
                                    std::span<own_values> own,
                                    std::vector<merged_value>& results);

  /// Makes `merge_values` throw error(peer_failure) instead of waiting for
  /// others, now and later.
  void stop() noexcept;

  ///@{
  /// For a watchdog; any thread. Bytes of transfers that have ended, of all
  /// calls, and the transfer that the merging thread waits for.
  std::uint64_t moved() const noexcept {
    return moved_.load(std::memory_order_relaxed);
  }
  struct awaited_transfer {
    std::size_t peer; ///< the other process
    bool is_receive;
  };
  std::optional<awaited_transfer> awaits() const noexcept;
  ///@}

private:
  /// What a process tells its neighbours the place of.
  enum class place_kind : std::uint8_t {
    result,
    value,
    numbers, ///< of rows
    ///@{
    /// Rows of another host that the process receives for all. Their places
    /// are told when they have come.
    shown_numbers,
    shown_values,
    ///@}
  };
  static bool is_shown(place_kind what) noexcept {
    return what == place_kind::shown_numbers
           || what == place_kind::shown_values;
  }

  /// One summand of a value: a rank's, or the sum of a host.
  struct source {
    std::size_t host;
    /// The values of its ranks, in order; empty if another host has them.
    std::vector<const std::byte*> data;
    bool is_own; ///< it is a single value, of this process
  };
  /// A dense value of the call.
  struct dense_job {
    std::size_t value;
    dtype type;
    std::size_t elements;
    bool is_direct;    ///< each host that wants the sum adds it itself
    bool is_passed_on; ///< one rank gives it: there is nothing to add
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
  using transfers = std::vector<std::unique_ptr<transfer>>;
  /// A step whose sums come from other hosts or from neighbours.
  struct coming_step {
    /// A neighbour, and the number of its signal.
    struct signal {
      std::size_t of;
      std::uint64_t number;
    };
    step of; ///< `in`: sums of other hosts
    std::vector<signal> signals = {};
  };
  /// A rank's selected rows, here or in a neighbour's memory.
  struct rank_rows {
    std::span<const std::int64_t> numbers;
    const std::byte* values = nullptr;
    buffer memory_of_numbers; // if they come from another host
    tensor memory_of_values;
  };
  using rows_of_ranks = std::vector<rank_rows>;

  // Who does what.
  std::size_t self() const noexcept { return engine_.process(); }
  std::size_t processes() const noexcept { return host_of_.size(); }
  std::size_t own_host() const noexcept { return host_of_[self()]; }
  const std::vector<std::size_t>& nearby() const noexcept {
    return options_.hosts[own_host()];
  }
  std::size_t process_of(std::size_t rank) const noexcept;
  std::size_t agent(const dense_job& job, std::size_t host,
                    const range& r) const noexcept;
  std::size_t agent_of_rows(std::size_t host, std::size_t rank) const noexcept;
  bool shows(std::size_t process, std::size_t rank) const noexcept;
  bool has_taker(const letters_plan& plan, std::size_t i,
                 std::size_t process) const noexcept;
  bool has_taker_on(const letters_plan& plan, std::size_t i,
                    std::size_t host) const noexcept;
  bool has_it(const dense_job& job, std::size_t host) const noexcept;
  bool wants(const letters_plan& plan, const dense_job& job,
             std::size_t host) const noexcept;
  bool adds(const letters_plan& plan, const dense_job& job, std::size_t process,
            const range& r) const noexcept;

  // Preparation.
  void make_plain(const letters_plan& plan, std::span<own_values> own);
  void make_readable(std::span<own_values> own);
  tensor memory_of_result(const letters_plan& plan, std::size_t i,
                          std::span<own_values> own);
  const std::byte* value_of(const letters_plan& plan, std::size_t rank,
                            std::size_t i, std::span<own_values> own) const;
  std::vector<source> sources_of(const letters_plan& plan, std::size_t i,
                                 std::span<own_values> own) const;
  dense_job job_of(const letters_plan& plan, std::size_t i,
                   std::span<own_values> own, std::byte* result) const;

  // Neighbours.
  template <class Use>
  void for_each_place(const letters_plan& plan, std::size_t process,
                      Use use) const;
  void tell_places(const letters_plan& plan, std::span<own_values> own,
                   const std::vector<merged_value>& results);
  void read_places(const letters_plan& plan, std::size_t neighbour);
  std::uint64_t place_of(const std::byte* data) const noexcept;
  std::uint64_t place_in_list(std::size_t neighbour, std::size_t word) const;
  void wait_for(std::size_t neighbour, nearby_signals::kind what,
                std::uint64_t number);
  void wait_for_neighbours();
  template <class Use>
  void for_each_neighbour(Use use) const {
    for (std::size_t n = 0; n < nearby().size(); ++n)
      if (nearby()[n] != self())
        use(n, nearby()[n]);
  }
  bool acts(const step& s, std::size_t process) const;
  void await_neighbours(const letters_plan& plan, coming_step& c);
  void finish(const letters_plan& plan, coming_step& c);
  void copy_from_neighbours(const letters_plan& plan, const step& s) const;

  // Dense values.
  void run_jobs(const letters_plan& plan, const std::vector<dense_job>& jobs);
  range range_of(const dense_job& job, std::size_t block,
                 std::size_t number) const noexcept;
  /// Calls `use(range)` for each piece of the step that has elements.
  template <class Use>
  void for_each_range(const step& s, Use use) const {
    for (std::size_t block = 0; block < processes(); ++block)
      if (const auto r = range_of(*s.job, block, s.number); r.count > 0)
        use(r);
  }
  void begin(const letters_plan& plan, step& s, std::size_t slot);
  std::vector<std::size_t> receivers(const letters_plan& plan,
                                     const dense_job& job,
                                     const range& r) const;
  bool is_needed(const letters_plan& plan, const dense_job& job,
                 const range& r) const;
  const std::byte* part_of_host(const dense_job& job, const source& from,
                                const range& r) const;
  void add(const letters_plan& plan, step& s, std::size_t slot);
  void hand_out(const letters_plan& plan, const step& s);
  void take_back(const letters_plan& plan, const step& s);
  static void add_up(dtype type, std::span<const std::byte* const> from,
                     std::byte* to, std::size_t count);
  std::byte* scratch(std::size_t slot, std::size_t number);

  // Selected rows.
  std::optional<error> merge_rows(const letters_plan& plan, std::size_t i,
                                  std::span<own_values> own,
                                  merged_value& result);
  static std::size_t bytes_of_numbers(const letter_value& v);
  static std::span<const std::int64_t> numbers_in(const std::byte* data,
                                                  const letter_value& v);
  rows_of_ranks rows_here(const letters_plan& plan, std::size_t i,
                          std::span<own_values> own);
  void send_rows(const letters_plan& plan, std::size_t i, rows_of_ranks& all);
  void show_rows(const letters_plan& plan, std::size_t i, rows_of_ranks& all);
  void send_parts(std::size_t to, std::span<const std::byte> bytes);
  void receive_parts(std::size_t from, std::span<std::byte> bytes);

  std::unique_ptr<transfer> send(std::size_t to, std::uint32_t tag,
                                 std::span<const std::byte> bytes);
  std::unique_ptr<transfer> receive(std::size_t from, std::uint32_t tag,
                                    std::span<std::byte> bytes);
  void note_wait(std::size_t peer, bool is_receive) noexcept;
  void note_wait() noexcept { awaits_.store(0, std::memory_order_relaxed); }
  void wait_all(transfers& of);
  void keep(transfers& of);
  void keep_all(std::span<own_values> own,
                const std::vector<merged_value>& results);

  engine& engine_;
  exchange_options options_;
  bool adds_by_host_;
  arena& memory_;
  std::vector<std::size_t> host_of_;  // by process
  std::vector<std::size_t> place_of_; // by process: its number on its host
  std::vector<buffer> scratch_;       // pieces of other processes
  std::vector<step> steps_;           // that are under way
  std::deque<coming_step> coming_;
  transfers results_; // of sums that are under way

  // What neighbours tell in a call.
  std::optional<nearby_signals> signals_;        // if there are neighbours
  std::vector<const std::byte*> places_;         // by neighbour: a list
  buffer own_places_;                            // such a list
  std::vector<const std::byte*> near_values_;    // by rank and value
  std::vector<const std::byte*> near_numbers_;   // the same, of rows
  std::vector<const std::byte*> near_results_;   // by neighbour and value
  std::vector<std::vector<buffer>> own_numbers_; // by own rank and value

  // What transfers and neighbours use until the call has ended.
  std::vector<rows_of_ranks> rows_;
  // The same of a call that has failed.
  transfers kept_;
  std::vector<tensor> kept_values_;
  std::vector<std::vector<std::int64_t>> kept_numbers_;

  // Relaxed: whoever watches needs no order with what the bytes are for.
  std::atomic<std::uint64_t> moved_{0};
  /// 0: none; else twice the number of the other process + 1, and 1 more if it
  /// is to receive.
  std::atomic<std::uint64_t> awaits_{0};
};

} // namespace troupe::comm
