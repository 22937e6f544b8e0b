// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/random.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::test {

/// Work that was recorded, with what it comes after.
struct captured_work {
  struct node {
    std::function<void()> run;
    std::vector<std::size_t> after; ///< numbers of earlier nodes
  };
  std::vector<node> nodes;
};

/// A recording of the pretend driver. Queues are known by their numbers. The
/// driver guards it.
class pretend_capture {
public:
  /// What the next work of a queue comes after, or what an event stands for.
  using frontier = std::set<std::size_t>;

  pretend_capture(std::uint64_t origin, int gpu)
    : origin_(origin), gpu_(gpu), thread_(std::this_thread::get_id()) {
    queues_[origin];
  }

  std::uint64_t origin() const noexcept { return origin_; }
  int gpu() const noexcept { return gpu_; }
  bool is_by_this_thread() const noexcept {
    return std::this_thread::get_id() == thread_;
  }
  bool records(std::uint64_t queue) const { return queues_.contains(queue); }
  const frontier& at(std::uint64_t queue) const { return queues_.at(queue); }
  /// Lets a queue, which takes part from now on, come after an event.
  void come_after(std::uint64_t queue, const frontier& event) {
    queues_[queue].insert(event.begin(), event.end());
  }
  void add(std::uint64_t queue, std::function<void()> run) {
    auto& before = queues_.at(queue);
    work_->nodes.push_back({std::move(run), {before.begin(), before.end()}});
    before = {work_->nodes.size() - 1};
  }

  /// From now on the recording is of no use.
  void spoil(std::string why) {
    if (spoiled_.empty())
      spoiled_ = std::move(why);
  }
  /// Why it is of no use; empty: it is of use.
  const std::string& spoiled() const noexcept { return spoiled_; }

  /// True if the origin comes after all that was recorded.
  bool is_joined() const {
    std::vector<bool> reached(work_->nodes.size());
    for (auto n : queues_.at(origin_))
      reached[n] = true;
    for (auto n = reached.size(); n-- > 0;)
      if (reached[n])
        for (auto before : work_->nodes[n].after)
          reached[before] = true;
    return std::ranges::all_of(reached, [](bool r) { return r; });
  }
  std::shared_ptr<const captured_work> work() const { return work_; }

private:
  std::uint64_t origin_;
  int gpu_;
  std::thread::id thread_;
  std::map<std::uint64_t, frontier> queues_;
  std::shared_ptr<captured_work> work_ = std::make_shared<captured_work>();
  std::string spoiled_;
};

/// One launch of recorded work. Runs it in any order that what was recorded
/// allows.
class pretend_launch {
public:
  explicit pretend_launch(std::shared_ptr<const captured_work> what)
    : work_(std::move(what)), missing_(work_->nodes.size()),
      told_(work_->nodes.size()) {
    for (std::size_t n = 0; n < work_->nodes.size(); ++n) {
      missing_[n] = work_->nodes[n].after.size();
      for (auto before : work_->nodes[n].after)
        told_[before].push_back(n);
      if (missing_[n] == 0)
        ready_.push_back(n);
    }
  }

  bool is_done() const noexcept { return ready_.empty(); }
  void run_next(splitmix64& draw) {
    const auto chosen =
      ready_.begin() + static_cast<std::ptrdiff_t>(draw.below(ready_.size()));
    const auto n = *chosen;
    ready_.erase(chosen);
    work_->nodes[n].run();
    for (auto next : told_[n])
      if (--missing_[next] == 0)
        ready_.push_back(next);
  }

private:
  std::shared_ptr<const captured_work> work_;
  std::vector<std::size_t> missing_;           // by node: not done before it
  std::vector<std::vector<std::size_t>> told_; // by node: those after it
  std::vector<std::size_t> ready_;
};

} // namespace troupe::test
