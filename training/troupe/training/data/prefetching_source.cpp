// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data/prefetching_source.hpp>

#include <troupe/actors/caf/caf.hpp>
#include <troupe/actors/configure.hpp>
#include <troupe/base/assert.hpp>

#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>

#include <exception>
#include <utility>
#include <vector>

namespace troupe {

namespace {

/// Identifies a batch by epoch and step.
struct batch_place {
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;

  bool operator==(const batch_place&) const = default;
};

/// A batch, or the exception that making it threw. Messages pass a pointer to
/// it.
struct made_batch {
  batch_place place;
  feed_map feeds;
  std::exception_ptr failure;
};

using batch_ptr = std::shared_ptr<const made_batch>;

} // namespace

} // namespace troupe

CAF_BEGIN_TYPE_ID_BLOCK(troupe_prefetching,
                        troupe::actors::type_ids::prefetching)
CAF_ADD_TYPE_ID(troupe_prefetching, (troupe::batch_place))
CAF_ADD_TYPE_ID(troupe_prefetching, (troupe::batch_ptr))
CAF_END_TYPE_ID_BLOCK(troupe_prefetching)

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::batch_place)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::batch_ptr)

namespace troupe {

namespace {

batch_ptr make_batch(batch_source& source, batch_place place) {
  auto made = std::make_shared<made_batch>();
  made->place = place;
  try {
    made->feeds = source.batch(place.epoch, place.index);
  } catch (...) {
    made->failure = std::current_exception();
  }
  return made;
}

/// Answers each request with its batch.
caf::behavior loader(caf::event_based_actor*, batch_source* source) {
  return {[source](batch_place place) { return make_batch(*source, place); }};
}

class prefetching_source final : public batch_source {
public:
  prefetching_source(std::unique_ptr<batch_source> source, std::size_t ahead,
                     caf::actor_system& system)
    : source_(std::move(source)), ahead_(ahead), self_(system) {
    TROUPE_ASSERT(ahead > 0);
    for (std::uint64_t i = 0; i < source_->steps_per_epoch(); ++i)
      samples_.push_back(source_->batch_samples(i));
    loader_ = system.spawn(loader, source_.get());
    self_->monitor(loader_);
  }

  ~prefetching_source() override {
    forget();
    caf::anon_send_exit(loader_, caf::exit_reason::user_shutdown);
    self_->receive([](const caf::down_msg&) {}); // waits until it has ended
  }

  std::uint64_t steps_per_epoch() const override { return samples_.size(); }
  std::int64_t batch_samples(std::uint64_t index) const override {
    return samples_[index];
  }

  feed_map batch(std::uint64_t epoch, std::uint64_t index) override {
    const batch_place wanted{epoch, index};
    if (asked_ == 0 || next_ != wanted) {
      forget();
      next_ = last_ = wanted;
      ask();
    }
    // Request the next ones too, before waiting for this one.
    while (asked_ <= ahead_) {
      last_ = after(last_);
      ask();
    }
    const auto made = take();
    next_ = after(next_);
    if (made->failure)
      std::rethrow_exception(made->failure);
    return made->feeds;
  }

private:
  batch_place after(batch_place p) const {
    return p.index + 1 < samples_.size() ? batch_place{p.epoch, p.index + 1}
                                         : batch_place{p.epoch + 1, 0};
  }
  void ask() {
    actors::send(self_, loader_, last_);
    ++asked_;
  }
  batch_ptr take() {
    batch_ptr made;
    self_->receive([&](const batch_ptr& b) { made = b; });
    --asked_;
    return made;
  }
  void forget() {
    while (asked_ > 0)
      take();
  }

  std::unique_ptr<batch_source> source_; // only the loader uses it
  std::vector<std::int64_t> samples_;    // per step of an epoch
  std::size_t ahead_;
  caf::scoped_actor self_;
  caf::actor loader_;
  batch_place next_, last_; // first and last batch of the open requests
  std::size_t asked_ = 0;   // number of open requests
};

} // namespace

std::unique_ptr<batch_source>
make_prefetching_source(std::unique_ptr<batch_source> source, std::size_t ahead,
                        caf::actor_system& system) {
  init_message_types();
  actors::register_types<caf::id_block::troupe_prefetching>();
  return std::make_unique<prefetching_source>(std::move(source), ahead, system);
}

} // namespace troupe
