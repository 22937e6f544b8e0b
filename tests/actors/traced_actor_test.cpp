// SPDX-License-Identifier: Apache-2.0

// What is recorded of an application's own actors.

#include <troupe/actors/traced_actor.hpp>

#include <troupe/actors/caf/inside.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/base/event_reader.hpp>
#include <troupe/trace/trace_reader.hpp>

#include <actors/application.hpp>
#include <actors/small_nets.hpp>
#include <support/files.hpp>

#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

CAF_BEGIN_TYPE_ID_BLOCK(traced_actor_test, caf::first_custom_type_id)
CAF_ADD_ATOM(traced_actor_test, counter_atoms, hold, "hold")
CAF_ADD_ATOM(traced_actor_test, counter_atoms, count, "count")
CAF_END_TYPE_ID_BLOCK(traced_actor_test)

using namespace troupe;
using namespace troupe::test;
using namespace counter_atoms;

TEST_SUITE("actors.traced_actor") {

namespace {

/// A handler that waits here stays in it until the gate is opened.
struct gate {
  std::atomic<bool> has_come{false}, is_open{false};

  void pass() {
    has_come = true;
    has_come.notify_all();
    is_open.wait(false);
  }
  void wait_for_somebody() { has_come.wait(false); }
  void open() {
    is_open = true;
    is_open.notify_all();
  }
};

class counter : public traced<caf::event_based_actor> {
public:
  counter(caf::actor_config& cfg, std::shared_ptr<recorder> to,
          std::shared_ptr<gate> at)
    : traced(cfg, std::move(to)), at_(std::move(at)) {}

  const char* name() const override { return "counter"; }

protected:
  caf::behavior make_behavior() override {
    return {[this](hold) { at_->pass(); },
            [](count, int number) {
              if (number < 0)
                throw std::runtime_error("cannot count to -1");
              return number + 1;
            }};
  }

private:
  std::shared_ptr<gate> at_;
};

/// What an executor has recorded of the application's actors.
struct records {
  std::vector<trace_event> events;
  std::vector<recorded_actor> actors;
  std::vector<std::string> types;

  explicit records(const recorder& of) {
    for (const auto& e : event_reader{of, event_reader::start::oldest}.take())
      if (is_of_actor(e.kind))
        events.push_back(e);
    const auto all = of.actors().since(0);
    for (const auto& [number, actor] : all.actors)
      actors.push_back(actor);
    for (const auto& [number, name] : all.types)
      types.push_back(name);
  }

  std::vector<trace_event> of(event_kind kind) const {
    std::vector<trace_event> found;
    std::ranges::copy_if(events, std::back_inserter(found),
                         [kind](const auto& e) { return e.kind == kind; });
    return found;
  }
  std::vector<std::string> types_of(event_kind kind) const {
    std::vector<std::string> found;
    for (const auto& e : of(kind))
      found.push_back(types.at(mail_id::of(e.amount).type));
    return found;
  }
  std::vector<std::uint32_t> steps_of(event_kind kind) const {
    std::vector<std::uint32_t> found;
    for (const auto& e : of(kind))
      found.push_back(e.step);
    return found;
  }
};

/// What CAF calls the types of a message with this content.
template <class... Ts>
std::string types_of(const application& app, const Ts&... content) {
  return actors::types_text(app.system, caf::make_message(content...));
}

/// An executor in the application's system, of which messages are recorded.
struct traced_application {
  application app;
  small_net net = make_mlp();
  std::optional<executor> exe;
  std::shared_ptr<recorder> trace;
  std::optional<level_request> level;
  caf::scoped_actor self{app.system};

  explicit traced_application(trace_level wanted = trace_level::messages) {
    actors::register_types<caf::id_block::traced_actor_test>();
    executor_options options;
    options.parameters = net.parameters();
    options.system = &app.system;
    options.flight_recorder.level = trace_level::steps;
    exe.emplace(net.main, options);
    trace = exe->shared_trace();
    level.emplace(*trace, wanted);
  }
  ~traced_application() { level.reset(); }

  /// Ends the actor when it has handled all that was sent to it.
  void finish(const caf::actor& who) { finish(who, *trace); }
  void finish(const caf::actor& who, const recorder& of) {
    self->send_exit(who, caf::exit_reason::user_shutdown);
    wait_for(who, of);
  }
  /// Returns when the actor has ended and its records are complete: CAF 1.x
  /// tells monitors first.
  void wait_for(const caf::actor& who) { wait_for(who, *trace); }
  void wait_for(const caf::actor& who, const recorder& of) {
    self->wait_for(who);
    const auto has_end = [id = who.id()](const auto& numbered) {
      return numbered.second.id == id && numbered.second.end_ns;
    };
    const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds{60};
    while (std::ranges::none_of(of.actors().since(0).actors, has_end)) {
      REQUIRE(std::chrono::steady_clock::now() < until);
      std::this_thread::yield();
    }
  }
};

struct keeper_state {
  const char* name = "keeper"; // NOLINT: CAF's way to name an actor
  int kept = 0;
};

template <class Traced>
class keeper : public caf::stateful_actor<keeper_state, Traced> {
public:
  keeper(caf::actor_config& cfg, std::shared_ptr<recorder> to)
    : caf::stateful_actor<keeper_state, Traced>(cfg, std::move(to)) {}

protected:
  caf::behavior make_behavior() override {
    return {[this](int number) { return this->state.kept += number; }};
  }
};

/// Null where CAF gives the arguments to the state, not to the traced actor.
template <class Traced>
caf::actor spawn_keeper(caf::actor_system& system,
                        const std::shared_ptr<recorder>& to) {
  using stateful = caf::stateful_actor<keeper_state, Traced>;
  if constexpr (requires(stateful & actor) { actor.state.kept; })
    return system.spawn<keeper<Traced>>(to);
  else
    return nullptr;
}

constexpr auto failed = static_cast<std::uint32_t>(handling_result::failed);
constexpr auto skipped = static_cast<std::uint32_t>(handling_result::skipped);

} // namespace

TEST_CASE("a message has its sender, types, handler and mailbox length") {
  traced_application run;
  const auto at = std::make_shared<gate>();
  const auto who = run.app.system.spawn<counter>(run.trace, at);
  run.self->send(who, hold_v);
  at->wait_for_somebody();
  for (int i = 0; i < 3; ++i)
    run.self->send(who, count_v, i);
  at->open();
  run.finish(who);

  const records found{*run.trace};
  REQUIRE(found.actors.size() == 2);
  CHECK(found.actors[0].name == "counter");
  CHECK(found.actors[0].id == who.id());
  CHECK(found.actors[0].is_recorded);
  CHECK(found.actors[1].id == run.self->id());
  CHECK_FALSE(found.actors[1].is_recorded);
  CHECK(found.actors[1].node.empty());
  const auto counts = types_of(run.app, count_v, 0);
  CHECK(found.types_of(event_kind::mail)
        == std::vector<std::string>{types_of(run.app, hold_v), counts, counts,
                                    counts,
                                    types_of(run.app, caf::exit_msg{})});
  for (const auto& mail : found.of(event_kind::mail)) {
    CHECK(mail.from == 1);
    CHECK(mail.to == 0);
  }
  // An exit message is urgent: it overtakes others of its round.
  const auto waiting = found.steps_of(event_kind::handling_begin);
  REQUIRE(waiting.size() == found.of(event_kind::handling_end).size());
  CHECK(waiting.front() == 0);
  CHECK(std::ranges::max(waiting) >= 2);
}

TEST_CASE("each message is handled under the number with which it came") {
  traced_application run;
  const auto at = std::make_shared<gate>();
  const auto who = run.app.system.spawn<counter>(run.trace, at);
  run.self->send(who, hold_v);
  at->wait_for_somebody();
  run.self->send(who, count_v, 1);
  run.self->send(who, count_v, 2);
  at->open();
  for (int answers = 0; answers < 2; ++answers)
    run.self->receive([](int) {});
  run.finish(who);

  const records found{*run.trace};
  const auto mails = found.of(event_kind::mail);
  const auto begins = found.of(event_kind::handling_begin);
  REQUIRE(mails.size() == 4);
  REQUIRE(begins.size() == 4);
  for (std::size_t i = 0; i < mails.size(); ++i) {
    CHECK(begins[i].amount == mails[i].amount);
    CHECK(begins[i].from == mails[i].to);
    CHECK(begins[i].time >= mails[i].time);
  }
  CHECK(found.steps_of(event_kind::handling_begin)
        == std::vector<std::uint32_t>{0, 1, 0, 0});
  CHECK(found.steps_of(event_kind::handling_end)
        == std::vector<std::uint32_t>{0, 0, 0, 0});
}

TEST_CASE("below level messages, actors are known and no message is recorded") {
  traced_application run{trace_level::ops};
  const auto who = run.app.system.spawn<counter>(run.trace, nullptr);
  run.self->send(who, count_v, 1);
  run.self->receive([](int answer) { CHECK(answer == 2); });
  run.finish(who);
  const records found{*run.trace};
  CHECK(found.events.empty());
  CHECK(found.types.empty());
  REQUIRE(found.actors.size() == 1);
  CHECK(found.actors[0].name == "counter");
  CHECK(found.actors[0].end_ns);
}

TEST_CASE("an actor that ends by an exception keeps what the exception said") {
  traced_application run;
  const auto who = run.app.system.spawn<counter>(run.trace, nullptr);
  run.self->send(who, count_v, -1);
  run.wait_for(who);
  const records found{*run.trace};
  CHECK(found.actors[0].has_failed);
  CHECK(found.actors[0].reason.ends_with(": cannot count to -1"));
  CHECK(found.steps_of(event_kind::handling_end)
        == std::vector<std::uint32_t>{failed});
}

TEST_CASE("an actor that was told to end has not failed") {
  traced_application run;
  const auto ends_with = [&](caf::exit_reason reason) {
    const auto who = run.app.system.spawn<counter>(run.trace, nullptr);
    run.self->send_exit(who, reason);
    run.wait_for(who);
    return records{*run.trace}.actors.back();
  };
  CHECK_FALSE(ends_with(caf::exit_reason::user_shutdown).has_failed);
  CHECK_FALSE(ends_with(caf::exit_reason::kill).has_failed);
  CHECK(ends_with(caf::exit_reason::out_of_workers).has_failed);
  const auto lost = ends_with(caf::exit_reason::remote_link_unreachable);
  CHECK(lost.has_failed);
  CHECK(lost.reason == "remote_link_unreachable");
}

TEST_CASE("a message that is skipped waits, and is handled again") {
  traced_application run;
  const auto who = run.app.system.spawn<traced_function>(
    run.trace, "picky", [](caf::event_based_actor* self) -> caf::behavior {
      self->set_default_handler(caf::skip);
      return {[self](hold) {
        self->become([](count, int number) { return number; });
      }};
    });
  run.self->send(who, count_v, 7);
  run.self->send(who, hold_v);
  run.self->receive([](int answer) { CHECK(answer == 7); });
  run.finish(who);
  const records found{*run.trace};
  CHECK(found.actors[0].name == "picky");
  const auto ends = found.steps_of(event_kind::handling_end);
  if (!actors::tells_of_skipped)
    return;
  REQUIRE(ends.size() == 4); // count, hold, count again, exit
  CHECK(ends[0] == skipped);
  CHECK(std::ranges::count(ends, skipped) == 1);
  const auto begins = found.of(event_kind::handling_begin);
  CHECK(begins[0].amount == begins[2].amount);
}

TEST_CASE("an actor can send to itself before it is launched") {
  class hasty : public traced<caf::event_based_actor> {
  public:
    hasty(caf::actor_config& cfg, std::shared_ptr<recorder> to)
      : traced(cfg, std::move(to)) {
      send(this, count_v, 1);
    }

  protected:
    caf::behavior make_behavior() override {
      return {[this](count, int) { quit(); }};
    }
  };
  traced_application run;
  run.wait_for(run.app.system.spawn<hasty>(run.trace));
  const records found{*run.trace};
  REQUIRE(found.actors.size() == 1);
  // It has no name of its own: that of its class.
  CHECK(found.actors[0].name.find("hasty") != std::string::npos);
  CHECK(found.actors[0].reason == "normal");
  REQUIRE(found.of(event_kind::mail).size() == 1);
  CHECK(found.of(event_kind::mail)[0].from == 0);
}

TEST_CASE("actors with a state can be traced") {
  traced_application run;
  const auto who =
    spawn_keeper<traced<caf::event_based_actor>>(run.app.system, run.trace);
  if (!who)
    return;
  run.self->send(who, 2);
  run.self->receive([](int answer) { CHECK(answer == 2); });
  run.finish(who);
  const records found{*run.trace};
  CHECK(found.actors[0].name == "keeper");
  CHECK(found.types_of(event_kind::mail)
        == std::vector<std::string>{types_of(run.app, 0),
                                    types_of(run.app, caf::exit_msg{})});
}

TEST_CASE("typed actors can be traced") {
  using adder = caf::typed_actor<actors::answers<int, int>>;
  class typed : public traced<adder::base> {
  public:
    typed(caf::actor_config& cfg, std::shared_ptr<recorder> to)
      : traced(cfg, std::move(to)) {}

  protected:
    behavior_type make_behavior() override {
      return {[](int number) { return number + 1; }};
    }
  };
  traced_application run;
  const auto who = run.app.system.spawn<typed>(run.trace);
  run.self->send(who, 2);
  run.self->receive([](int answer) { CHECK(answer == 3); });
  run.finish(caf::actor_cast<caf::actor>(who));
  const records found{*run.trace};
  CHECK(found.actors[0].name.find("typed") != std::string::npos);
  CHECK(found.types_of(event_kind::mail)
        == std::vector<std::string>{types_of(run.app, 0),
                                    types_of(run.app, caf::exit_msg{})});
}

TEST_CASE("an actor belongs to the executor whose recorder it was given") {
  traced_application run;
  executor_options options;
  options.parameters = run.net.parameters();
  options.system = &run.app.system;
  executor other{run.net.main, options};
  const level_request level{other.trace(), trace_level::messages};
  const auto one = run.app.system.spawn<counter>(run.trace, nullptr);
  const auto two = run.app.system.spawn<counter>(other.shared_trace(), nullptr);
  run.self->send(two, count_v, 1);
  run.self->receive([](int) {});
  run.finish(one);
  run.finish(two, other.trace());
  const records of_one{*run.trace}, of_two{other.trace()};
  REQUIRE(of_one.actors.size() == 2);
  CHECK(of_one.actors[0].id == one.id());
  CHECK(of_one.of(event_kind::mail).size() == 1); // exit
  REQUIRE(of_two.actors.size() == 2);
  CHECK(of_two.actors[0].id == two.id());
  CHECK(of_two.of(event_kind::mail).size() == 2);
}

TEST_CASE("an actor outlives its executor, and is then not recorded") {
  traced_application run;
  const auto who = run.app.system.spawn<counter>(run.trace, nullptr);
  run.level.reset();
  run.exe.reset();
  CHECK(run.trace->level() == trace_level::off);
  run.self->send(who, count_v, 1);
  run.self->receive([](int answer) { CHECK(answer == 2); });
  run.finish(who);
  const records found{*run.trace};
  CHECK(found.events.empty());
  CHECK(found.actors[0].end_ns);
}

TEST_CASE("a trace and a dump have the application's actors") {
  const temporary_folder folder;
  traced_application run;
  trace_options wanted;
  wanted.file = (folder / "a.trt").string();
  run.exe->start_trace(wanted);
  const auto who = run.app.system.spawn<counter>(run.trace, nullptr);
  run.self->send(who, count_v, 1);
  run.self->receive([](int) {});
  run.exe->run(run.net.batch(0, 4));
  run.self->send(who, count_v, -1);
  run.wait_for(who);
  run.exe->dump_trace(folder / "dump.trt");
  run.exe->stop_trace();
  for (const auto* file : {"a.trt", "dump.trt"}) {
    CAPTURE(file);
    const auto t = trace::read_trace(folder / file);
    CHECK(t.is_complete);
    REQUIRE(t.actors.size() == 2);
    CHECK(t.name_of_actor(0) == "counter#" + std::to_string(who.id()));
    CHECK(t.actors[0].has_failed);
    CHECK(t.actors[0].end_ns.value_or(0) > 0);
    CHECK(t.message_types
          == std::vector<std::string>{types_of(run.app, count_v, 0)});
    CHECK(std::ranges::count(t.events, event_kind::mail, &trace_event::kind)
          == 2);
    CHECK(
      std::ranges::count(t.events, event_kind::handling_end, &trace_event::kind)
      == 2);
    CHECK(std::ranges::count(t.events, event_kind::step_end, &trace_event::kind)
          == 1);
  }
}

} // TEST_SUITE("actors.traced_actor")
