// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/fuzz_target.hpp"
#include "fuzz/messages/hostile_engine.hpp"

#include <troupe/comm/communicator.hpp>
#include <troupe/kernels/memory/arena.hpp>

#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <utility>

namespace troupe::fuzz {

/// A call of one of two ranks, of a few kinds. It keeps its variables.
class played_call final : public completion {
public:
  played_call(std::size_t kind, std::size_t rank, arena& memory)
    : memory_(memory) {
    fill(kind % 7, rank);
  }

  /// Makes the call. The group can use this object until it is gone.
  void start(comm::communicator& by) {
    accept_errors([&] {
      waits_ = by.start(call(), *this).state == launch_status::pending;
    });
  }

  comm::collective_call call() const {
    return {kind_, root_, {values_.data(), count_}};
  }
  void completed(std::exception_ptr failure) noexcept override {
    ++ends_;
    if (failure)
      accept_errors([&] { std::rethrow_exception(failure); });
  }

  /// The call must have ended, and results must be whole, whatever the other
  /// process says.
  void check() const {
    if (ends_ != (waits_ ? 1 : 0))
      fail("a call that does not end, or ends twice");
    for (const auto& held : held_) {
      if (held.is_tensor() && held.as_tensor())
        check_tensor(held.as_tensor());
      if (held.is_rows())
        check_rows(held.as_rows());
    }
  }

private:
  void fill(std::size_t kind, std::size_t rank) {
    switch (kind) {
    case 0: return sum(3);
    case 1: return sum(100); // too large for a letter
    case 2: return sum_of_rows(rank, 2);
    case 3: return sum_of_rows(rank, 50);
    case 4: return broadcast(rank, 0, 5);
    case 5: return broadcast(rank, 1, 200);
    default: return reduce(rank);
    }
  }

  static void check_tensor(const tensor& value) {
    if (value.is_plain())
      read_all({value.raw(), value.bytes()});
  }

  static void check_rows(const selected_rows& value) {
    for (const auto row : value.rows)
      if (row < 0 || row >= value.height)
        fail("a row that there is not");
    if (!value.values)
      return;
    check_tensor(value.values);
    if (value.values.dims()[0] != static_cast<std::int64_t>(value.rows.size()))
      fail("rows without values");
  }

  tensor filled(const shape& dims, dtype type) {
    auto made = tensor::make(memory_, dims, type);
    std::memset(made.raw(), 1, made.bytes());
    return made;
  }

  variable& add(const char* name) {
    auto& made = held_[count_];
    values_[count_++] = {.name = name, .in = &made, .out = &made};
    return made;
  }

  void sum(std::int64_t elements) {
    add("a").set(filled({elements}, dtype::float32));
  }

  void sum_of_rows(std::size_t rank, std::int64_t width) {
    const auto row = static_cast<std::int64_t>(rank);
    add("r").set(
      selected_rows{{row, 2}, 3, filled({2, width}, dtype::float32)});
  }

  void broadcast(std::size_t rank, std::size_t root, std::int64_t elements) {
    kind_ = comm::collective_kind::broadcast;
    root_ = root;
    auto& value = add("b");
    if (rank == root)
      value.set(filled({elements}, dtype::int64));
  }

  void reduce(std::size_t rank) {
    kind_ = comm::collective_kind::reduce;
    add("c").set(filled({2}, dtype::int32));
    if (rank == 0)
      add("d").set(filled({5}, dtype::float16));
    else
      add("d"); // gives nothing
  }

  arena& memory_;
  bool waits_ = false;
  std::atomic<int> ends_{0};
  comm::collective_kind kind_ = comm::collective_kind::all_reduce;
  std::size_t root_ = 0, count_ = 0;
  std::array<variable, 2> held_;
  std::array<comm::rank_value, 2> values_;
};

} // namespace troupe::fuzz
