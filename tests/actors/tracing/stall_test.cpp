// SPDX-License-Identifier: Apache-2.0

// Each cause of a stall has a text, and says what belongs to it.

#include <troupe/actors/tracing/stall.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <initializer_list>
#include <string>

using namespace troupe;
using namespace troupe::actors;
using namespace std::chrono_literals;

TEST_SUITE("actors.tracing.stall") {

namespace {

/// A step whose oldest handle is this far.
stall stalled_at(progress how_far) {
  stall seen;
  seen.chain.links.push_back({.handle = 4,
                              .name = "conv2d#4@cpu:1",
                              .step = 7,
                              .how_far = how_far,
                              .stream = "cpu:1"});
  seen.since = 20ms;
  return seen;
}

stall stalled_in_call(std::vector<std::size_t> arrived,
                      std::vector<std::size_t> missing) {
  auto seen = stalled_at(progress::launched);
  seen.chain.call = comm::waiting_call{.position = 3,
                                       .text = "all_reduce of w@GRAD",
                                       .arrived = std::move(arrived),
                                       .missing = std::move(missing),
                                       .channel = "gloo",
                                       .bytes = 12'000'000};
  return seen;
}

} // namespace

TEST_CASE("a slow op names its median and that of the fastest rank") {
  auto seen = stalled_at(progress::runs);
  seen.rank = 1;
  seen.since = 52ms;
  seen.usual = {.median = 11ms, .fastest = 10ms, .fastest_rank = 0};
  CHECK(cause_of(seen) == stall_cause::slow_op);
  CHECK(text_of(seen)
        == "slow op: conv2d#4@cpu:1 of rank 1, step 7, runs on worker 0 for "
           "52.0 ms; its median is 11.0 ms, that of rank 0 is 10.0 ms");
  seen.usual.median = 3400ns;
  CHECK(text_of(seen).ends_with("its median is 3.4 us, that of rank 0 is "
                                "10.0 ms"));
  seen.usual.median = 11ms;
  seen.usual.fastest_rank = 1; // this one: nothing new
  CHECK(text_of(seen).ends_with("for 52.0 ms; its median is 11.0 ms"));
  seen.usual = {.fastest = 10ms, .fastest_rank = 0};
  CHECK(
    text_of(seen).ends_with("for 52.0 ms; the median of rank 0 is 10.0 ms"));
}

TEST_CASE("a slow op says which function it is in, if that is known") {
  auto seen = stalled_at(progress::runs);
  seen.ran = 52ms;
  seen.function = "kernel::run";
  CHECK(text_of(seen)
        == "slow op: conv2d#4@cpu:1, step 7, runs on worker 0 for 52.0 ms, in "
           "kernel::run");
}

TEST_CASE("a slow op without a history says how long it was seen to run") {
  CHECK(text_of(stalled_at(progress::runs))
        == "slow op: conv2d#4@cpu:1, step 7, runs on worker 0 for 20.0 ms");
}

TEST_CASE("a launch that does not end is a slow op") {
  const auto seen = stalled_at(progress::launched);
  CHECK(cause_of(seen) == stall_cause::slow_op);
  CHECK(text_of(seen)
        == "slow op: conv2d#4@cpu:1, step 7, was launched and is not complete "
           "for 20.0 ms");
}

TEST_CASE("a slow feed says which step waits for it") {
  stall seen;
  seen.awaited_step = 9;
  seen.waited_for_data = 3400ms;
  CHECK(cause_of(seen) == stall_cause::slow_feed);
  CHECK(text_of(seen)
        == "slow feed: step 9 waits for feed for 3.4 s: the data source has "
           "not given its batch");
}

TEST_CASE("a step that is under way does not wait for the next feed") {
  auto seen = stalled_at(progress::runs);
  seen.awaited_step = 9;
  CHECK(cause_of(seen) == stall_cause::slow_op);
}

TEST_CASE("a slow link says channel, ranks, bytes and their rate") {
  auto seen = stalled_in_call({0, 1}, {});
  seen.rank = 0;
  seen.since = 2s;
  seen.moved = 5'000'000;
  seen.chain.call->peer = 1;
  seen.chain.call->is_receiving = true;
  CHECK(cause_of(seen) == stall_cause::slow_link);
  CHECK(text_of(seen)
        == "slow link: conv2d#4@cpu:1 (all_reduce of w@GRAD) over gloo, rank 1 "
           "-> rank 0: 12.0 MB are under way, 5.0 MB have moved in 2.0 s, 2.5 "
           "MB/s");
  seen.chain.call->is_receiving = false;
  seen.moved = 0;
  CHECK(text_of(seen)
        == "slow link: conv2d#4@cpu:1 (all_reduce of w@GRAD) over gloo, rank 0 "
           "-> rank 1: 12.0 MB are under way, none has moved for 2.0 s");
}

TEST_CASE("a lost message or collective says who has come and who has not") {
  auto seen = stalled_in_call({0, 2}, {1});
  CHECK(cause_of(seen) == stall_cause::lost_message);
  CHECK(text_of(seen)
        == "lost message: conv2d#4@cpu:1 (all_reduce of w@GRAD) waits for rank "
           "1; ranks 0, 2 have arrived");
  CHECK(
    text_of(stalled_in_call({0}, {1, 2}))
    == "lost message: conv2d#4@cpu:1 (all_reduce of w@GRAD) waits for ranks "
       "1, 2; rank 0 has arrived");
  seen = stalled_at(progress::waits);
  seen.chain.missing = "relu#3@cpu:1, step 7";
  CHECK(text_of(seen)
        == "lost message: what relu#3@cpu:1, step 7 sends has not arrived");
}

TEST_CASE("ranks that are paused are told apart from those that are lost") {
  auto seen = stalled_in_call({0}, {1});
  seen.chain.paused = {1};
  CHECK(cause_of(seen) == stall_cause::paused);
  CHECK(text_of(seen)
        == "paused: conv2d#4@cpu:1 (all_reduce of w@GRAD) waits for rank 1, "
           "which is paused; rank 0 has arrived");
  seen = stalled_in_call({0}, {1, 2, 3});
  seen.chain.paused = {1, 3};
  CHECK(text_of(seen)
        == "paused: conv2d#4@cpu:1 (all_reduce of w@GRAD) waits for ranks 1, "
           "2, 3, of which ranks 1, 3 are paused; rank 0 has arrived");
}

TEST_CASE("a stuck worker says stream, op, since when, and what others run") {
  auto seen = stalled_at(progress::is_ready);
  seen.since = 1200ms;
  seen.chain.busy = {{0, "mul#2@cpu:0"}};
  CHECK(cause_of(seen) == stall_cause::stuck_worker);
  CHECK(text_of(seen)
        == "stuck worker: no worker has come to stream cpu:1 for 1.2 s, where "
           "conv2d#4@cpu:1, step 7, is ready; worker 0 runs mul#2@cpu:0");
}

TEST_CASE("a chain that ends at a ready op goes on with what workers run") {
  auto chain = stalled_at(progress::is_ready).chain;
  CHECK(actors::line_of(chain).ends_with("; no worker runs an op"));
  chain.busy = {{0, "mul#2@cpu:0"}, {1, "mul#3@cpu:0"}};
  const std::string both =
    "worker 0 runs mul#2@cpu:0, worker 1 runs mul#3@cpu:0";
  CHECK(actors::line_of(chain).ends_with("; " + both));
  CHECK(to_string(chain).ends_with("\nno worker has come to the stream: " + both
                                   + "\n"));
  CHECK(workers_text(stalled_at(progress::runs).chain).empty());
}

TEST_CASE("preempted and throttled workers are named before what they "
          "hold up") {
  auto seen = stalled_at(progress::runs);
  seen.cores_over = 300ms;
  seen.cores = {.ran_ns = 100'000'000, .waited_ns = 900'000'000};
  CHECK(text_of(seen).starts_with(
    "preempted worker: threads of this process waited 900.0 ms for a core, all "
    "together, and ran 100.0 ms; slow op: "));
  seen.cores = {.ran_ns = 100'000'000, .stolen_ns = 300'000'000};
  CHECK(text_of(seen).starts_with("throttled worker: other machines of the "
                                  "host took 300.0 ms of the cores' time; "
                                  "slow op: "));
  seen.cores = {.ran_ns = 900'000'000, .waited_ns = 100'000'000};
  CHECK(text_of(seen).starts_with("slow op: "));
  seen.cores = {.ran_ns = 1'000'000, .waited_ns = 70'000'000}; // of 300 ms
  CHECK(text_of(seen).starts_with("slow op: "));
}

TEST_CASE("slow motion is named before what it slows") {
  auto seen = stalled_at(progress::runs);
  seen.op_delay = 250ms;
  CHECK(text_of(seen).starts_with(
    "slow motion: each op begins 250.0 ms later; slow op: conv2d#4"));
}

TEST_CASE("core times that a system takes back count as none") {
  const core_times before{5, 6, 7};
  const auto since = core_times{4, 8, 7}.since(before);
  CHECK(since.ran_ns == 0);
  CHECK(since.waited_ns == 2);
  CHECK(since.stolen_ns == 0);
}

TEST_CASE("of a long chain, a line has both ends and the number of links") {
  wait_chain chain;
  const auto add = [&chain](int op) {
    auto& link = chain.links.emplace_back();
    link.name = "op#" + std::to_string(op);
    link.how_far = progress::no_step;
  };
  const auto line = [](std::initializer_list<int> ops) {
    std::string text;
    for (const auto i : ops)
      text += (text.empty() ? "op#" : "; op#") + std::to_string(i)
              + ": no step has run yet";
    return text;
  };
  CHECK(line_of(chain).empty());
  for (int i = 0; i < 7; ++i)
    add(i);
  CHECK(line_of(chain) == line({0, 1, 2, 3, 4, 5, 6}));
  add(7);
  CHECK(line_of(chain)
        == line({0, 1, 2}) + "; … 8 links …; " + line({5, 6, 7}));
}

TEST_CASE("each cause has a name of its own") {
  CHECK(to_string(stall_cause::paused) == "paused");
  CHECK(to_string(stall_cause::lost_message) == "lost message");
  CHECK(to_string(stall_cause::slow_link) == "slow link");
  CHECK(to_string(stall_cause::slow_op) == "slow op");
  CHECK(to_string(stall_cause::stuck_worker) == "stuck worker");
  CHECK(to_string(stall_cause::slow_feed) == "slow feed");
}

} // TEST_SUITE("actors.tracing.stall")
