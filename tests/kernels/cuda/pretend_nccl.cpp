// SPDX-License-Identifier: Apache-2.0
#include <kernels/cuda/pretend_nccl.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

namespace {

using namespace cuda;

/// The merge of several values.
struct pretend_merge {
  std::span<const nccl_part> parts_of(std::size_t value) const {
    return std::span{parts}.subspan(value * ranks, ranks);
  }

  void read() {
    for (std::size_t i = 0; i * ranks < parts.size(); ++i)
      results.push_back(result(parts_of(i)));
  }
  void write(std::size_t rank) const {
    if (kind != nccl_kind::reduce || rank == root)
      for (std::size_t i = 0; i < results.size(); ++i)
        std::ranges::copy(results[i], parts_of(i)[rank].to);
  }

  std::vector<float> result(std::span<const nccl_part> of) const {
    std::vector<float> made(of.front().count);
    if (kind == nccl_kind::broadcast)
      std::copy_n(of[root].from, made.size(), made.begin());
    else
      for (auto r = of.size(); r-- > 0;)
        for (std::size_t i = 0; i < made.size(); ++i)
          made[i] += of[r].from[i];
    return made;
  }

  nccl_kind kind;
  std::size_t root;
  std::size_t ranks;
  std::vector<nccl_part> parts;
  std::vector<std::vector<float>> results = {}; ///< by value
};

class pretend_ranks final : public nccl_ranks {
public:
  pretend_ranks(std::shared_ptr<pretend_driver> api, std::size_t size)
    : api_(std::move(api)), size_(size) {}

  void queue(nccl_kind kind, std::size_t root,
             std::span<const nccl_part> parts) override {
    std::vector<gpu_queue*> queues;
    for (auto& p : parts.first(size_))
      queues.push_back(p.on);
    std::lock_guard guard{mutex_};
    if (aborted_)
      throw error(errc::peer_failure, "NCCL: the communicator was aborted");
    std::erase_if(queued_, [](auto& m) { return m.expired(); });
    const auto merge = std::make_shared<pretend_merge>(
      pretend_merge{kind, root, size_, {parts.begin(), parts.end()}});
    queued_.push_back(
      api_->meet(queues, {[=] { merge->read(); },
                          [=](std::size_t rank) { merge->write(rank); }}));
  }
  std::string failure() const override {
    std::lock_guard guard{mutex_};
    for (auto& queued : queued_)
      if (const auto m = queued.lock(); m && api_->has_failed(*m))
        return "remote error";
    return "";
  }
  void abort() noexcept override {
    std::lock_guard guard{mutex_};
    aborted_ = true;
    for (auto& queued : queued_)
      if (const auto m = queued.lock())
        api_->end_meeting(*m);
  }

private:
  std::shared_ptr<pretend_driver> api_;
  const std::size_t size_;
  mutable std::mutex mutex_; // guards what follows
  std::vector<std::weak_ptr<pretend_driver::meeting>> queued_;
  bool aborted_ = false;
};

class pretend_library final : public nccl {
public:
  pretend_library(std::shared_ptr<pretend_driver> api, bool connects)
    : api_(std::move(api)), connects_(connects) {}

  std::string version() const override { return "pretend"; }
  std::unique_ptr<nccl_ranks> make_ranks(std::span<const int> gpus) override {
    if (std::set<int>(gpus.begin(), gpus.end()).size() < gpus.size())
      throw error(errc::peer_failure, "NCCL: invalid usage: duplicate GPU");
    if (!connects_)
      throw error(errc::peer_failure, "NCCL: unhandled system error");
    return std::make_unique<pretend_ranks>(api_, gpus.size());
  }

private:
  std::shared_ptr<pretend_driver> api_;
  const bool connects_;
};

} // namespace

std::shared_ptr<cuda::nccl>
make_pretend_nccl(std::shared_ptr<pretend_driver> api, bool connects) {
  return std::make_shared<pretend_library>(std::move(api), connects);
}

} // namespace troupe::test
