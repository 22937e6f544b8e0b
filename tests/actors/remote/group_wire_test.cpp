// SPDX-License-Identifier: Apache-2.0

// What a process accepts from the ranks of others: only what its channels
// expect.

#include <troupe/actors/remote/group_wire.hpp>
#include <troupe/actors/steps/executor_graph.hpp>
#include <troupe/base/event_reader.hpp>
#include <troupe/base/failure_codec.hpp>
#include <troupe/base/job_queue.hpp>
#include <troupe/comm/shm/join.hpp>

#include <actors/small_nets.hpp>

#include <doctest/doctest.h>

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using namespace troupe::actors;

TEST_SUITE("actors.remote.group_wire") {

namespace {

/// A graph with channels in both directions: some ops of device 1 run on 0.
graph::ssa_graph split_graph() {
  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.hooks.places = {0, 1};
  options.places = {{"softmax*@cpu:1", 0, "a"}};
  const auto main = std::make_shared<const graph::program>(make_mlp().main);
  return build_graph(main, options, loss_of(*main, ""));
}

using ends_of_group = std::vector<std::unique_ptr<comm::communicator>>;

/// Two processes of a rank each, which are both here.
std::pair<ends_of_group, ends_of_group> join_two() {
  const auto path = std::filesystem::temp_directory_path()
                    / ("troupe-wire-" + std::to_string(::getpid()));
  std::filesystem::remove(path);
  std::pair<ends_of_group, ends_of_group> ends;
  std::jthread other{[&] {
    ends.second = comm::join_shm_group(
      {.path = path.string(), .process = 1, .processes = 2});
  }};
  ends.first =
    comm::join_shm_group({.path = path.string(), .process = 0, .processes = 2});
  return ends;
}

struct arrival final : transport::receiver {
  std::mutex mutex;
  std::condition_variable news;
  std::optional<incoming_item> item;
  void received(incoming_item came) noexcept override {
    std::lock_guard guard{mutex};
    item = std::move(came);
    news.notify_all();
  }
  incoming_item wait() {
    std::unique_lock lock{mutex};
    news.wait(lock, [this] { return item.has_value(); });
    return *std::move(item);
  }
};

struct no_completion final : completion {
  void completed(std::exception_ptr) noexcept override {}
};

/// The wire of device 0, and the bare end of rank 1.
struct rig {
  graph::ssa_graph g = split_graph();
  arena memory{make_host_memory_source()};
  transport ends{g.transfers.size(), 2};
  job_queue queue{1};
  recorder trace{queue};
  level_request level{trace, trace_level::ops};
  event_reader events{trace};
  collective_ranks ranks{2, 1, 0, 1};
  ends_of_group other;
  std::mutex mutex;
  std::condition_variable news;
  std::vector<std::string> lost;
  std::optional<group_wire> wire;
  std::uint32_t in = 0, out = 0; // channels to and from device 0

  rig() {
    auto [own, others] = join_two();
    other = std::move(others);
    ranks.join(std::move(own));
    for (std::uint32_t c = 0; c < g.transfers.size(); ++c) {
      ends.receive_into(c, memory);
      (g.op(g.transfers[c].recv).device == 0 ? in : out) = c;
    }
    wire.emplace(g, ends, ranks, std::vector<std::size_t>{0}, trace,
                 [this](std::size_t device, const std::string& why) {
                   std::lock_guard guard{mutex};
                   lost.push_back(std::to_string(device) + ": " + why);
                   news.notify_all();
                 });
    ends.connect(*wire);
    wire->open();
  }

  void post(std::uint64_t kind, std::uint32_t channel, step_id step,
            const std::string& content = "") {
    comm::parcel p{{kind << 32 | channel, step}, {}, content.size()};
    if (!content.empty()) {
      p.content = memory.allocate(content.size());
      std::memcpy(p.content.data(), content.data(), content.size());
    }
    other[0]->send_parcel(0, std::move(p));
  }
  void wait_for_loss() {
    std::unique_lock lock{mutex};
    news.wait(lock, [this] { return !lost.empty(); });
    CHECK(lost.front() == "1: it has sent a value that is not due");
  }
  std::string value() {
    variable v;
    v.set(tensor::make(memory, shape{2}, dtype::int64));
    return std::string{encode_value(v, memory).text()};
  }
};

constexpr std::uint64_t value_kind = 0, failure_kind = 1, taken_kind = 2;

} // namespace

TEST_CASE_FIXTURE(rig, "values and failures of the other end arrive") {
  REQUIRE(in != out);
  arrival here;
  CHECK_FALSE(ends.receive(in, 0, here));
  post(value_kind, in, 0, value());
  CHECK(here.wait().value.as_tensor().dims() == shape{2});
  here.item.reset();
  CHECK_FALSE(ends.receive(in, 1, here));
  post(failure_kind, in, 1,
       encode_failure({errc::out_of_range, "a label is 99"}));
  CHECK(here.wait().failure->code() == errc::out_of_range);
  CHECK(lost.empty());
}

TEST_CASE_FIXTURE(rig, "each item that arrives is recorded, with its bytes") {
  arrival here;
  for (step_id step : {0, 1}) {
    CHECK_FALSE(ends.receive(in, step, here));
    post(step == 0 ? value_kind : failure_kind, in, step,
         step == 0 ? value() : encode_failure({errc::out_of_range, "99"}));
    here.wait();
    here.item.reset();
  }
  const auto seen = events.take();
  REQUIRE(seen.size() == 2);
  for (std::uint32_t step : {0u, 1u}) {
    const auto& e = seen[step];
    CHECK(e.kind == event_kind::parcel_arrived);
    CHECK(e.from == g.transfers[in].send);
    CHECK(e.to == g.transfers[in].recv);
    CHECK(e.step == step);
    CHECK(e.amount
          == (step == 0 ? value() : encode_failure({errc::out_of_range, "99"}))
               .size());
  }
}

TEST_CASE_FIXTURE(rig, "each item that is sent is recorded, and no answer") {
  no_completion nobody;
  variable v;
  v.set(tensor::make(memory, shape{2}, dtype::int64));
  ends.send(out, 0, ends.encoded(v), nobody);
  ends.send(out, 1, {{}, error{errc::kernel_failure, "broken"}}, nobody);
  arrival here;
  post(value_kind, in, 0, value());
  if (!ends.receive(in, 0, here)) // which is answered
    here.wait();
  auto seen = events.take();
  std::erase_if(seen, [](const trace_event& e) {
    return e.kind == event_kind::parcel_arrived;
  });
  REQUIRE(seen.size() == 2);
  for (std::uint32_t step : {0u, 1u}) {
    CHECK(seen[step].kind == event_kind::parcel_sent);
    CHECK(seen[step].from == g.transfers[out].send);
    CHECK(seen[step].to == g.transfers[out].recv);
    CHECK(seen[step].step == step);
  }
  CHECK(seen[0].amount == value().size());
  CHECK(seen[1].amount
        == encode_failure({errc::kernel_failure, "broken"}).size());
}

TEST_CASE_FIXTURE(rig, "below level ops no item is recorded") {
  level.change(trace_level::steps);
  no_completion nobody;
  variable v;
  v.set(tensor::make(memory, shape{2}, dtype::int64));
  ends.send(out, 0, ends.encoded(v), nobody);
  arrival here;
  CHECK_FALSE(ends.receive(in, 0, here));
  post(value_kind, in, 0, value());
  here.wait();
  CHECK(events.take().empty());
}

TEST_CASE_FIXTURE(rig, "an item that is refused is not recorded") {
  post(value_kind, out, 0, value());
  wait_for_loss();
  CHECK(events.take().empty());
}

TEST_CASE_FIXTURE(rig, "an acknowledgement lets the next value go") {
  no_completion nobody;
  variable v;
  v.set(tensor::make(memory, shape{2}, dtype::int64));
  for (step_id step : {0, 1})
    CHECK(ends.send(out, step, ends.encoded(v), nobody) == launch_status::done);
  struct told final : completion {
    std::mutex mutex;
    std::condition_variable news;
    bool is_over = false;
    void completed(std::exception_ptr) noexcept override {
      std::lock_guard guard{mutex};
      is_over = true;
      news.notify_all();
    }
  } third;
  CHECK(ends.send(out, 2, ends.encoded(v), third) == launch_status::pending);
  post(taken_kind, out, 0);
  std::unique_lock lock{third.mutex};
  third.news.wait(lock, [&] { return third.is_over; });
  CHECK(lost.empty());
}

TEST_CASE_FIXTURE(rig, "a value of a channel that does not exist is refused") {
  post(value_kind, 9999, 0, value());
  wait_for_loss();
}

TEST_CASE_FIXTURE(rig, "a value from the receiving end is refused") {
  post(value_kind, out, 0, value());
  wait_for_loss();
}

TEST_CASE_FIXTURE(rig, "a value of a later step is refused") {
  post(value_kind, in, 1, value());
  wait_for_loss();
}

TEST_CASE_FIXTURE(rig, "a malformed value is refused") {
  post(value_kind, in, 0, value().substr(0, 20));
  wait_for_loss();
}

TEST_CASE_FIXTURE(rig, "an acknowledgement of what was not sent is refused") {
  post(taken_kind, out, 0);
  wait_for_loss();
}

TEST_CASE_FIXTURE(rig, "an acknowledgement from the sending end is refused") {
  post(taken_kind, in, 0);
  wait_for_loss();
}

TEST_CASE_FIXTURE(rig, "an item of an unknown kind is refused") {
  post(77, in, 0, value());
  wait_for_loss();
}

} // TEST_SUITE("actors.remote.group_wire")
