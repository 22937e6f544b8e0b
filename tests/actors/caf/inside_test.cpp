// SPDX-License-Identifier: Apache-2.0

// What all versions of CAF must do alike.

#include <troupe/actors/caf/inside.hpp>

#include <actors/application.hpp>
#include <support/caught.hpp>
#include <troupe/actors/configure.hpp>
#include <troupe/actors/messages.hpp>
#include <troupe/actors/workers/queue_policy.hpp>
#include <troupe/base/error.hpp>

#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using namespace troupe::actors;

TEST_SUITE("actors.caf_inside") {

namespace {

caf::behavior doubling(caf::event_based_actor*) {
  return {[](int number) { return 2 * number; }};
}

class noting_task final : public worker_task {
public:
  explicit noting_task(std::atomic<int>& runs) : runs_(runs) {}
  void run() override {
    ++runs_;
    runs_.notify_all();
  }

private:
  std::atomic<int>& runs_;
};

} // namespace

TEST_CASE("a system that Troupe makes has its scheduling policy") {
  caf::actor_system_config config;
  const auto system = make_actor_system(config, 1);
  CHECK(policy_queue_of(*system).queue != nullptr);
  CHECK(workers_of(*system) == 1);
  CHECK(policy_queue_of(*system).queue->workers() == 1);
  caf::scoped_actor self{*system};
  const auto who = system->spawn(doubling);
  int answer = 0;
  ask(self, who, caf::infinite, 21)
    .receive([&](int number) { answer = number; }, [](const caf::error&) {});
  CHECK(answer == 42);
}

TEST_CASE("a task runs once on a worker, which then lets go of it") {
  application app;
  std::atomic<int> runs{0};
  for (int i = 1; i <= 10; ++i) {
    run_on_worker(app.system, new noting_task{runs}); // leaks are reported
    runs.wait(i - 1);
  }
  CHECK(runs == 10);
}

TEST_CASE("an actor is found by its name until the name is forgotten") {
  application app;
  const auto who = caf::actor_cast<caf::strong_actor_ptr>(
    app.system.spawn<caf::hidden>(doubling));
  CHECK(find_named(app.system, "doubler") == nullptr);
  put_named(app.system, "doubler", who);
  CHECK(find_named(app.system, "doubler") == who);
  CHECK(find_named(app.system, "doublers") == nullptr);
  forget_named(app.system, "doubler");
  CHECK(find_named(app.system, "doubler") == nullptr);
}

TEST_CASE("no two long names are taken for the same") {
  application app;
  const auto who = caf::actor_cast<caf::strong_actor_ptr>(
    app.system.spawn<caf::hidden>(doubling));
  constexpr auto name = "eleven_char", other = "eleven_chars";
  try {
    put_named(app.system, name, who);
    CHECK(find_named(app.system, other) == nullptr);
    forget_named(app.system, name);
  } catch (const error& why) { // CAF 0.17
    CHECK(why.code() == errc::invalid_argument);
    CHECK(why.message().find(name) != std::string::npos);
  }
}

TEST_CASE("messages are told apart by their types, and atoms by their names") {
  application app;
  const std::vector<caf::message> all{
    caf::make_message(1), caf::make_message(1, 2), caf::make_message(1.0),
    caf::make_message(ready_atom_v), caf::make_message(describe_atom_v, 1)};
  for (auto& a : all)
    for (auto& b : all)
      CHECK((types_key(a) == types_key(b)) == (&a == &b));
}

TEST_CASE("a message is described by the types of its elements") {
  application app;
  const auto text =
    types_text(app.system, caf::make_message(ready_atom_v, std::uint32_t{1}));
  CHECK((text == "('ready', u32)" // CAF 0.17; then 1.x
         || text == "(troupe::actors::ready_atom, uint32_t)"));
}

TEST_CASE("an error keeps its code and its text") {
  init_message_types();
  const auto made = make_answer(7, "why");
  CHECK(made.code() == 7);
  CHECK(made.category() == answer_category);
  CHECK(made.context().match_elements<std::string>());
  CHECK(to_string(made).find("why") != std::string::npos);
}

} // TEST_SUITE("actors.caf_inside")
