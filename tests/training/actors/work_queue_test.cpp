// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/actors/work_queue.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>

using namespace troupe;
using actors::work_item;
using actors::work_queue;

TEST_SUITE("training.work_queue") {

namespace {

/// A queue, and what has happened to its items: "a" for one that was started,
/// "a!" for one that was refused.
struct told_queue {
  work_queue queue{3, 2};
  std::string done;
  errc why = errc::busy;

  work_item item(const std::string& name) {
    return {[this, name] { done += name; },
            [this, name](const error& reason) {
              done += name + "!";
              why = reason.code();
            }};
  }
  work_item resting(const std::string& name) {
    auto made = item(name);
    made.needs_rest = true;
    return made;
  }
  work_item training(const std::string& name) {
    auto made = item(name);
    made.trains = true;
    return made;
  }
  work_item writing(const std::string& name) {
    auto made = item(name);
    made.writes_files = true;
    return made;
  }
};

} // namespace

TEST_CASE_FIXTURE(told_queue, "as many items run at a time as may") {
  for (const auto* name : {"a", "b", "c"})
    CHECK(queue.add(item(name)));
  CHECK(done == "ab");
  CHECK(queue.waiting() == 1);
  queue.ended();
  CHECK(done == "abc");
  CHECK(queue.running() == 2);
}

TEST_CASE_FIXTURE(told_queue, "what needs rest waits for what runs, and what "
                              "comes later waits for it") {
  queue.add(item("a"));
  queue.add(resting("r"));
  queue.add(item("b"));
  CHECK(done == "a");
  queue.ended();
  CHECK(done == "arb"); // `r` has begun: its effect precedes that of `b`
}

TEST_CASE_FIXTURE(told_queue, "an item that does not fit is refused at once") {
  for (const auto* name : {"a", "b", "c", "d", "e"})
    CHECK(queue.add(item(name)));
  CHECK_FALSE(queue.add(item("f")));
  CHECK(done == "abf!");
  CHECK(why == errc::busy);
}

TEST_CASE_FIXTURE(told_queue, "a snapshot waits for the one before it") {
  queue.begins_writing();
  queue.add(writing("s"));
  CHECK(done.empty());
  CHECK_FALSE(queue.is_at_rest());
  queue.ended_writing();
  CHECK(done == "s");
}

TEST_CASE_FIXTURE(told_queue, "while it is paused, what trains waits, and the "
                              "rest goes on before it") {
  queue.add(item("a"));
  queue.pause();
  queue.add(training("t"));
  queue.add(resting("r"));
  queue.add(resting("s"));
  CHECK(done == "a"); // still runs
  queue.ended();
  CHECK(done == "ar");
  queue.ended();
  queue.ended();
  CHECK(done == "ars");
  for (const auto* name : {"u", "v"})
    CHECK(queue.add(training(name)));
  CHECK_FALSE(queue.add(training("w")));
  CHECK(queue.add(resting("p"))); // starts at once: it needs no room
  CHECK(done == "arsw!p");
  queue.ended();
  queue.go_on();
  CHECK(done == "arsw!ptu");
}

TEST_CASE("an item that trains starts when it may, and the rest does not wait "
          "for it") {
  told_queue told;
  bool may = false;
  work_queue queue{3, 2, [&may] { return may; }};
  queue.add(told.training("t"));
  queue.add(told.resting("r"));
  CHECK(told.done == "r");
  queue.ended();
  may = true;
  CHECK(told.done == "r");
  queue.try_again();
  CHECK(told.done == "rt");
}

TEST_CASE_FIXTURE(told_queue, "an item that throws is refused and over") {
  queue.add({[] { throw error(errc::not_found, "nothing"); },
             [this](const error& reason) { why = reason.code(); }});
  CHECK(why == errc::not_found);
  CHECK(queue.is_at_rest());
}

TEST_CASE_FIXTURE(told_queue, "a queue that stops refuses all that waits and "
                              "comes") {
  for (const auto* name : {"a", "b", "c"})
    queue.add(item(name));
  queue.stop(error(errc::cancelled, "enough"));
  CHECK_FALSE(queue.add(item("d")));
  CHECK(done == "abc!d!");
  CHECK(why == errc::cancelled);
  CHECK(queue.running() == 2);
}

} // TEST_SUITE("training.work_queue")
