// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/handles.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include <troupe/actors/caf/inside.hpp>
#include <troupe/actors/configure.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using actors::describe_atom_v;
using actors::ready_atom_v;

TEST_SUITE("actors.caf") {

namespace {

constexpr std::chrono::seconds patience{60};

struct application {
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system = make_actor_system(config, 2);
};

executor_options options_for(const small_net& net, application& app) {
  executor_options o;
  o.devices = parse_devices("cpu:2");
  o.parameters = net.parameters();
  o.system = &*app.system;
  return o;
}

/// The answer to the request `content`: a line, or "error: " and the error.
template <class... Ts>
std::string answer(caf::scoped_actor& self, const caf::actor& to,
                   const Ts&... content) {
  std::string line;
  self->request(to, patience, content...)
    .receive(
      [&](const std::string& text) { line = text; },
      [&](const caf::error& e) { line = "error: " + caf::to_string(e); });
  return line;
}

bool is_error(const std::string& line, const char* which) {
  return line.rfind("error: ", 0) == 0 && line.find(which) != line.npos;
}

/// The reason why a monitored actor has terminated.
caf::error down_reason(caf::scoped_actor& self) {
  caf::error reason;
  self->receive([&](const caf::down_msg& m) { reason = m.reason; },
                caf::after(patience) >> [] { FAIL("no down message"); });
  return reason;
}

/// Kernels of `tanh` wait until the gate is open.
struct gate {
  static std::atomic<int>& inside() {
    static std::atomic<int> count{0};
    return count;
  }
  static std::atomic<bool>& open() {
    static std::atomic<bool> value{true};
    return value;
  }
  static void run(kernel_context& ctx) {
    ++inside();
    while (!open())
      std::this_thread::yield();
    const auto x = ctx.input("X");
    auto out = ctx.output("Out", x.dims(), x.type());
    std::copy_n(x.data<float>(), x.numel(), out.data<float>());
  }
  static std::shared_ptr<kernel_table> kernels() {
    auto table = std::make_shared<kernel_table>(cpu_kernels());
    table->add("tanh", device_kind::cpu, &gate::run);
    return table;
  }
};

} // namespace

TEST_CASE("every handle describes itself in one line with its name") {
  application app;
  auto net = make_mlp();
  executor exe{net.main, options_for(net, app)};
  exe.run(net.batch(0, 4));
  caf::scoped_actor self{*app.system};
  auto& g = exe.graph();
  for (handle_id id = 0; id < g.size(); ++id) {
    const auto line = answer(self, handle_address(exe, id), describe_atom_v);
    CHECK(line.rfind(graph::handle_name(g, id) + ", step 0: ", 0) == 0);
    CHECK(line.find('\n') == line.npos);
    CHECK(line.find("is done") != line.npos);
  }
  const auto e =
    caught([&] { handle_address(exe, static_cast<handle_id>(g.size())); });
  CHECK(e.code() == errc::not_found);
}

TEST_CASE("a handle gets an actor id only when its address is requested") {
  application app;
  auto net = make_mlp();
  const auto first = app.system->next_actor_id();
  executor exe{net.main, options_for(net, app)};
  exe.run(net.batch(0, 4));
  const auto unasked = app.system->next_actor_id() - first;
  CHECK(unasked < exe.graph().ops.size());
  const auto before = app.system->next_actor_id();
  for (handle_id id : {0, 1, 0, 1})
    handle_address(exe, id); // nobody keeps the address
  CHECK(app.system->next_actor_id() - before == 2 + 1);
  CHECK(handle_address(exe, 0) == handle_address(exe, 0));
  CHECK(handle_address(exe, 0) != handle_address(exe, 1));
}

TEST_CASE("concurrent requests for a handle's address return the same actor") {
  application app;
  auto net = make_mlp();
  executor exe{net.main, options_for(net, app)};
  exe.submit(net.batch(0, 4)); // the threads ask while it runs
  constexpr std::size_t askers = 4;
  std::array<std::vector<caf::actor>, askers> got;
  std::atomic<std::size_t> here{0};
  std::vector<std::thread> threads;
  for (auto& mine : got)
    threads.emplace_back([&] {
      ++here;
      while (here < askers)
        std::this_thread::yield();
      for (handle_id id = 0; id < exe.graph().size(); ++id)
        mine.push_back(handle_address(exe, id));
    });
  for (auto& t : threads)
    t.join();
  for (auto& each : got)
    CHECK(each == got.front());
  for (handle_id id = 0; id < exe.graph().size(); ++id)
    CHECK(handle_address(exe, id) == got.front()[id]);
}

TEST_CASE("a handle's actor has the handle's name") {
  application app;
  auto net = make_mlp();
  for (auto form : {edge_form::counter, edge_form::message}) {
    auto options = options_for(net, app);
    options.hooks.form = form;
    executor exe{net.main, options};
    for (handle_id id = 0; id < exe.graph().size(); ++id) {
      const auto handle = handle_address(exe, id);
      const auto* actor = caf::actor_cast<caf::abstract_actor*>(handle);
      REQUIRE(actor != nullptr);
      CHECK(actors::name_of_actor(*actor)
            == graph::handle_name(exe.graph(), id));
    }
  }
}

TEST_CASE("a handle rejects unknown messages, and the next step still runs") {
  application app;
  auto net = make_mlp();
  executor exe{net.main, options_for(net, app)};
  caf::scoped_actor self{*app.system};
  for (handle_id id : {handle_id{0}, exe.graph().vars.front().id}) {
    const auto handle = handle_address(exe, id);
    CHECK(is_error(answer(self, handle, 42), "unexpected_message"));
    CHECK(is_error(answer(self, handle, std::string{"hello"}),
                   "unexpected_message"));
    CHECK(
      is_error(answer(self, handle, describe_atom_v, 1), "unexpected_message"));
    self->send(handle, std::string{"hello"});
    caf::anon_send_exit(handle, caf::exit_reason::normal);
  }
  CHECK(std::isfinite(exe.run(net.batch(0, 4)).loss));
}

TEST_CASE("an exit message terminates a handle and ends training") {
  application app;
  for (bool op : {true, false}) {
    CAPTURE(op);
    auto net = make_mlp();
    executor exe{net.main, options_for(net, app)};
    exe.run(net.batch(0, 4));
    const auto finished = exe.submit(net.batch(0, 4));
    while (exe.stats().steps < 2)
      std::this_thread::yield();
    caf::scoped_actor self{*app.system};
    const auto handle =
      handle_address(exe, op ? 0 : exe.graph().vars.front().id);
    self->monitor(handle);
    caf::anon_send_exit(handle, caf::exit_reason::kill);
    CHECK(down_reason(self) == caf::exit_reason::kill);
    CHECK(std::isfinite(exe.wait(finished).loss)); // had ended before the exit
    for (int i = 0; i < 2; ++i) {
      const auto e = caught([&] { exe.run(net.batch(0, 4)); });
      CHECK(e.code() == errc::peer_failure);
    }
    CHECK(
      is_error(answer(self, handle, describe_atom_v), "request_receiver_down"));
    self->monitor(handle); // too late, but answered
    down_reason(self);
  }
}

TEST_CASE("steps in flight fail with the name of a handle that exits") {
  application app;
  for (auto form : {edge_form::counter, edge_form::message}) {
    auto net = make_mlp();
    auto options = options_for(net, app);
    options.kernels = gate::kernels();
    options.hooks.form = form;
    gate::open() = false;
    gate::inside() = 0;
    executor exe{net.main, options};
    const auto first = exe.submit(net.batch(0, 4));
    const auto second = exe.submit(net.batch(1, 4));
    while (gate::inside() == 0)
      std::this_thread::yield();
    caf::scoped_actor self{*app.system};
    const auto handle = handle_address(exe, 3);
    self->monitor(handle);
    self->send_exit(handle, caf::exit_reason::user_shutdown);
    CHECK(down_reason(self) == caf::exit_reason::user_shutdown);
    gate::open() = true;
    for (auto id : {first, second}) {
      const auto e = caught([&] { exe.wait(id); });
      CHECK(e.code() == errc::peer_failure);
      CHECK(e.where().op == graph::handle_name(exe.graph(), 3));
    }
  }
}

TEST_CASE("describe reports which handles of a running step are waiting") {
  application app;
  auto net = make_mlp();
  auto options = options_for(net, app);
  options.kernels = gate::kernels();
  gate::open() = false;
  gate::inside() = 0;
  executor exe{net.main, options};
  const auto id = exe.submit(net.batch(0, 4));
  while (gate::inside() == 0)
    std::this_thread::yield();
  caf::scoped_actor self{*app.system};
  int waiting = 0;
  for (auto& o : exe.graph().ops) {
    const auto line = answer(self, handle_address(exe, o.id), describe_atom_v);
    const auto waits = line.find("step 0: waits for ") != line.npos;
    waiting += waits;
    if (o.desc->type == "sgd" || o.desc->type == "momentum")
      CHECK(waits);
  }
  CHECK(waiting > 0);
  CHECK(waiting < static_cast<int>(exe.graph().ops.size()));
  gate::open() = true;
  exe.wait(id);
}

TEST_CASE("links to handles work in both directions") {
  application app;
  auto net = make_mlp();
  for (bool handle_first : {false, true}) {
    executor exe{net.main, options_for(net, app)};
    const auto handle = handle_address(exe, 1);
    auto partner =
      app.system->spawn([handle](caf::event_based_actor* me) -> caf::behavior {
        me->link_to(handle);
        return {[](int) { return std::string{"linked"}; }};
      });
    caf::scoped_actor self{*app.system};
    REQUIRE(answer(self, partner, 1) == "linked");
    self->monitor(handle_first ? partner : handle);
    caf::anon_send_exit(handle_first ? handle : partner,
                        caf::exit_reason::kill);
    CHECK(down_reason(self) == caf::exit_reason::kill);
    CHECK(caught([&] { exe.run(net.batch(0, 4)); }).code()
          == errc::peer_failure);
  }
}

TEST_CASE("a handle is found by its name, and an unknown name is an error") {
  application app;
  auto net = make_mlp();
  executor exe{net.main, options_for(net, app)};
  for (handle_id id = 0; id < exe.graph().size(); ++id)
    CHECK(handle_address(exe, graph::handle_name(exe.graph(), id))
          == handle_address(exe, id));
  const auto why = caught([&] { handle_address(exe, "nothing#0@cpu:7"); });
  CHECK(why.code() == errc::not_found);
  CHECK(says(why, "the graph has no handle 'nothing#0@cpu:7'"));
}

TEST_CASE("handles can be registered and looked up in CAF's registry") {
  application app;
  auto net = make_mlp();
  executor exe{net.main, options_for(net, app)};
  constexpr std::string_view name = "firstop";
  actors::put_named(
    *app.system, name,
    caf::actor_cast<caf::strong_actor_ptr>(handle_address(exe, 0)));
  caf::scoped_actor self{*app.system};
  const auto found =
    caf::actor_cast<caf::actor>(actors::find_named(*app.system, name));
  CHECK(answer(self, found, describe_atom_v)
          .rfind(graph::handle_name(exe.graph(), 0), 0)
        == 0);
  actors::forget_named(*app.system, name);
}

TEST_CASE("addresses stay valid after the executor and report its end") {
  application app;
  for (auto form : {edge_form::counter, edge_form::message}) {
    auto net = make_mlp();
    auto options = options_for(net, app);
    options.hooks.form = form;
    caf::scoped_actor self{*app.system};
    std::vector<caf::actor> kept;
    {
      executor exe{net.main, options};
      exe.run(net.batch(0, 4));
      for (handle_id id = 0; id < exe.graph().size(); ++id)
        kept.push_back(handle_address(exe, id));
      self->monitor(kept.front());
    }
    CHECK(down_reason(self) == caf::exit_reason::user_shutdown);
    self->monitor(kept.back()); // too late, but answered
    CHECK(down_reason(self) == caf::exit_reason::user_shutdown);
    auto late = app.system->spawn([](caf::event_based_actor* me) {
      return caf::behavior{[me](const caf::actor& to) { me->link_to(to); }};
    });
    self->monitor(late);
    self->send(late, kept[1]);
    CHECK(down_reason(self) == caf::exit_reason::user_shutdown);
    for (auto& handle : kept) {
      CHECK(is_error(answer(self, handle, describe_atom_v),
                     "request_receiver_down"));
      self->send(handle, ready_atom_v, std::uint32_t{1}, std::uint64_t{0});
      caf::anon_send_exit(handle, caf::exit_reason::kill);
    }
  }
}

TEST_CASE("requests during the executor's destruction get a valid answer") {
  application app;
  auto net = make_mlp();
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> askers;
    std::atomic<int> lines{0}, downs{0}, others{0};
    {
      executor exe{net.main, options_for(net, app)};
      for (handle_id id : {handle_id{0}, handle_id{5}})
        askers.emplace_back([&, handle = handle_address(exe, id)] {
          caf::scoped_actor self{*app.system};
          for (;;) {
            const auto line = answer(self, handle, describe_atom_v);
            if (is_error(line, "request_receiver_down")) {
              ++downs;
              return;
            }
            ++(is_error(line, "") ? others : lines);
          }
        });
      for (std::uint64_t s = 0; s < 3; ++s)
        exe.submit(net.batch(s, 4));
    }
    for (auto& t : askers)
      t.join();
    CHECK(downs == 2);
    CHECK(others == 0);
  }
}

} // TEST_SUITE("actors.caf")
