// SPDX-License-Identifier: Apache-2.0

// Parcels in all kinds of groups over several processes.
#include "group_rig.hpp"
#include "values.hpp"

#include <troupe/comm/communicator.hpp>
#include <troupe/comm/parcel.hpp>
#include <troupe/kernels/device.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

using namespace comm_test;
using namespace troupe::comm;
using troupe::test::caught;

TEST_SUITE("comm.parcel") {

namespace {

using troupe::arena;
using troupe::make_host_memory_source;

/// The texts that come, by the rank that sent them, and their numbers.
class inbox final : public parcel_receiver {
public:
  struct text {
    parcel_label label;
    std::string content;
    friend bool operator==(const text&, const text&) = default;
  };

  void arrived(std::size_t from, const parcel_label& label,
               std::span<const std::byte> content) noexcept override {
    std::lock_guard guard{mutex_};
    if (from >= came_.size())
      came_.resize(from + 1);
    came_[from].push_back(
      {label, {reinterpret_cast<const char*>(content.data()), content.size()}});
    news_.notify_all();
  }
  void malformed(std::size_t, const error&) noexcept override {
    std::lock_guard guard{mutex_};
    ++malformed_;
  }

  /// Waits until so many have come from a rank.
  std::vector<text> wait_for(std::size_t from, std::size_t count) {
    std::unique_lock lock{mutex_};
    news_.wait(
      lock, [&] { return from < came_.size() && came_[from].size() >= count; });
    return came_[from];
  }
  std::size_t count() {
    std::lock_guard guard{mutex_};
    std::size_t all = malformed_;
    for (auto& of : came_)
      all += of.size();
    return all;
  }

private:
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<std::vector<text>> came_; // by rank
  std::size_t malformed_ = 0;
};

parcel parcel_of(arena& memory, parcel_label label, const std::string& text) {
  parcel p{label, {}, text.size()};
  if (!text.empty()) {
    p.content = memory.allocate(text.size());
    std::memcpy(p.content.data(), text.data(), text.size());
  }
  return p;
}

/// A group with a process for each rank, and what their processes get.
template <class Kind>
struct parties {
  explicit parties(std::size_t count) : inboxes(count) {
    std::vector<std::unique_ptr<device>> devices;
    std::vector<device*> all;
    for (std::size_t d = 0; d < count; ++d) {
      devices.push_back(make_cpu_device(static_cast<int>(d)));
      all.push_back(devices.back().get());
    }
    ends = Kind::make(all);
  }
  ~parties() {
    for (auto& end : ends)
      end->close_parcels();
  }
  void open() {
    for (std::size_t r = 0; r < ends.size(); ++r)
      ends[r]->open_parcels(inboxes[r]);
  }
  void send(std::size_t from, std::size_t to, std::uint64_t number,
            const std::string& text) {
    auto* group = ends[from]->memory();
    ends[from]->send_parcel(
      to, parcel_of(group && number % 2 == 0 ? *group : memory,
                    {number, ~number}, text));
  }

  arena memory{make_host_memory_source()};
  std::vector<inbox> inboxes;
  ends_of_group ends;
};

/// Of any length, also 0 and more than an engine sends at once.
std::string text_of(std::size_t from, std::uint64_t number) {
  return std::string(number % 7 == 6 ? 200'000 : number * 31 % 500,
                     static_cast<char>('a' + (from + number) % 26));
}

} // namespace

TEST_CASE_TEMPLATE("parcels arrive whole and in order", Kind, shm_processes,
                   engine_processes, gloo_processes, one_host_processes,
                   host_processes, gloo_hosts) {
  constexpr std::size_t ranks = 3;
  constexpr std::uint64_t each = 100; // more than a ring has room for
  parties<Kind> all{ranks};
  all.open();
  {
    std::vector<std::jthread> threads;
    for (std::size_t from = 0; from < ranks; ++from)
      threads.emplace_back([&, from] {
        for (std::uint64_t n = 0; n < each; ++n)
          for (std::size_t to = 0; to < ranks; ++to)
            if (to != from)
              all.send(from, to, n, text_of(from, n));
      });
  }
  for (std::size_t to = 0; to < ranks; ++to)
    for (std::size_t from = 0; from < ranks; ++from) {
      if (to == from)
        continue;
      const auto came = all.inboxes[to].wait_for(from, each);
      REQUIRE(came.size() == each);
      for (std::uint64_t n = 0; n < each; ++n) {
        CHECK(came[n].label == parcel_label{n, ~n});
        REQUIRE(came[n].content == text_of(from, n));
      }
    }
}

TEST_CASE_TEMPLATE("parcels that come before their receiver are kept", Kind,
                   shm_processes, engine_processes, gloo_processes,
                   one_host_processes, host_processes, gloo_hosts) {
  parties<Kind> all{2};
  for (std::uint64_t n = 0; n < 40; ++n)
    all.send(0, 1, n, text_of(0, n));
  CHECK(all.inboxes[1].count() == 0);
  all.open();
  const auto came = all.inboxes[1].wait_for(0, 40);
  for (std::uint64_t n = 0; n < 40; ++n)
    CHECK(came[n].content == text_of(0, n));
}

TEST_CASE_TEMPLATE("parcels of a rank that leaves still arrive", Kind,
                   shm_processes, engine_processes, gloo_processes,
                   one_host_processes, host_processes, gloo_hosts) {
  constexpr std::uint64_t count = 300; // more than a ring has room for
  for (const bool is_late : {false, true}) {
    parties<Kind> all{2};
    if (!is_late)
      all.open();
    for (std::uint64_t n = 0; n < count; ++n)
      all.send(0, 1, n, text_of(0, n));
    all.ends[0]->close_parcels();
    all.ends.erase(all.ends.begin());
    if (is_late)
      all.ends[0]->open_parcels(all.inboxes[1]);
    const auto came = all.inboxes[1].wait_for(0, count);
    for (std::uint64_t n = 0; n < count; ++n)
      REQUIRE(came[n].content == text_of(0, n));
  }
}

TEST_CASE_TEMPLATE("a receiver that is closed is not called", Kind,
                   shm_processes, engine_processes, gloo_processes,
                   one_host_processes, host_processes, gloo_hosts) {
  parties<Kind> all{2};
  all.open();
  all.send(0, 1, 1, "heard");
  all.inboxes[1].wait_for(0, 1);
  all.ends[1]->close_parcels();
  for (std::uint64_t n = 0; n < 100; ++n)
    all.send(0, 1, n, "not heard");
  all.send(1, 0, 1, "after them");
  all.inboxes[0].wait_for(1, 1);
  CHECK(all.inboxes[1].count() == 1);
}

TEST_CASE_TEMPLATE("a receiver may answer within its call", Kind, shm_processes,
                   engine_processes, gloo_processes, one_host_processes,
                   host_processes, gloo_hosts) {
  struct echo final : parcel_receiver {
    communicator* end = nullptr;
    void arrived(std::size_t from, const parcel_label& label,
                 std::span<const std::byte>) noexcept override {
      end->send_parcel(from, {{label[0] + 1, 0}, {}, 0});
    }
    void malformed(std::size_t, const error&) noexcept override {}
  };
  parties<Kind> all{2};
  echo answers;
  answers.end = all.ends[1].get();
  all.ends[1]->open_parcels(answers);
  all.ends[0]->open_parcels(all.inboxes[0]);
  for (std::uint64_t n = 0; n < 200; ++n)
    all.send(0, 1, n, "");
  const auto came = all.inboxes[0].wait_for(1, 200);
  CHECK(came.back() == inbox::text{{200, 0}, ""});
  all.ends[1]->close_parcels();
}

TEST_CASE("parcels within a host do not use the engine, others do") {
  for (const bool adds : {true, false}) {
    CAPTURE(adds);
    const host_map hosts{0, 1, 0, 1};
    const auto hub = std::make_shared<memory_hub>(hosts.size(), 7);
    auto ends = join_on_hosts(hosts, hosts.size(), hub, adds);
    std::vector<inbox> inboxes(ends.size());
    for (std::size_t r = 0; r < ends.size(); ++r)
      ends[r]->open_parcels(inboxes[r]);
    arena memory{make_host_memory_source()};
    const std::string text(1000, 'x');
    for (std::size_t from = 0; from < ends.size(); ++from)
      for (std::size_t to = 0; to < ends.size(); ++to) {
        if (from == to)
          continue;
        const auto before = hub->bytes_posted(from, to);
        ends[from]->send_parcel(to, parcel_of(memory, {from, to}, text));
        const auto came = inboxes[to].wait_for(from, 1);
        CHECK(came[0].content == text);
        const auto posted = hub->bytes_posted(from, to) - before;
        if (hosts[from] == hosts[to])
          CHECK(posted == 0);
        else
          CHECK(posted >= text.size());
      }
    for (auto& end : ends)
      end->close_parcels();
  }
}

TEST_CASE("a group within one process has no parcels") {
  const auto device = make_cpu_device(0);
  const std::vector on{device.get(), device.get()};
  const auto ends = make_local_group(on);
  inbox none;
  CHECK(caught([&] { ends[0]->open_parcels(none); }).code()
        == errc::invalid_argument);
  CHECK(caught([&] { ends[0]->send_parcel(1, {}); }).code()
        == errc::invalid_argument);
}

} // TEST_SUITE("comm.parcel")
