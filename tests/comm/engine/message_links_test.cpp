// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/engine/message_links.hpp>

#include <troupe/base/error.hpp>

#include <doctest/doctest.h>

#include <sys/socket.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::comm;

TEST_SUITE("comm.message_links") {

namespace {

std::pair<descriptor, descriptor> connected() {
  int ends[2];
  REQUIRE(
    ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends)
    == 0);
  return {descriptor{ends[0]}, descriptor{ends[1]}};
}

/// Keeps what comes. Can hold up the thread that brings it.
class mailbox final : public engine_events {
public:
  void arrived(std::size_t from, std::span<const std::byte> message) override {
    std::unique_lock held{mutex_};
    changed_.wait(held, [this] { return is_open_; });
    from_ = from;
    messages_.emplace_back(message.begin(), message.end());
    changed_.notify_all();
  }
  void lost(std::size_t process, const error& why) override {
    std::lock_guard guard{mutex_};
    losses_.push_back(std::to_string(process) + ": " + why.message());
    changed_.notify_all();
  }

  void open() {
    std::lock_guard guard{mutex_};
    is_open_ = true;
    changed_.notify_all();
  }
  std::vector<std::vector<std::byte>> wait_for(std::size_t count) {
    std::unique_lock held{mutex_};
    changed_.wait(held, [&] { return messages_.size() >= count; });
    return messages_;
  }
  std::vector<std::string> wait_for_loss() {
    std::unique_lock held{mutex_};
    changed_.wait(held, [&] { return !losses_.empty(); });
    return losses_;
  }
  std::vector<std::string> losses() {
    std::lock_guard guard{mutex_};
    return losses_;
  }
  std::optional<std::size_t> sender() {
    std::lock_guard guard{mutex_};
    return from_;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<std::byte>> messages_;
  std::vector<std::string> losses_;
  std::optional<std::size_t> from_;
  bool is_open_ = false;
};

/// Process 0 of two, or process 1.
std::vector<descriptor> only(std::size_t at, descriptor socket) {
  std::vector<descriptor> all(2);
  all[at] = std::move(socket);
  return all;
}

std::vector<std::byte> message_of_size(std::size_t bytes, int value) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}

} // namespace

TEST_CASE("post never waits, and all messages arrive in their order") {
  auto [left, right] = connected();
  mailbox in_left, in_right;
  message_links zero{only(1, std::move(left)), in_left};
  message_links one{only(0, std::move(right)), in_right};
  // More than sockets keep, while nobody reads.
  std::vector<std::vector<std::byte>> sent;
  for (int i = 0; i < 200; ++i) {
    sent.push_back(message_of_size(i % 3 == 0 ? 100'000 : std::size_t(i), i));
    zero.post(1, sent.back());
  }
  in_right.open();
  CHECK(in_right.wait_for(sent.size()) == sent);
  CHECK(in_right.sender() == 0u);
  in_left.open();
  one.post(0, sent[1]);
  CHECK(in_left.wait_for(1).front() == sent[1]);
  CHECK(in_left.losses().empty());
}

TEST_CASE("the end of a connection is told once, after what came before it") {
  auto [left, right] = connected();
  mailbox in_left, in_right;
  message_links zero{only(1, std::move(left)), in_left};
  {
    message_links one{only(0, std::move(right)), in_right};
    one.post(0, message_of_size(10, 1));
  }
  in_left.open();
  CHECK(in_left.wait_for_loss()
        == std::vector<std::string>{"1: its connection is closed"});
  CHECK(in_left.wait_for(1).size() == 1);
  for (int i = 0; i < 3; ++i)
    zero.post(1, message_of_size(100'000, i)); // dropped
  CHECK(in_left.losses().size() == 1);
}

TEST_CASE("a process that sends nonsense is lost") {
  auto [left, right] = connected();
  mailbox in;
  in.open();
  message_links zero{only(1, std::move(left)), in};
  const auto nonsense = message_of_size(64, 0xff);
  REQUIRE(::send(right.get(), nonsense.data(), nonsense.size(), 0) == 64);
  CHECK(in.wait_for_loss()
        == std::vector<std::string>{"1: it sent a malformed message"});
}

TEST_CASE("links that end tell no loss") {
  auto [left, right] = connected();
  mailbox in_left, in_right;
  in_left.open();
  std::optional<message_links> zero{std::in_place, only(1, std::move(left)),
                                    in_left};
  zero->post(1, message_of_size(10, 1));
  zero.reset();
  CHECK(in_left.losses().empty());
}

} // TEST_SUITE("comm.message_links")
