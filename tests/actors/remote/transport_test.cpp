// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/transport.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

using namespace troupe;
using actors::incoming_item;
using actors::outgoing_item;
using actors::transport;

TEST_SUITE("actors.remote.transport") {

namespace {

arena& test_memory() {
  static arena made{make_host_memory_source()};
  return made;
}

/// Keeps what is sent. The test delivers it.
struct slow_wire final : actors::wire {
  struct message {
    std::uint32_t channel;
    step_id step;
    outgoing_item item;
  };
  std::vector<message> sent;
  std::vector<std::pair<std::uint32_t, step_id>> taken;

  arena& memory() override { return test_memory(); }
  void send(std::uint32_t channel, step_id step, outgoing_item item) override {
    sent.push_back({channel, step, std::move(item)});
  }
  void tell_taken(std::uint32_t channel, step_id step) override {
    taken.emplace_back(channel, step);
  }
};

struct listener final : transport::receiver, completion {
  std::optional<incoming_item> got;
  int completions = 0;

  void received(incoming_item item) noexcept override { got = std::move(item); }
  void completed(std::exception_ptr failure) noexcept override {
    CHECK_FALSE(failure);
    ++completions;
  }
};

/// A value that can be told from others.
actors::encoded_value value(std::int32_t number) {
  auto t = tensor::make(test_memory(), shape{1}, dtype::int32);
  t.data<std::int32_t>()[0] = number;
  variable v;
  v.set(std::move(t));
  return actors::encode_value(v, test_memory());
}

outgoing_item item(std::int32_t number) {
  return {value(number), {}};
}

std::int32_t number_in(const variable& v) {
  return v.as_tensor().data<std::int32_t>()[0];
}

std::int32_t number_in(const outgoing_item& sent) {
  variable v;
  actors::decode_value(sent.value.text(), test_memory(), v);
  return number_in(v);
}

const error broken{errc::kernel_failure, "broken"};

outgoing_item mark() {
  return {{}, broken};
}

struct rig {
  transport ends{2, 2}; // two channels, two steps ahead
  slow_wire over;
  listener heard;

  rig() {
    ends.connect(over);
    for (std::uint32_t channel : {0, 1})
      ends.receive_into(channel, test_memory());
  }
  launch_status send(step_id step, outgoing_item sent) {
    return ends.send(0, step, std::move(sent), heard);
  }
  bool arrived(std::uint32_t channel, step_id step, std::int32_t number) {
    return ends.arrived(channel, step, value(number).text());
  }
};

} // namespace

TEST_CASE_FIXTURE(rig, "items that arrive before their receiver are kept") {
  CHECK(arrived(0, 0, 0));
  CHECK(arrived(0, 1, 1));
  CHECK(over.taken.empty());
  CHECK(number_in(ends.receive(0, 0, heard)->value) == 0);
  CHECK(number_in(ends.receive(0, 1, heard)->value) == 1);
  CHECK(over.taken
        == std::vector<std::pair<std::uint32_t, step_id>>{{0, 0}, {0, 1}});
  CHECK_FALSE(heard.got);
}

TEST_CASE_FIXTURE(rig, "a waiting receiver is notified once") {
  CHECK_FALSE(ends.receive(1, 0, heard));
  CHECK(arrived(0, 0, 9));
  CHECK_FALSE(heard.got);
  CHECK(arrived(1, 0, 0));
  REQUIRE(heard.got);
  CHECK(number_in(heard.got->value) == 0);
  heard.got.reset();
  CHECK(arrived(1, 1, 1));
  CHECK_FALSE(heard.got);
}

TEST_CASE_FIXTURE(rig, "a sender is at most two steps ahead of its receiver") {
  CHECK(send(0, item(0)) == launch_status::done);
  CHECK(send(1, item(1)) == launch_status::done);
  CHECK(send(2, item(2)) == launch_status::pending);
  CHECK(over.sent.size() == 2);
  CHECK(heard.completions == 0);
  CHECK(ends.taken(0, 0));
  REQUIRE(over.sent.size() == 3);
  CHECK(number_in(over.sent[2].item) == 2);
  CHECK(heard.completions == 1);
  CHECK(send(3, item(3)) == launch_status::pending);
  CHECK(ends.taken(0, 1));
  CHECK(ends.taken(0, 2));
  CHECK(send(4, item(4)) == launch_status::done);
}

TEST_CASE_FIXTURE(rig, "failures are sent without waiting") {
  for (step_id step = 0; step < 5; ++step)
    CHECK(send(step, mark()) == launch_status::done);
  CHECK(over.sent.size() == 5);
  CHECK(over.sent[4].item.failure->code() == errc::kernel_failure);
}

TEST_CASE_FIXTURE(rig, "a failed step releases its waiting receiver") {
  CHECK_FALSE(ends.receive(0, 0, heard));
  ends.give_up(1, broken); // of another step
  CHECK_FALSE(heard.got);
  ends.give_up(0, broken);
  REQUIRE(heard.got);
  CHECK_FALSE(heard.got->value.has_value());
  heard.got.reset();
  // The item of the failed step is dropped when it arrives, and acknowledged.
  CHECK_FALSE(ends.receive(0, 1, heard));
  CHECK(arrived(0, 0, 9));
  CHECK_FALSE(heard.got);
  CHECK(over.taken.size() == 1);
  CHECK(arrived(0, 1, 1));
  CHECK(number_in(heard.got->value) == 1);
}

TEST_CASE_FIXTURE(rig, "a waiting send becomes a failure if its step fails") {
  CHECK(send(0, item(0)) == launch_status::done);
  CHECK(send(1, item(1)) == launch_status::done);
  CHECK(send(2, item(2)) == launch_status::pending);
  ends.give_up(2, broken);
  CHECK(heard.completions == 1);
  REQUIRE(over.sent.size() == 3);
  CHECK(over.sent[2].step == 2);
  CHECK(over.sent[2].item.value.bytes == 0);
  CHECK(over.sent[2].item.failure->message() == "broken");
}

TEST_CASE_FIXTURE(rig, "dropped items are discarded and acknowledged") {
  CHECK(arrived(0, 0, 9));
  ends.drop(0, 0);
  ends.drop(0, 1);
  CHECK(over.taken.size() == 1);
  CHECK(arrived(0, 1, 9));
  CHECK(over.taken.size() == 2);
  CHECK(arrived(0, 2, 2));
  CHECK(number_in(ends.receive(0, 2, heard)->value) == 2);
}

TEST_CASE_FIXTURE(rig, "sends to a receiver that is gone do not wait") {
  CHECK(send(0, item(0)) == launch_status::done);
  CHECK(send(1, item(1)) == launch_status::done);
  CHECK(send(2, item(2)) == launch_status::pending);
  ends.receiver_is_gone(0);
  CHECK(heard.completions == 1);
  CHECK(send(3, item(3)) == launch_status::done);
  CHECK(ends.taken(0, 0)); // was already on its way
  CHECK(send(4, item(4)) == launch_status::done);
}

TEST_CASE_FIXTURE(rig, "unexpected items, bad values and acknowledgements are "
                       "refused") {
  CHECK_FALSE(arrived(7, 0, 9));
  CHECK_FALSE(arrived(0, 1, 9));
  CHECK(arrived(0, 0, 0));
  CHECK_FALSE(arrived(0, 0, 9));
  CHECK(arrived(0, 1, 1));
  CHECK_FALSE(arrived(0, 2, 9));
  for (step_id step = 2; step < 4096; ++step)
    REQUIRE(ends.arrived(0, step, broken));
  CHECK_FALSE(ends.arrived(0, 4096, broken));
  CHECK_FALSE(ends.arrived(1, 0, "no value"));
  CHECK(number_in(ends.receive(0, 0, heard)->value) == 0);

  CHECK_FALSE(ends.taken(7, 0));
  CHECK_FALSE(ends.taken(0, 0)); // nothing was sent
  CHECK(send(0, item(0)) == launch_status::done);
  CHECK(ends.taken(0, 0));
  CHECK_FALSE(ends.taken(0, 0));
  CHECK_FALSE(ends.taken(0, 1));
}

TEST_CASE("items sent within one process arrive") {
  transport ends{1, 1};
  actors::loopback_wire over{ends};
  ends.connect(over);
  ends.receive_into(0, test_memory());
  listener sender, receiver;
  CHECK(ends.send(0, 0, item(0), sender) == launch_status::done);
  CHECK(ends.send(0, 1, item(1), sender) == launch_status::pending);
  CHECK(number_in(ends.receive(0, 0, receiver)->value) == 0);
  CHECK(sender.completions == 1);
  CHECK(number_in(ends.receive(0, 1, receiver)->value) == 1);
  CHECK_FALSE(ends.receive(0, 2, receiver));
  CHECK(ends.send(0, 2, item(2), sender) == launch_status::done);
  CHECK(number_in(receiver.got->value) == 2);
}

} // TEST_SUITE("actors.remote.transport")
