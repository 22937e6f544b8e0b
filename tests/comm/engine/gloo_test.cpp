// SPDX-License-Identifier: Apache-2.0

// What only groups over Gloo have: processes that meet through files, and that
// can be lost.
#include "../group_rig.hpp"
#include "../values.hpp"
#include "gloo_group.hpp"

#include <troupe/comm/engine/join.hpp>

#include <support/caught.hpp>
#include <support/child_process.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
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

gloo_group_options options_of(const meeting_folder& at, std::size_t process,
                              std::size_t processes) {
  gloo_group_options options;
  options.folder = at.path();
  options.process = process;
  options.processes = processes;
  options.timeout = 10s;
  return options;
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

} // namespace

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
  elsewhere.folder += "/none";
  CHECK(caught([&] { join_gloo_group(elsewhere); }).code() == errc::io_failure);
  auto unknown = options_of(at, 0, 2);
  unknown.interface = "none0";
  CHECK(caught([&] { join_gloo_group(unknown); }).code() == errc::io_failure);
  std::ofstream{at.path() + "/gloo-rank_0"} << "old";
  CHECK(says(caught([&] { join_gloo_group(options_of(at, 0, 2)); }),
             "is there already"));
}

} // TEST_SUITE("comm.engine.gloo")
