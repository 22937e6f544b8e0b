// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/cuda/nccl_group.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/threads.hpp>
#include <troupe/comm/call_text.hpp>
#include <troupe/comm/cuda/star_group.hpp>
#include <troupe/comm/local/local_group.hpp>
#include <troupe/kernels/cuda/cuda_device.hpp>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace troupe::comm {

namespace {

using cuda::cuda_stream;
using cuda::nccl_kind;
using cuda::nccl_part;
using local::rank_part;

nccl_kind nccl_kind_of(collective_kind kind) {
  switch (kind) {
  case collective_kind::reduce: return nccl_kind::reduce;
  case collective_kind::broadcast: return nccl_kind::broadcast;
  default: return nccl_kind::all_reduce;
  }
}

tensor given_to_nccl(const rank_value& value) {
  return value.in && value.in->is_tensor() ? value.in->as_tensor() : tensor{};
}

/// True if NCCL can merge what all ranks give: float32 of one shape.
bool nccl_takes(std::span<const rank_part> ranks) {
  const auto& call = ranks.front().call;
  if (call.root >= ranks.size()
      || std::ranges::any_of(ranks, [](auto& r) { return !r.on; }))
    return false;
  for (std::size_t i = 0; i < call.values.size(); ++i) {
    const auto first = given_to_nccl(ranks[call.root].call.values[i]);
    if (!first || first.type() != dtype::float32)
      return false;
    for (auto& r : ranks) {
      const auto t = given_to_nccl(r.call.values[i]);
      if (call.kind != collective_kind::broadcast
          && (!t || t.type() != first.type() || t.dims() != first.dims()))
        return false;
    }
  }
  return true;
}

std::string nccl_rank_list(const std::vector<std::size_t>& ranks) {
  std::string text;
  for (auto r : ranks)
    text += (text.empty() ? "" : ", ") + std::to_string(r);
  return text.empty() ? "none" : text;
}

class nccl_merger;

/// A call whose work is queued.
struct nccl_call final : completion {
  void completed(std::exception_ptr failure) noexcept override;

  nccl_merger* of = nullptr;
  std::list<nccl_call>::iterator at;
  completion* whole = nullptr;
  std::string text;
  /// By rank: reached when the GPU comes to the call. Empty until all are
  /// there.
  std::vector<std::unique_ptr<cuda::gpu_event>> came;
  std::optional<std::uint64_t> since_ns; ///< when a rank was seen to have come
  std::exception_ptr given_up;
};

class nccl_merger final : public local::merger {
public:
  nccl_merger(std::span<device* const> devices,
              std::unique_ptr<cuda::nccl_ranks> ranks,
              const nccl_group_options& options)
    : devices_(devices.begin(), devices.end()),
      api_(cuda::state_of(*devices.front()).api),
      star_(make_star_merger(devices)), options_(options),
      ranks_(std::move(ranks)) {}

  // No call is pending any more, or its streams have ended: their completions
  // have been called.
  ~nccl_merger() override {
    {
      std::lock_guard guard{mutex_};
      closing_ = true;
      changed_.notify_all();
    }
    if (watcher_.joinable())
      watcher_.join();
  }

  std::size_t size() const noexcept override { return devices_.size(); }
  stream* caller() const noexcept override { return star_->caller(); }

  launch_status merge(std::span<const rank_part> ranks,
                      completion& whole) override {
    if (!nccl_takes(ranks) || given_up())
      return star_->merge(ranks, whole);
    auto& call = add(ranks, whole);
    try {
      queue(ranks, call);
      lead_of(ranks).notify(call);
    } catch (...) {
      for (auto& r : ranks) // what is queued still uses the values
        cuda::stream_of(r.on).drain();
      if (const auto why = remove(call))
        std::rethrow_exception(why);
      throw;
    }
    return launch_status::pending;
  }

  /// Called when a call has ended, on any thread.
  void ended(nccl_call& call, std::exception_ptr failure) noexcept {
    auto* const whole = call.whole;
    if (auto why = remove(call))
      failure = std::move(why);
    whole->completed(std::move(failure));
  }

private:
  /// An all_reduce has root 0.
  static cuda_stream& lead_of(std::span<const rank_part> ranks) {
    return cuda::stream_of(ranks[ranks.front().call.root].on);
  }

  nccl_call& add(std::span<const rank_part> ranks, completion& whole) {
    std::lock_guard guard{mutex_};
    if (!watcher_.joinable())
      watcher_ = start_thread("troupe-nccl", [this] { watch(); });
    auto& call = calls_.emplace_back();
    call.of = this;
    call.at = std::prev(calls_.end());
    call.whole = &whole;
    call.text = text_of(ranks.front().call);
    if (sleeps_)
      changed_.notify_all();
    return call;
  }
  /// Returns why the call was given up; null: it was not.
  std::exception_ptr remove(nccl_call& call) {
    std::lock_guard guard{mutex_};
    auto why = std::move(call.given_up);
    calls_.erase(call.at);
    return why;
  }
  bool given_up() const {
    std::lock_guard guard{mutex_};
    return given_up_;
  }

