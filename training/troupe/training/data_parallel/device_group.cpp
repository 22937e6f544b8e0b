// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data_parallel/device_group.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/base/error.hpp>
#include <troupe/comm/communicator.hpp>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

namespace troupe {

namespace {

/// The calls of all ranks that belong together. Whoever makes them waits for
/// all, and then throws the first error.
class joint_call {
public:
  explicit joint_call(std::size_t ranks) : ends_(ranks) {
    for (auto& end : ends_)
      end.of = this;
  }

  void start(comm::communicator& end, const comm::collective_call& call) {
    {
      std::lock_guard guard{mutex_};
      ++open_;
    }
    try {
      if (end.start(call, ends_[end.rank()]).state == launch_status::done)
        ended(nullptr);
    } catch (...) {
      ended(std::current_exception());
    }
  }

  void wait() {
    std::unique_lock guard{mutex_};
    changed_.wait(guard, [this] { return open_ == 0; });
    if (failure_)
      std::rethrow_exception(failure_);
  }

private:
  struct rank_end final : completion {
    joint_call* of = nullptr;
    void completed(std::exception_ptr failure) noexcept override {
      of->ended(std::move(failure));
    }
  };

  // Notifies under the lock: the waiting thread destroys this.
  void ended(std::exception_ptr failure) noexcept {
    std::lock_guard guard{mutex_};
    if (failure && !failure_)
      failure_ = std::move(failure);
    if (--open_ == 0)
      changed_.notify_all();
  }

  std::vector<rank_end> ends_;
  std::mutex mutex_; // guards the next two
  std::size_t open_ = 0;
  std::exception_ptr failure_;
  std::condition_variable changed_;
};

/// The ids of a group's devices.
std::vector<device_id>
checked_ids(const std::vector<std::shared_ptr<device>>& members) {
  if (members.empty())
    throw error(errc::invalid_argument, "no devices");
  std::vector<device_id> ids;
  for (auto& d : members) {
    if (!d)
      throw error(errc::invalid_argument, "a device that is none");
    if (std::ranges::find(ids, d->id()) != ids.end())
      throw error(errc::invalid_argument, "a device is listed twice",
                  {.device = to_string(d->id())});
    ids.push_back(d->id());
  }
  return ids;
}

} // namespace

struct device_group::group {
  using communicators = std::vector<std::unique_ptr<comm::communicator>>;

  communicators ends; // by device
  communicators pair; // device 0 twice

  /// Makes the call of each rank, on this thread: none of them waits.
  static void run(const communicators& ends, comm::collective_kind kind,
                  std::size_t root,
                  const std::vector<std::vector<comm::rank_value>>& by_rank) {
    joint_call all{ends.size()};
    for (std::size_t r = 0; r < ends.size(); ++r)
      all.start(*ends[r], {kind, root, by_rank[r]});
    all.wait();
  }
};

device_group::device_group(const std::vector<device_id>& ids)
  : device_group(make_devices(ids)) {}

device_group::device_group(std::vector<std::shared_ptr<device>> members)
  : ids_(checked_ids(members)), devices_(std::move(members)),
    group_(std::make_unique<group>()) {
  std::vector<device*> ranks;
  for (auto& d : devices_)
    ranks.push_back(d.get());
  group_->ends = make_group(ranks);
  group_->pair = make_group(std::vector{ranks[0], ranks[0]});
}

device_group::~device_group() = default;

std::size_t device_group::index_of(device_id id) const {
  const auto found = std::ranges::find(ids_, id);
  if (found == ids_.end())
    throw error(errc::not_found, "the device is not among those of the group",
                {.device = to_string(id)});
  return static_cast<std::size_t>(found - ids_.begin());
}

void device_group::broadcast(std::span<variable* const> values,
                             std::span<const std::vector<variable*>> copies) {
  std::vector<std::vector<comm::rank_value>> by_rank(size());
  for (std::size_t r = 0; r < size(); ++r)
    for (std::size_t i = 0; i < values.size(); ++i)
      by_rank[r].push_back({"value", r == 0 ? values[i] : nullptr,
                            r < copies.size() ? copies[r][i] : nullptr});
  group_->run(group_->ends, comm::collective_kind::broadcast, 0, by_rank);
}

std::vector<variable>
device_group::reduce_add(std::span<std::vector<variable>> values,
                         std::size_t to) {
  std::vector<variable> sums(values[to].size());
  std::vector<std::vector<comm::rank_value>> by_rank(size());
  for (std::size_t r = 0; r < size(); ++r)
    for (std::size_t i = 0; i < sums.size(); ++i)
      by_rank[r].push_back({"value",
                            r < values.size() ? &values[r][i] : nullptr,
                            r == to ? &sums[i] : nullptr});
  group_->run(group_->ends, comm::collective_kind::reduce, to, by_rank);
  return sums;
}

void device_group::add_to(variable& sum, variable term) {
  if (!sum.has_value()) {
    sum = std::move(term);
    return;
  }
  group_->run(group_->pair, comm::collective_kind::reduce, 0,
              {{{"value", &sum, &sum}}, {{"value", &term, nullptr}}});
}

} // namespace troupe
