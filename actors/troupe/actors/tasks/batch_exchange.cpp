// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tasks/batch_exchange.hpp>

#include <troupe/actors/steps/scatter.hpp>
#include <troupe/base/error.hpp>
#include <troupe/comm/word_sum.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <exception>
#include <limits>
#include <new>
#include <numeric>
#include <vector>

namespace troupe::actors {

namespace {

/// Tells all ranks a word of each (comm/word_sum.hpp).
class word_exchange : public op_task, private completion {
public:
  explicit word_exchange(const exchange_place& place, std::string_view name)
    : place_(place), name_(name) {}

  launch_status run(step_state& step, completion& whole) final {
    step_ = &step;
    whole_ = &whole;
    auto& end = place_.ranks.of(place_.device_index);
    try {
      prepare(step, end);
    } catch (const error& e) {
      end.fail(e); // each step makes the same calls, whatever happens
      throw;
    } catch (const std::bad_alloc&) {
      end.fail({errc::out_of_memory, "no memory to tell other ranks"});
      throw;
    }
    const auto started = place_.ranks.start(
      place_.device_index, {comm::collective_kind::all_reduce, 0, {&given_, 1}},
      *this, step);
    if (started.state == launch_status::done)
      read();
    return started.state;
  }

  // The other ranks wait for this one and must learn that it has failed.
  launch_status skip(step_state& step, completion&) final {
    place_.ranks.of(place_.device_index).fail(step.reason());
    return launch_status::done;
  }

protected:
  const exchange_place& place() const noexcept { return place_; }

private:
  void prepare(const step_state& step, const comm::communicator& end) {
    words_.resize(end.size());
    std::ranges::fill(words_, 0);
    words_[end.rank()] = word_of(step);
    value_.set(comm::to_summand(words_, place_.memory));
  }

  virtual std::uint64_t word_of(const step_state& step) = 0;
  /// @param words by device
  virtual void take(step_state& step,
                    const std::vector<std::uint64_t>& words) = 0;

  void read() {
    comm::read_sum(value_.as_tensor(), words_);
    take(*step_, words_);
  }

  void completed(std::exception_ptr failure) noexcept final {
    if (!failure)
      try {
        read();
      } catch (...) {
        failure = std::current_exception();
      }
    whole_->completed(failure);
  }

  exchange_place place_;
  std::string_view name_;
  variable value_;
  comm::rank_value given_{name_, &value_, &value_};
  std::vector<std::uint64_t> words_; // kept to reuse its memory
  // Of the current run; there is only one at a time.
  step_state* step_ = nullptr;
  completion* whole_ = nullptr;
};

class count_samples_task final : public word_exchange {
public:
  explicit count_samples_task(const exchange_place& place)
    : word_exchange(place, "samples") {}

private:
  std::uint64_t word_of(const step_state& step) override {
    return static_cast<std::uint64_t>(
      step.shards[place().device_index].shard_samples);
  }

  void take(step_state& step,
            const std::vector<std::uint64_t>& words) override {
    const auto batch = static_cast<std::int64_t>(
      std::accumulate(words.begin(), words.end(), std::uint64_t{0}));
    if (batch == 0)
      throw error(errc::invalid_argument, "a batch without samples");
    std::int64_t first = 0;
    for (std::size_t d = 0; d < words.size(); ++d) {
      const auto samples = static_cast<std::int64_t>(words[d]);
      if (place().tells_of(d))
        tell(step.shards[d], first, samples, batch);
      if (place().reports())
        step.samples[d] = samples;
      first += samples;
    }
  }

  /// Writes only what has changed: where all devices are in one process,
  /// nothing does, and ops of other devices may be reading it.
  static void tell(step_info& shard, std::int64_t first, std::int64_t samples,
                   std::int64_t batch) {
    if (shard.first_sample != first)
      shard.first_sample = first;
    if (shard.shard_samples != samples)
      shard.shard_samples = samples;
    if (shard.batch_samples != batch)
      shard.batch_samples = batch;
  }
};

class gather_losses_task final : public word_exchange {
public:
  gather_losses_task(const exchange_place& place, const storage& loss)
    : word_exchange(place, loss.name()), loss_(loss) {}

private:
  std::uint64_t word_of(const step_state& step) override {
    const auto& value = loss_.at(step.slot);
    if (step.idle(place().device_index) || !value.is_tensor())
      return std::bit_cast<std::uint64_t>(
        std::numeric_limits<double>::quiet_NaN());
    return std::bit_cast<std::uint64_t>(
      mean_of(place().on.to_host(value.as_tensor(), host_)));
  }

  void take(step_state& step,
            const std::vector<std::uint64_t>& words) override {
    if (place().reports())
      for (std::size_t d = 0; d < words.size(); ++d)
        step.losses[d] = std::bit_cast<double>(words[d]);
  }

  storage loss_;
  arena host_{make_host_memory_source()};
};

} // namespace

std::unique_ptr<op_task> make_count_samples_task(const exchange_place& place) {
  return std::make_unique<count_samples_task>(place);
}

std::unique_ptr<op_task> make_gather_losses_task(const exchange_place& place,
                                                 const storage& loss) {
  return std::make_unique<gather_losses_task>(place, loss);
}

} // namespace troupe::actors