  /// Each rank's memory is taken by its own stream. The lead waits for all
  /// others, because it tells when the call has ended.
  void queue(std::span<const rank_part> ranks, nccl_call& call) {
    const auto& first = ranks.front().call;
    const auto values = first.values.size();
    std::vector<tensor> from(values * size()), to(values * size());
    std::vector<std::unique_ptr<cuda::gpu_event>> came;
    for (std::size_t r = 0; r < size(); ++r) {
      auto& on = cuda::stream_of(ranks[r].on);
      const cuda_stream::scope here{on};
      for (std::size_t i = 0; i < values; ++i) {
        const auto at = i * size() + r;
        from[at] = given_to_nccl(ranks[r].call.values[i]);
        to[at] = result_memory(ranks, r, i);
      }
      came.push_back(api_->make_event(on.state().gpu));
      api_->record(*came.back(), on.queue());
    }
    watch_for(call, std::move(came));
    std::vector<nccl_part> parts;
    for (std::size_t at = 0; at < to.size(); ++at) {
      auto& on = cuda::stream_of(ranks[at % size()].on);
      parts.push_back(
        {at % size(), &on.queue(), from[at] ? from[at].data<float>() : nullptr,
         to[at].data<float>(), static_cast<std::size_t>(to[at].numel())});
    }
    merge_by_nccl(first, parts);
    for (std::size_t r = 0; r < size(); ++r) {
      auto& on = cuda::stream_of(ranks[r].on);
      const cuda_stream::scope here{on}; // gives the work its position
      for (std::size_t i = 0; i < values; ++i)
        if (auto* const out = ranks[r].call.values[i].out;
            out && (first.kind != collective_kind::reduce || r == first.root))
          out->set(to[i * size() + r]);
    }
    auto& lead = lead_of(ranks);
    for (auto& r : ranks)
      if (auto& other = cuda::stream_of(r.on); &other != &lead)
        lead.order_after(other, other.position());
  }

  /// Where rank `r` gets its result: where its own value lies, if nobody else
  /// has that memory.
  tensor result_memory(std::span<const rank_part> ranks, std::size_t r,
                       std::size_t value) {
    const auto& call = ranks[r].call;
    const auto own = given_to_nccl(call.values[value]);
    if (call.kind == collective_kind::broadcast ? r == call.root
                                                : own && !own.is_shared())
      return own;
    const auto form = given_to_nccl(ranks[call.root].call.values[value]);
    return tensor::make(devices_[r]->memory(), form.dims(), form.type());
  }

  /// Some ranks may then have work that never ends without the others'.
  void merge_by_nccl(const collective_call& call,
                     std::span<const nccl_part> parts) {
    try {
      ranks_->queue(nccl_kind_of(call.kind), call.root, parts);
    } catch (...) {
      std::lock_guard guard{mutex_};
      give_up(std::current_exception());
      throw;
    }
  }

  void watch_for(nccl_call& call,
                 std::vector<std::unique_ptr<cuda::gpu_event>> came) {
    std::lock_guard guard{mutex_};
    call.came = std::move(came);
  }

  // -- watching

  void watch() {
    const auto idle = [this] { return calls_.empty() || given_up_; };
    for (std::unique_lock guard{mutex_}; !closing_;) {
      if (idle()) {
        sleeps_ = true;
        changed_.wait(guard, [&] { return closing_ || !idle(); });
        sleeps_ = false;
        continue;
      }
      if (const auto why = complaint(); !why.empty())
        give_up(std::make_exception_ptr(error(errc::peer_failure, why)));
      changed_.wait_for(guard, options_.every, [this] { return closing_; });
    }
  }

  /// What is wrong with the oldest call; empty: nothing. With the lock held.
  std::string complaint() {
    auto& oldest = calls_.front();
    std::vector<std::size_t> came, missing;
    for (std::size_t r = 0; r < size(); ++r)
      (has_come(oldest, r) ? came : missing).push_back(r);
    auto why = ranks_->failure();
    if (why.empty() && takes_too_long(oldest, !came.empty()))
      why = "no end within " + std::to_string(options_.limit.count()) + " ms";
    if (why.empty())
      return {};
    return "NCCL: " + oldest.text + ": " + why + "; ranks that came: "
           + nccl_rank_list(came) + "; missing: " + nccl_rank_list(missing);
  }

  /// While all GPUs are busy with earlier work, nobody waits for a rank.
  bool takes_too_long(nccl_call& call, bool any_has_come) const {
    if (!any_has_come)
      return false;
    const auto now = api_->now();
    if (!call.since_ns)
      call.since_ns = now;
    const auto limit = std::chrono::nanoseconds(options_.limit).count();
    return now - *call.since_ns >= static_cast<std::uint64_t>(limit);
  }

  bool has_come(const nccl_call& call, std::size_t rank) const {
    try {
      return rank < call.came.size() && api_->reached(*call.came[rank]);
    } catch (const error&) {
      return false; // the device has failed
    }
  }

  /// With the lock held. The streams then come to the ends of all calls.
  void give_up(const std::exception_ptr& why) {
    if (std::exchange(given_up_, true))
      return;
    for (auto& call : calls_)
      call.given_up = why;
    ranks_->abort();
  }

  std::vector<device*> devices_;
  std::shared_ptr<cuda::driver> api_;
  std::unique_ptr<local::merger> star_;
  nccl_group_options options_;
  std::unique_ptr<cuda::nccl_ranks> ranks_;

  mutable std::mutex mutex_;   // guards what follows
  std::list<nccl_call> calls_; // that have not ended, by age
  bool given_up_ = false;
  bool sleeps_ = false; // the watching thread, until there is a call
  bool closing_ = false;
  std::condition_variable changed_;
  std::thread watcher_;
};

void nccl_call::completed(std::exception_ptr failure) noexcept {
  of->ended(*this, std::move(failure));
}

} // namespace

std::vector<std::unique_ptr<communicator>>
make_nccl_group(std::span<device* const> devices,
                std::unique_ptr<cuda::nccl_ranks> ranks,
                const nccl_group_options& options) {
  return local::make_ends(
    std::make_unique<nccl_merger>(devices, std::move(ranks), options));
}

} // namespace troupe::comm
