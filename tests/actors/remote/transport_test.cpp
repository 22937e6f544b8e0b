// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/transport.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using actors::transfer_content;
using actors::transport;

TEST_SUITE("actors.remote.transport") {

namespace {

/// Keeps what is sent. The test delivers it.
struct slow_wire final : actors::wire {
  struct message {
    std::uint32_t channel;
    step_id step;
    transfer_content content;
  };
  std::vector<message> sent;
  std::vector<std::pair<std::uint32_t, step_id>> taken;

  void send(std::uint32_t channel, step_id step,
            transfer_content content) override {
    sent.push_back({channel, step, std::move(content)});
  }
  void tell_taken(std::uint32_t channel, step_id step) override {
    taken.emplace_back(channel, step);
  }
};

struct listener final : transport::receiver, completion {
  std::optional<transfer_content> got;
  int completions = 0;

  void received(transfer_content content) noexcept override {
    got = std::move(content);
  }
  void completed(std::exception_ptr failure) noexcept override {
    CHECK_FALSE(failure);
    ++completions;
  }
};

transfer_content value(std::string bytes) {
  return {std::move(bytes), {}};
}

const error broken{errc::kernel_failure, "broken"};

transfer_content mark() {
  return {{}, broken};
}

struct rig {
  transport ends{2, 2}; // two channels, two steps ahead
  slow_wire over;
  listener heard;

  rig() { ends.connect(over); }
  launch_status send(step_id step, transfer_content content) {
    return ends.send(0, step, std::move(content), heard);
  }
};

} // namespace

TEST_CASE_FIXTURE(rig, "items that arrive before their receiver are kept") {
  CHECK(ends.arrived(0, 0, value("zero")));
  CHECK(ends.arrived(0, 1, value("one")));
  CHECK(over.taken.empty());
  CHECK(ends.receive(0, 0, heard)->value == "zero");
  CHECK(ends.receive(0, 1, heard)->value == "one");
  CHECK(over.taken
        == std::vector<std::pair<std::uint32_t, step_id>>{{0, 0}, {0, 1}});
  CHECK_FALSE(heard.got);
}

TEST_CASE_FIXTURE(rig, "a waiting receiver is notified once") {
  CHECK_FALSE(ends.receive(1, 0, heard));
  CHECK(ends.arrived(0, 0, value("of another channel")));
  CHECK_FALSE(heard.got);
  CHECK(ends.arrived(1, 0, value("zero")));
  REQUIRE(heard.got);
  CHECK(heard.got->value == "zero");
  heard.got.reset();
  CHECK(ends.arrived(1, 1, value("one")));
  CHECK_FALSE(heard.got);
}

TEST_CASE_FIXTURE(rig, "a sender is at most two steps ahead of its receiver") {
  CHECK(send(0, value("zero")) == launch_status::done);
  CHECK(send(1, value("one")) == launch_status::done);
  CHECK(send(2, value("two")) == launch_status::pending);
  CHECK(over.sent.size() == 2);
  CHECK(heard.completions == 0);
  CHECK(ends.taken(0, 0));
  REQUIRE(over.sent.size() == 3);
  CHECK(over.sent[2].content.value == "two");
  CHECK(heard.completions == 1);
  CHECK(send(3, value("three")) == launch_status::pending);
  CHECK(ends.taken(0, 1));
  CHECK(ends.taken(0, 2));
  CHECK(send(4, value("four")) == launch_status::done);
}

TEST_CASE_FIXTURE(rig, "failures are sent without waiting") {
  for (step_id step = 0; step < 5; ++step)
    CHECK(send(step, mark()) == launch_status::done);
  CHECK(over.sent.size() == 5);
  CHECK(over.sent[4].content.failure->code() == errc::kernel_failure);
}

TEST_CASE_FIXTURE(rig, "a failed step releases its waiting receiver") {
  CHECK_FALSE(ends.receive(0, 0, heard));
  ends.give_up(1, broken); // of another step
  CHECK_FALSE(heard.got);
  ends.give_up(0, broken);
  REQUIRE(heard.got);
  CHECK(heard.got->value.empty());
  heard.got.reset();
  // The item of the failed step is dropped when it arrives, and acknowledged.
  CHECK_FALSE(ends.receive(0, 1, heard));
  CHECK(ends.arrived(0, 0, value("late")));
  CHECK_FALSE(heard.got);
  CHECK(over.taken.size() == 1);
  CHECK(ends.arrived(0, 1, value("one")));
  CHECK(heard.got->value == "one");
}

TEST_CASE_FIXTURE(rig, "a waiting send becomes a failure if its step fails") {
  CHECK(send(0, value("zero")) == launch_status::done);
  CHECK(send(1, value("one")) == launch_status::done);
  CHECK(send(2, value("two")) == launch_status::pending);
  ends.give_up(2, broken);
  CHECK(heard.completions == 1);
  REQUIRE(over.sent.size() == 3);
  CHECK(over.sent[2].step == 2);
  CHECK(over.sent[2].content.value.empty());
  CHECK(over.sent[2].content.failure->message() == "broken");
}

TEST_CASE_FIXTURE(rig, "dropped items are discarded and acknowledged") {
  CHECK(ends.arrived(0, 0, value("early")));
  ends.drop(0, 0);
  ends.drop(0, 1);
  CHECK(over.taken.size() == 1);
  CHECK(ends.arrived(0, 1, value("late")));
  CHECK(over.taken.size() == 2);
  CHECK(ends.arrived(0, 2, value("two")));
  CHECK(ends.receive(0, 2, heard)->value == "two");
}

TEST_CASE_FIXTURE(rig, "sends to a receiver that is gone do not wait") {
  CHECK(send(0, value("zero")) == launch_status::done);
  CHECK(send(1, value("one")) == launch_status::done);
  CHECK(send(2, value("two")) == launch_status::pending);
  ends.receiver_is_gone(0);
  CHECK(heard.completions == 1);
  CHECK(send(3, value("three")) == launch_status::done);
  CHECK(ends.taken(0, 0)); // was already on its way
  CHECK(send(4, value("four")) == launch_status::done);
}

TEST_CASE_FIXTURE(rig, "unexpected items and acknowledgements are refused") {
  CHECK_FALSE(ends.arrived(7, 0, value("no such channel")));
  CHECK_FALSE(ends.arrived(0, 1, value("a step too early")));
  CHECK(ends.arrived(0, 0, value("zero")));
  CHECK_FALSE(ends.arrived(0, 0, value("twice")));
  CHECK(ends.arrived(0, 1, value("one")));
  CHECK_FALSE(ends.arrived(0, 2, value("farther ahead than agreed")));
  for (step_id step = 2; step < 4096; ++step)
    REQUIRE(ends.arrived(0, step, mark()));
  CHECK_FALSE(ends.arrived(0, 4096, mark()));
  CHECK(ends.receive(0, 0, heard)->value == "zero");

  CHECK_FALSE(ends.taken(7, 0));
  CHECK_FALSE(ends.taken(0, 0)); // nothing was sent
  CHECK(send(0, value("zero")) == launch_status::done);
  CHECK(ends.taken(0, 0));
  CHECK_FALSE(ends.taken(0, 0));
  CHECK_FALSE(ends.taken(0, 1));
}

TEST_CASE("items sent within one process arrive") {
  transport ends{1, 1};
  actors::loopback_wire over{ends};
  ends.connect(over);
  listener sender, receiver;
  CHECK(ends.send(0, 0, value("zero"), sender) == launch_status::done);
  CHECK(ends.send(0, 1, value("one"), sender) == launch_status::pending);
  CHECK(ends.receive(0, 0, receiver)->value == "zero");
  CHECK(sender.completions == 1);
  CHECK(ends.receive(0, 1, receiver)->value == "one");
  CHECK_FALSE(ends.receive(0, 2, receiver));
  CHECK(ends.send(0, 2, value("two"), sender) == launch_status::done);
  CHECK(receiver.got->value == "two");
}

} // TEST_SUITE("actors.remote.transport")
