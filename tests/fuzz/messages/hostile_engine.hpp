// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/engine/engine.hpp>
#include <troupe/comm/engine/message.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace troupe::fuzz {

/// Reads bytes that exist, so that a sanitizer sees those that do not.
inline void read_all(std::span<const std::byte> bytes) {
  for (const auto& byte : bytes)
    (void)*static_cast<const volatile std::byte*>(&byte);
}

/// Connects process 0 with a process 1 that exists only in what it says.
class hostile_engine final : public comm::engine {
public:
  /// @param fill what values of the other process consist of; 0: it is lost
  ///   when somebody waits for them
  hostile_engine(comm::message_bytes hello, std::uint8_t fill)
    : engine(0, 2), fill_(fill) {
    early_.push_back(std::move(hello));
  }

  /// A message that comes before this process has met the other one.
  void add_early(comm::message_bytes message) {
    early_.push_back(std::move(message));
  }
  void say(const comm::message_bytes& message) {
    std::lock_guard guard{one_at_a_time_};
    events_->arrived(1, message);
  }
  void be_lost() {
    std::lock_guard guard{one_at_a_time_};
    events_->lost(1, gone());
  }

  void open(comm::engine_events& to) override {
    events_ = &to;
    for (const auto& message : early_)
      say(message);
  }
  void post(std::size_t, std::span<const std::byte> message) override {
    read_all(message);
  }
  std::unique_ptr<comm::transfer>
  send(std::size_t, std::uint32_t, std::span<const std::byte> bytes) override {
    read_all(bytes);
    return std::make_unique<comm::transfer>();
  }
  std::unique_ptr<comm::transfer> receive(std::size_t, std::uint32_t,
                                          std::span<std::byte> bytes) override {
    std::ranges::fill(bytes, std::byte{fill_});
    return std::make_unique<comm::transfer>();
  }
  void wait(comm::transfer&) override {
    if (fill_ != 0)
      return;
    be_lost();
    throw gone();
  }
  void stop() noexcept override {}
  void close() noexcept override {}

private:
  static error gone() { return {errc::peer_failure, "it is gone"}; }

  std::uint8_t fill_;
  std::vector<comm::message_bytes> early_;
  comm::engine_events* events_ = nullptr;
  std::mutex one_at_a_time_;
};

} // namespace troupe::fuzz
