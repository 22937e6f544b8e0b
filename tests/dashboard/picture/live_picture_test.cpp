// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/picture/live_picture.hpp>

#include <trace/export/hand_made_trace.hpp>

#include <doctest/doctest.h>

#include <memory>

using namespace troupe;
using namespace troupe::dashboard;
using namespace troupe::test;

TEST_SUITE("dashboard.live_picture") {

namespace {

/// conv2d -> image -> momentum, which waits for conv2d of the next step.
struct small_run {
  trace::process_trace trace = two_ops();
  std::unique_ptr<live_picture> picture =
    std::make_unique<live_picture>(trace.graph, std::vector<std::size_t>{0}, 2);

  /// Step 0 has begun.
  small_run() { begin(0); }

  void begin(std::uint32_t step) {
    events().on(0, step).add(0, event_kind::step_begin);
  }
  event_list events() { return event_list{trace}; }
  /// Adds the events that were listed since the last call.
  void show() {
    picture->add(trace.events);
    trace.events.clear();
  }
};

} // namespace

TEST_CASE("a handle waits, is ready, runs and is done") {
  small_run r;
  CHECK(r.picture->states()[conv] == handle_state::waits);
  r.events().message(10, update, conv);
  r.show();
  CHECK(r.picture->states()[conv] == handle_state::is_ready);
  CHECK(r.picture->arrived()[conv] == 1);
  r.events().add(20, event_kind::run_begin, conv);
  r.show();
  CHECK(r.picture->states()[conv] == handle_state::runs);
  r.events().add(30, event_kind::run_end, conv).message(30, conv, image);
  r.show();
  CHECK(r.picture->states()[conv] == handle_state::is_done);
  CHECK(r.picture->runs()[conv] == 1);
  CHECK(r.picture->states()[image] == handle_state::is_done);
  CHECK(r.picture->states()[update] == handle_state::waits);
}

TEST_CASE("a message of the next step begins a handle anew") {
  small_run r;
  r.events().message(10, update, conv).run(20, 30, conv);
  r.show();
  r.begin(1);
  r.events().on(0, 1).message(40, update, conv);
  r.show();
  CHECK(r.picture->states()[conv] == handle_state::is_ready);
  CHECK(r.picture->arrived()[conv] == 1);
}

TEST_CASE("a message to a step that has not begun waits for it") {
  small_run r;
  r.trace.graph.handles[conv].messages = 2; // of momentum, and the begin
  r.picture = std::make_unique<live_picture>(r.trace.graph,
                                             std::vector<std::size_t>{0}, 2);
  CHECK(r.picture->needs(conv) == 2);
  r.events().message(10, update, conv).run(20, 30, conv);
  r.events().on(0, 1).message(40, update, conv);
  r.show();
  CHECK(r.picture->states()[conv] == handle_state::is_done);
  r.begin(1);
  r.events().on(0, 1).message(50, no_handle, conv);
  r.show();
  CHECK(r.picture->states()[conv] == handle_state::is_ready);
  CHECK(r.picture->arrived()[conv] == 2);
}

TEST_CASE("what an earlier step still does leaves a newer one alone") {
  small_run r;
  r.begin(1);
  r.events().on(0, 1).message(10, update, conv);
  r.events().on(0, 0).message(20, update, conv).run(30, 40, conv);
  r.show();
  CHECK(r.picture->states()[conv] == handle_state::is_ready);
  CHECK(r.picture->arrived()[conv] == 1);
  CHECK(r.picture->runs()[conv] == 1); // it ran all the same
}

TEST_CASE("messages are counted by edge") {
  small_run r;
  r.events()
    .message(10, update, conv)
    .message(20, conv, image)
    .message(30, image, update)
    .on(0, 1)
    .message(40, update, conv)
    .message(50, no_handle, conv)
    .message(60, update, image); // the graph has no such edge
  r.show();
  CHECK(r.picture->edge_messages()[0] == 1);
  CHECK(r.picture->edge_messages()[1] == 1);
  CHECK(r.picture->edge_messages()[2] == 2);
  CHECK(r.picture->messages() == 6);
}

TEST_CASE("without messages a variable is ready when its op has run") {
  small_run r;
  r.events().run(10, 20, conv);
  r.show();
  CHECK(r.picture->states()[image] == handle_state::is_done);
  CHECK(r.picture->runs()[image] == 1);
}

TEST_CASE("handles of other processes are elsewhere") {
  auto trace = two_ops();
  trace.graph.devices = {"cpu:0", "cpu:1"};
  trace.graph.process_of_device = {0, 1};
  trace.graph.handles[update].device = 1;
  const live_picture here{trace.graph, {0}, 1}, there{trace.graph, {1}, 1};
  CHECK(here.states()[conv] == handle_state::waits);
  CHECK(here.states()[update] == handle_state::elsewhere);
  CHECK(there.states()[conv] == handle_state::elsewhere);
}

TEST_CASE("a step's time begins with the end of the step before") {
  small_run r;
  r.trace.events.clear();
  r.events().on(0, 0).add(1'000'000, event_kind::step_begin);
  r.events().on(0, 1).add(2'000'000, event_kind::step_begin);
  r.events().on(0, 0).add(4'000'000, event_kind::step_end);
  r.show();
  CHECK(r.picture->steps_under_way() == 1);
  r.events().on(0, 1).add(6'000'000, event_kind::step_end);
  r.show();
  REQUIRE(r.picture->steps().size() == 2);
  CHECK(r.picture->steps()[0].ms.value() == doctest::Approx(3));
  CHECK(r.picture->steps()[1].ms.value() == doctest::Approx(2));
  CHECK(r.picture->newest_step() == 1);
  CHECK(r.picture->steps_ended() == 2);
}

TEST_CASE("what the training loop knows joins what events tell of a step") {
  small_run r;
  r.events().add(2'000'000, event_kind::step_end);
  r.show();
  r.picture->add(step_record{0, 99, 0.5, 100, 0.01});
  REQUIRE(r.picture->steps().size() == 1);
  CHECK(r.picture->steps()[0].ms.value() == doctest::Approx(2));
  CHECK(r.picture->steps()[0].loss == 0.5);
  r.picture->add(step_record{1, 7, 0.4, 100, 0.01}); // before its events
  CHECK(r.picture->steps()[1].ms == 7);
}

TEST_CASE("only the newest steps are kept") {
  small_run r;
  for (std::uint32_t s = 0; s < live_picture::kept_steps + 5; ++s)
    r.picture->add(step_record{s, 1, 0.5, {}, {}});
  CHECK(r.picture->steps().size() == live_picture::kept_steps);
  CHECK(r.picture->steps().front().step == 5);
  CHECK(r.picture->steps_seen() == live_picture::kept_steps + 5);
}

TEST_CASE("memory is what temporaries hold, and the most they held") {
  small_run r;
  r.events()
    .add(10, event_kind::allocation, conv, image, 100)
    .add(20, event_kind::deallocation, update, image, 100)
    .add(30, event_kind::allocation, conv, image, 60);
  r.show();
  CHECK(r.picture->memory().bytes(0) == 60);
  CHECK(r.picture->peak_bytes(0) == 100);
}

TEST_CASE("feeds of a run in a file hold memory from the first step on") {
  small_run r;
  r.events()
    .add(10, event_kind::feed, image, no_handle, 100)
    .add(40, event_kind::deallocation, update, image, 100);
  r.picture->expect(r.trace.events);
  r.show();
  CHECK(r.picture->peak_bytes(0) == 100);
  CHECK(r.picture->memory().bytes(0) == 0);
}

TEST_CASE("feeds that nobody was seen to free hold no memory") {
  small_run r;
  const auto feeds = [&](std::uint64_t at, std::uint32_t step) {
    r.events().on(0, step).add(at, event_kind::feed, image, no_handle, 100);
  };
  const auto ends = [&](std::uint64_t at, std::uint32_t step) {
    r.events().on(0, step).add(at, event_kind::step_end);
  };
  // Someone looks: ops are recorded.
  feeds(1, 0);
  r.events().run(2, 3, conv).add(4, event_kind::deallocation, conv, image, 100);
  ends(5, 0);
  feeds(6, 1);
  r.show();
  CHECK(r.picture->memory().bytes(0) == 100);
  // Nobody looks: steps alone are recorded.
  for (std::uint32_t s = 2; s < 9; ++s) {
    ends(10 * s, s - 1);
    feeds(10 * s + 1, s);
  }
  r.show();
  CHECK(r.picture->memory().bytes(0) == 0);
}

TEST_CASE("events of handles that the graph lacks change nothing") {
  small_run r;
  r.events()
    .message(10, 77, 78)
    .run(20, 30, 77)
    .add(40, event_kind::allocation, 77, 78, 5)
    .add(50, event_kind::arrival, 77, 78, 0)
    .add(60, event_kind::failure, 77);
  r.show();
  CHECK(r.picture->failure() == "unknown op");
  CHECK(r.picture->states()[conv] == handle_state::waits);
}

} // TEST_SUITE("dashboard.live_picture")
