// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/engine/engine.hpp>
#include <troupe/comm/engine/engine_group.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace comm_test {

using namespace troupe;

/// Connects processes that are in this one. Messages of different processes
/// come in random order and after random times, which the seed chooses.
class memory_hub {
public:
  memory_hub(std::size_t processes, unsigned seed)
    : seed_(seed), inboxes_(processes) {}

  /// Bytes that transfers have carried from one process to the other.
  std::size_t bytes_sent(std::size_t from, std::size_t to) {
    std::lock_guard guard{mutex_};
    return bytes_[{from, to}];
  }
  /// Bytes of the messages that one process has posted to the other.
  std::size_t bytes_posted(std::size_t from, std::size_t to) {
    std::lock_guard guard{mutex_};
    return posted_[{from, to}];
  }

private:
  friend class memory_engine;

  struct started final : comm::transfer {
    std::span<const std::byte> from;
    std::span<std::byte> to;
    std::size_t peer = 0;
    bool is_over = false;
  };
  struct inbox {
    std::map<std::size_t, std::deque<std::vector<std::byte>>> messages;
    std::vector<std::size_t> lost;
    bool is_closed = false, is_stopped = false;
  };
  using meeting_point = std::tuple<std::size_t, std::size_t, std::uint32_t>;

  unsigned seed_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<inbox> inboxes_;
  std::map<meeting_point, std::deque<started*>> sends_, receives_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> bytes_, posted_;
};

class memory_engine final : public comm::engine {
public:
  memory_engine(std::shared_ptr<memory_hub> hub, std::size_t process)
    : engine(process, hub->inboxes_.size()), hub_(std::move(hub)) {}

  void open(comm::engine_events& to) override {
    thread_ = std::thread{[this, &to] { serve(to); }};
  }

  void post(std::size_t to, std::span<const std::byte> message) override {
    std::lock_guard guard{hub_->mutex_};
    hub_->posted_[{process(), to}] += message.size();
    if (!hub_->inboxes_[to].is_closed)
      hub_->inboxes_[to].messages[process()].emplace_back(message.begin(),
                                                          message.end());
    hub_->news_.notify_all();
  }

  std::unique_ptr<comm::transfer>
  send(std::size_t to, std::uint32_t tag,
       std::span<const std::byte> bytes) override {
    auto made = std::make_unique<memory_hub::started>();
    made->from = bytes;
    made->peer = to;
    std::lock_guard guard{hub_->mutex_};
    hub_->sends_[{process(), to, tag}].push_back(made.get());
    hub_->bytes_[{process(), to}] += bytes.size();
    match({process(), to, tag});
    return made;
  }

  std::unique_ptr<comm::transfer> receive(std::size_t from, std::uint32_t tag,
                                          std::span<std::byte> bytes) override {
    auto made = std::make_unique<memory_hub::started>();
    made->to = bytes;
    made->peer = from;
    std::lock_guard guard{hub_->mutex_};
    hub_->receives_[{from, process(), tag}].push_back(made.get());
    match({from, process(), tag});
    return made;
  }

  void wait(comm::transfer& started) override {
    auto& t = static_cast<memory_hub::started&>(started);
    std::unique_lock lock{hub_->mutex_};
    const auto is_off = [&] {
      return hub_->inboxes_[process()].is_stopped
             || hub_->inboxes_[t.peer].is_closed;
    };
    hub_->news_.wait(lock, [&] { return t.is_over || is_off(); });
    if (!t.is_over)
      throw error(errc::peer_failure, "a transfer did not end");
  }

  void stop() noexcept override {
    std::lock_guard guard{hub_->mutex_};
    hub_->inboxes_[process()].is_stopped = true;
    hub_->news_.notify_all();
  }

  void close() noexcept override {
    {
      std::lock_guard guard{hub_->mutex_};
      hub_->inboxes_[process()].is_closed = true;
      for (auto* all : {&hub_->sends_, &hub_->receives_})
        std::erase_if(*all, [this](auto& entry) {
          return std::get<0>(entry.first) == process()
                 || std::get<1>(entry.first) == process();
        });
      for (auto& other : hub_->inboxes_)
        other.lost.push_back(process());
      hub_->news_.notify_all();
    }
    if (thread_.joinable())
      thread_.join();
  }

private:
  void match(const memory_hub::meeting_point& at) {
    auto& sends = hub_->sends_[at];
    auto& receives = hub_->receives_[at];
    while (!sends.empty() && !receives.empty()) {
      auto& from = *sends.front();
      auto& to = *receives.front();
      if (from.from.size() != to.to.size())
        std::terminate(); // a bug of the group
      std::ranges::copy(from.from, to.to.begin());
      from.is_over = to.is_over = true;
      sends.pop_front();
      receives.pop_front();
    }
    hub_->news_.notify_all();
  }

  void serve(comm::engine_events& to) {
    std::minstd_rand random{hub_->seed_ * 64 + unsigned(process()) + 1};
    auto& own = hub_->inboxes_[process()];
    std::unique_lock lock{hub_->mutex_};
    for (;;) {
      hub_->news_.wait(lock, [&] {
        return own.is_closed || !own.messages.empty() || !own.lost.empty();
      });
      if (own.is_closed)
        return;
      if (own.messages.empty()) {
        const auto gone = own.lost.back();
        own.lost.pop_back();
        lock.unlock();
        to.lost(gone, {errc::peer_failure, "its connection is closed"});
        lock.lock();
        continue;
      }
      auto next = own.messages.begin();
      std::advance(next, random() % own.messages.size());
      const auto from = next->first;
      const auto message = std::move(next->second.front());
      next->second.pop_front();
      if (next->second.empty())
        own.messages.erase(next);
      lock.unlock();
      if (random() % 4 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
      to.arrived(from, message);
      lock.lock();
    }
  }

  std::shared_ptr<memory_hub> hub_;
  std::thread thread_;
};

/// Calls `join(process)` for all processes at the same time and returns all
/// ends by rank. Throws what one of them throws.
template <class Join>
std::vector<std::unique_ptr<comm::communicator>>
join_on_threads(std::size_t processes, std::size_t ranks, Join join) {
  std::vector<std::unique_ptr<comm::communicator>> ends(ranks);
  std::vector<std::exception_ptr> failures(processes);
  std::vector<std::jthread> threads;
  for (std::size_t p = 0; p < processes; ++p)
    threads.emplace_back([&, p] {
      try {
        for (auto& end : join(p)) {
          const auto rank = end->rank();
          ends[rank] = std::move(end);
        }
      } catch (...) {
        failures[p] = std::current_exception();
      }
    });
  threads.clear(); // joins them
  for (auto& failure : failures)
    if (failure)
      std::rethrow_exception(failure);
  return ends;
}

/// The ends of a group over memory. Rank r is in process r modulo `processes`.
inline std::vector<std::unique_ptr<comm::communicator>>
join_over_memory(std::size_t processes, std::size_t ranks, unsigned seed = 1,
                 comm::engine_group_options options = {}) {
  const auto hub = std::make_shared<memory_hub>(processes, seed);
  return join_on_threads(processes, ranks, [&](std::size_t p) {
    auto own = options;
    for (auto r = p; r < ranks; r += processes)
      own.ranks.push_back(r);
    return comm::join_engine_group(std::make_unique<memory_engine>(hub, p),
                                   own);
  });
}

} // namespace comm_test
