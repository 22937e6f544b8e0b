// SPDX-License-Identifier: Apache-2.0

// What only groups over Gloo have: processes that meet through a store, and
// that can be lost.
#include "../group_rig.hpp"
#include "../values.hpp"
#include "gloo_group.hpp"
#include "seen_beats.hpp"

#include <troupe/comm/engine/join.hpp>

#include <support/caught.hpp>
#include <support/child_process.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace comm_test;
using namespace troupe::comm;
using namespace std::chrono_literals;
using troupe::test::caught;
using troupe::test::exit_code;
using troupe::test::in_child;
using troupe::test::pipe_pair;
using troupe::test::says;
using troupe::test::skip_case;

TEST_SUITE("comm.engine.gloo") {

namespace {

gloo_group_options options_of(std::shared_ptr<key_store> store,
                              std::size_t process, std::size_t processes) {
  gloo_group_options options;
  options.store = std::move(store);
  options.process = process;
  options.processes = processes;
  options.timeout = 10s;
  return options;
}

gloo_group_options options_of(const meeting_folder& at, std::size_t process,
                              std::size_t processes) {
  return options_of(make_folder_store(at.path()), process, processes);
}

std::unique_ptr<communicator> join(const meeting_folder& at,
                                   std::size_t process, std::size_t processes) {
  return std::move(join_gloo_group(options_of(at, process, processes)).front());
}

void all_reduce_filled(communicator& at, std::int64_t elements, float value) {
  variable x;
  x.set(tensor::make(host(), {elements}, dtype::float32));
  for (auto& v : x.as_tensor().values<float>())
    v = value;
  const rank_value given{"x", &x, &x};
  outcome end;
  if (at.start({collective_kind::all_reduce, 0, {&given, 1}}, end).state
      == launch_status::pending)
    end.wait();
  if (const auto why = end.failure())
    throw error{*why};
  if (get(x.as_tensor(), std::size_t(elements) - 1)
      != double(at.size()) * value)
    throw std::runtime_error("a wrong sum");
}

using clock = std::chrono::steady_clock;

/// One store for all processes, which are in this one.
class memory_store final : public key_store {
public:
  void publish(const std::string& key, std::span<const char> value) override {
    std::lock_guard guard{mutex_};
    values_[key].assign(value.begin(), value.end());
  }
  std::optional<std::vector<char>> find(const std::string& key) override {
    std::lock_guard guard{mutex_};
    if (failure)
      throw error{*failure};
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : std::optional{found->second};
  }
  void clear() noexcept override {
    std::lock_guard guard{mutex_};
    ++clears_;
    values_.clear();
  }
  int clears() {
    std::lock_guard guard{mutex_};
    return clears_;
  }

  std::optional<error> failure; ///< of `find`

private:
  std::mutex mutex_;
  std::map<std::string, std::vector<char>> values_;
  int clears_ = 0;
};

/// Beats of the only other process.
std::uint64_t beats_of_other(const communicator& at) {
  return at.peers().at(0).beats;
}

/// Waits until they have not changed for a while, but not for ever.
std::uint64_t beats_at_the_end(const communicator& at) {
  constexpr auto silence = 300ms;
  const auto deadline = clock::now() + 10s;
  auto beats = beats_of_other(at);
  for (auto since = clock::now();
       clock::now() - since < silence && clock::now() < deadline;) {
    std::this_thread::sleep_for(10ms);
    if (const auto now = beats_of_other(at); now != beats) {
      beats = now;
      since = clock::now();
    }
  }
  return beats;
}

/// Stops a child of this process, and waits until it has.
void stop_child(pid_t child) {
  ::kill(child, SIGSTOP);
  ::waitpid(child, nullptr, WUNTRACED);
}

} // namespace

TEST_CASE("processes meet through any store") {
  if (!gloo_support().is_built)
    return skip_case("needs Gloo");
  const auto store = std::make_shared<memory_store>();
  const auto ends = join_on_threads(3, 3, [&](std::size_t p) {
    return join_gloo_group(options_of(store, p, 3));
  });
  CHECK(store->clears() == 3); // each process has removed its keys
  CHECK(store.use_count() == 1);
  std::vector<std::jthread> threads;
  for (auto& end : ends)
    threads.emplace_back(
      [&] { CHECK_NOTHROW(all_reduce_filled(*end, 100'000, 2)); });
}

TEST_CASE("a store can end the wait, and is cleared when processes are "
          "missing") {
  if (!gloo_support().is_built)
    return skip_case("needs Gloo");
  const auto store = std::make_shared<memory_store>();
  auto options = options_of(store, 1, 3);
  options.timeout = 50ms;
  CHECK(
    says(caught([&] { join_gloo_group(options); }), "did not join in time: 0"));
  CHECK(store->clears() == 1);
  options.timeout = 10s;
  store->failure.emplace(errc::cancelled, "the run has ended");
  const auto e = caught([&] { join_gloo_group(options); });
  CHECK(e.code() == errc::cancelled);
  CHECK(e.message() == "the run has ended");
  CHECK(store->clears() == 2);
}

TEST_CASE("beats of a process that is stopped or killed stop, and only a "
          "killed one is lost") {
  if (!gloo_support().is_built)
    return skip_case("needs Gloo");
  const meeting_folder at;
  const auto child = in_child([&] {
    const auto end = join(at, 1, 2);
    for (std::uint64_t step = 0;; ++step) {
      end->beat(step, "a step");
      std::this_thread::sleep_for(2ms);
    }
  });
  const auto end = join(at, 0, 2);
  CHECK(sees_beats(*end, 3));
  stop_child(child);
  const auto before = beats_at_the_end(*end);
  variable x;
  x.set(random_tensor({100}, dtype::float32, 1));
  const rank_value given{"x", &x, &x};
  outcome told;
  end->start({collective_kind::all_reduce, 0, {&given, 1}}, told);
  CHECK(beats_at_the_end(*end) == before);
  CHECK(told.times() == 0); // its connections stay
  ::kill(child, SIGCONT);
  CHECK(sees_beats(*end, before + 3));
  ::kill(child, SIGKILL);
  CHECK(exit_code(child) == -1);
  told.wait();
  CHECK(says(*told.failure(), "process 1 is lost"));
  const auto last = beats_at_the_end(*end);
  const auto state = end->peers().at(0); // it is still there
  CHECK(state.beats == last);
  CHECK(state.steps + 1 == last);
  CHECK(state.doing == "a step");
}

TEST_CASE("real processes merge, and name the one that leaves") {
  if (!gloo_support().is_built)
    return skip_case("needs Gloo");
  const meeting_folder at;
  const auto child = in_child([&] {
    const auto end = join(at, 1, 2);
    for (int step = 1; step <= 50; ++step)
      all_reduce_filled(*end, step % 2 ? 100 : 100'000, float(step));
  });
  const auto end = join(at, 0, 2);
  for (int step = 1; step <= 50; ++step)
    all_reduce_filled(*end, step % 2 ? 100 : 100'000, float(step));
  CHECK(exit_code(child) == 0);
  CHECK(at.is_empty());
  const auto e = caught([&] { all_reduce_filled(*end, 100, 1); });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "rank 1 has left the group: its communicator is gone"));
}

TEST_CASE("a process that is killed ends the calls of the others, which name "
          "it") {
  if (!gloo_support().is_built)
    return skip_case("needs Gloo");
  for (int round = 0; round < 12; ++round) {
    CAPTURE(round);
    const meeting_folder at;
    const std::int64_t elements = round % 3 == 0 ? 100 : 3'000'000;
    const auto reduce_until_loss = [&](communicator& on) {
      const auto e = caught([&] {
        for (;;)
          all_reduce_filled(on, elements, 1);
      });
      if (e.code() != errc::peer_failure || !says(e, "process 2 is lost"))
        throw std::runtime_error(e.what());
    };
    const auto survivor = in_child([&] { reduce_until_loss(*join(at, 1, 3)); });
    const pipe_pair started;
    const auto victim = in_child([&] {
      const auto end = join(at, 2, 3);
      started.put('s');
      for (int call = 0; round % 4 != 3 || call < 2; ++call)
        all_reduce_filled(*end, elements, 1);
      for (;;) // the others wait for this process
        ::pause();
    });
    const auto end = join(at, 0, 3);
    clock::time_point killed;
    std::jthread killer{[&] {
      started.get<char>();
      std::this_thread::sleep_for(std::chrono::milliseconds(5 + 7 * round));
      killed = clock::now();
      ::kill(victim, SIGKILL);
    }};
    CHECK_NOTHROW(reduce_until_loss(*end));
    const auto ended = clock::now();
    killer.join();
    CHECK(ended - killed < 1s);
    CHECK(exit_code(victim) == -1);
    CHECK(exit_code(survivor) == 0);
  }
}

TEST_CASE("a group is destroyed soon while another process is stopped") {
  if (!gloo_support().is_built)
    return skip_case("needs Gloo");
  const meeting_folder at;
  const pipe_pair joined;
  const auto child = in_child([&] {
    const auto end = join(at, 1, 2);
    joined.put('j');
    for (;;)
      ::pause();
  });
  auto end = join(at, 0, 2);
  joined.get<char>();
  ::kill(child, SIGSTOP);
  variable x;
  x.set(random_tensor({100'000}, dtype::float32, 1));
  const rank_value given{"x", &x, &x};
  outcome told;
  end->start({collective_kind::all_reduce, 0, {&given, 1}}, told);
  const auto start = clock::now();
  end.reset();
  CHECK(clock::now() - start < 3s);
  CHECK(told.times() == 1);
  CHECK(says(*told.failure(), "its communicator is gone"));
  ::kill(child, SIGKILL);
  CHECK(exit_code(child) == -1);
}

TEST_CASE("processes that do not come are named after the timeout") {
  if (!gloo_support().is_built)
    return skip_case("needs Gloo");
  const meeting_folder at;
  auto options = options_of(at, 0, 2);
  options.timeout = 50ms;
  const auto e = caught([&] { join_gloo_group(options); });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "did not join in time: 1"));
  CHECK(at.is_empty());
}

TEST_CASE("what a check throws ends the wait") {
  if (!gloo_support().is_built)
    return skip_case("needs Gloo");
  const meeting_folder at;
  auto options = options_of(at, 0, 2);
  options.check = [] { throw error(errc::cancelled, "stopped"); };
  CHECK(caught([&] { join_gloo_group(options); }).code() == errc::cancelled);
}

TEST_CASE("options that make no sense are refused") {
  if (!gloo_support().is_built)
    return skip_case("needs Gloo");
  const meeting_folder at;
  CHECK(caught([&] { join_gloo_group(options_of(at, 2, 2)); }).code()
        == errc::invalid_argument);
  CHECK(caught([&] { join_gloo_group(options_of(at, 0, 0)); }).code()
        == errc::invalid_argument);
  auto elsewhere = options_of(at, 0, 2);
  elsewhere.store = make_folder_store(at.path() + "/none");
  CHECK(caught([&] { join_gloo_group(elsewhere); }).code() == errc::io_failure);
  auto nowhere = options_of(at, 0, 2);
  nowhere.store = nullptr;
  CHECK(says(caught([&] { join_gloo_group(nowhere); }), "no store in which"));
  auto unknown = options_of(at, 0, 2);
  unknown.address = "192.0.2.1"; // of no host
  CHECK(caught([&] { join_gloo_group(unknown); }).code() == errc::io_failure);
  std::ofstream{at.path() + "/gloo-rank_0"} << "old";
  CHECK(says(caught([&] { join_gloo_group(options_of(at, 0, 2)); }),
             "is there already"));
}

} // TEST_SUITE("comm.engine.gloo")
