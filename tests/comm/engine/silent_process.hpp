// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory_engine.hpp"

#include <troupe/comm/engine/message.hpp>
#include <troupe/comm/engine/staged_call.hpp>

#include "../values.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <thread>

namespace comm_test {

/// A process of a group over memory that only says hello, and what the test
/// lets it say. It has the rank of its number.
class silent_process final : private comm::engine_events {
public:
  silent_process(std::shared_ptr<memory_hub> hub, std::size_t process,
                 const comm::engine_group_options& options)
    : by_(std::move(hub), process) {
    by_.open(*this);
    comm::hello_message hello;
    hello.process = std::uint32_t(process);
    hello.processes = std::uint32_t(by_.processes());
    hello.ranks = comm::bit_of(process);
    if (options.hosts)
      hello.hosts = comm::host_use::parcels_and_sums;
    hello.host = options.hosts ? options.hosts->host : 0;
    hello.letter_bytes = options.letter_bytes;
    hello.piece_bytes = options.piece_bytes;
    say(std::as_bytes(std::span{&hello, 1}));
  }
  ~silent_process() override { by_.close(); }

  /// To process 0.
  void say(std::span<const std::byte> message) { by_.post(0, message); }
  /// Makes the first call. Its values are not in the letter.
  void say_first(const comm::collective_call& call) {
    auto message = comm::stage(by_.process(), call, 0, host()).message;
    auto head = comm::head_of(message);
    head.call = 1;
    std::memcpy(message.data(), &head, sizeof head);
    say(message);
  }
  /// Ends when process 0 has sent so many bytes.
  void receive(std::uint32_t tag, std::span<std::byte> bytes) {
    by_.wait(*by_.receive(0, tag, bytes));
  }

private:
  void arrived(std::size_t, std::span<const std::byte>) override {}
  void lost(std::size_t, const error&) override {}

  memory_engine by_;
};

/// Returns when all ranks have made the first call, which this one waits for.
inline void wait_until_all_came(const comm::communicator& at) {
  for (;;) {
    const auto call = at.waits_for();
    if (!call || call->missing.empty())
      return;
    std::this_thread::yield();
  }
}

} // namespace comm_test
