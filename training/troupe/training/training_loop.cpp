// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/training_loop.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/error.hpp>

#include <algorithm>
#include <deque>
#include <exception>

namespace troupe {

namespace {

class training {
public:
  training(executor& exe, batch_source& source, run_position& position,
           const update_steps& updates, const std::vector<std::string>& fetches,
           const training_observer& observer, training_report& report)
    : exe_(exe), source_(source), done_(position), updates_(updates),
      steps_(updates.run_steps), fetches_(fetches), observer_(&observer),
      report_(report) {}

  void run(std::uint32_t in_flight) {
    if (report_.steps == 0)
      report_.first_step = done_.steps;
    start_ = epoch_start_ = now_ns();
    try {
      run_steps(in_flight);
    } catch (const error& e) {
      const bool was_stopped = e.code() == errc::cancelled && stop();
      end_quietly();
      if (!was_stopped)
        throw;
    } catch (...) { // of the application's functions
      end_quietly();
      throw;
    }
    add_time();
    report_.stopped = done_.steps < steps_;
  }

private:
  void add_time() {
    report_.seconds += static_cast<double>(now_ns() - start_ - rest_ns_) * 1e-9;
  }

  void run_steps(std::uint32_t in_flight) {
    for (auto step = done_.steps; step < steps_ && !stop() && admit(step);
         ++step) {
      while (!under_way_.empty()
             && (under_way_.size() >= in_flight || rests_after(step + 1)))
        finish_oldest();
      if (pauses_after(step + 1))
        pause();
    }
    while (!under_way_.empty())
      finish_oldest();
    if (no_batch_)
      std::rethrow_exception(no_batch_);
  }

  /// A callback or a step has failed. The steps in flight end all the same.
  /// Those that succeed have updated the parameters, so they count, but nobody
  /// is told.
  void end_quietly() {
    static const training_observer nobody;
    observer_ = &nobody;
    while (!under_way_.empty())
      try {
        finish_oldest();
      } catch (const error&) { // mostly cancelled, behind the first one
      }
    add_time();
  }

  bool rests_after(std::uint64_t steps) const {
    return pauses_after(steps)
           || (observer_->rest_between_epochs
               && steps % source_.steps_per_epoch() == 0);
  }

  bool pauses_after(std::uint64_t steps) const {
    return observer_->pauses_after && observer_->pauses_after(steps);
  }

  void pause() {
    const auto begin = now_ns();
    observer_->pause(done_);
    const auto took = now_ns() - begin;
    rest_ns_ += took;
    epoch_start_ += took;
  }

  bool stop() const { return observer_->stop && observer_->stop(); }

  /// False if there is no further batch. If the source, or the check of its
  /// batch, has thrown, `no_batch_` is thrown once the steps in flight have
  /// ended.
  bool admit(std::uint64_t step) {
    try {
      if (source_.has_ended())
        return false;
      const feed_map feeds = batch_of(step);
      const auto now = now_ns();
      if (updates_.ends_with(step + 1))
        exe_.update_in_next_step();
      under_way_.push_back({exe_.submit(feeds, fetches_), now});
      return true;
    } catch (...) {
      no_batch_ = std::current_exception();
      return false;
    }
  }

  feed_map batch_of(std::uint64_t step) {
    const auto per_epoch = source_.steps_per_epoch();
    auto* const told = observer_->waits_for_data;
    if (told)
      told->begin(step);
    auto feeds = source_.batch(step / per_epoch, step % per_epoch);
    if (told)
      told->end();
    return feeds;
  }

  /// Counts the step before anybody is told of it: what a callback throws does
  /// not undo its update.
  void finish_oldest() {
    const auto [id, admitted_ns] = under_way_.front();
    under_way_.pop_front();
    const step_result result = exe_.wait(id);
    const auto number = done_.steps;
    const auto index = number % source_.steps_per_epoch();
    const auto samples = source_.batch_samples(index);
    const auto ms = own_ms(admitted_ns, result.ms);
    count(result.loss, samples);
    const bool ends_epoch =
      index + 1 == source_.steps_per_epoch() || done_.steps == steps_;
    const auto now = now_ns();
    const auto samples_per_s = ends_epoch ? count_epoch(now) : 0;
    tell(number, result, samples, ms);
    if (ends_epoch)
      tell_epoch(samples_per_s, now);
    if (observer_->done)
      observer_->done(done_);
  }

  /// Milliseconds of one step. Steps overlap, so its time begins when the
  /// previous step ends.
  double own_ms(std::uint64_t admitted_ns, double ms) {
    const double admitted = static_cast<double>(admitted_ns) * 1e-6;
    const double end = admitted + ms;
    const double begin = std::max(admitted, last_end_ms_);
    last_end_ms_ = std::max(end, last_end_ms_);
    return std::max(0.0, end - begin);
  }

  void count(double loss, std::int64_t samples) {
    const auto n = static_cast<double>(samples);
    report_.history.steps.push_back(loss);
    report_.samples += static_cast<std::uint64_t>(samples);
    ++report_.steps;
    ++done_.steps;
    done_.epoch_loss += loss * n;
    done_.epoch_samples += n;
    epoch_samples_here_ += n;
  }

  void tell(std::uint64_t number, const step_result& result,
            std::int64_t samples, double ms) {
    if (observer_->step)
      observer_->step({number, result.loss, result.losses, ms,
                       ms > 0 ? static_cast<double>(samples) * 1e3 / ms : 0});
    if (observer_->fetched)
      observer_->fetched(result);
  }

  /// Returns samples per second.
  double count_epoch(std::uint64_t now) {
    auto& history = report_.history;
    const double seconds = static_cast<double>(now - epoch_start_) * 1e-9;
    history.epochs.push_back(done_.epoch_loss / done_.epoch_samples);
    history.epoch_ends.push_back(report_.steps);
    const auto samples_per_s = epoch_samples_here_ / seconds;
    done_.epoch_loss = done_.epoch_samples = epoch_samples_here_ = 0;
    epoch_start_ = now;
    return samples_per_s;
  }

  void tell_epoch(double samples_per_s, std::uint64_t now) {
    if (observer_->epoch)
      observer_->epoch((done_.steps - 1) / source_.steps_per_epoch() + 1,
                       report_.history.epochs.back(), samples_per_s);
    if (observer_->rest_between_epochs) {
      epoch_start_ = now_ns();
      rest_ns_ += epoch_start_ - now;
    }
  }

  executor& exe_;
  batch_source& source_;
  run_position& done_;
  update_steps updates_;
  std::uint64_t steps_;
  const std::vector<std::string>& fetches_;
  const training_observer* observer_;
  struct admitted_step {
    step_id id;
    std::uint64_t admitted_ns;
  };
  std::deque<admitted_step> under_way_;
  std::exception_ptr no_batch_;
  training_report& report_;
  std::uint64_t start_ = 0;       // in ns
  double epoch_samples_here_ = 0; // without those of earlier runs
  double last_end_ms_ = 0;
  std::uint64_t epoch_start_ = 0;
  std::uint64_t rest_ns_ = 0;
};

} // namespace

bool update_steps::ends_with(std::uint64_t steps) const noexcept {
  const auto in_epoch = (steps - 1) % epoch_steps + 1;
  return in_epoch % accumulate == 0 || in_epoch == epoch_steps
         || steps == run_steps;
}

bool update_steps::is_due(std::uint64_t interval,
                          std::uint64_t steps) const noexcept {
  if (interval == 0 || !ends_with(steps))
    return false;
  const auto before = steps - 1 - (steps - 1) % epoch_steps % accumulate;
  return steps / interval > before / interval;
}

void forget_steps_from(std::uint64_t steps, training_report& report) {
  const auto kept = steps > report.first_step ? steps - report.first_step : 0;
  auto& history = report.history;
  if (kept >= history.steps.size())
    return;
  history.steps.resize(kept);
  while (!history.epoch_ends.empty() && history.epoch_ends.back() > kept) {
    history.epoch_ends.pop_back();
    history.epochs.pop_back();
  }
  report.steps = kept;
}

void run_training(executor& exe, batch_source& source, run_position& position,
                  const update_steps& updates, std::uint32_t in_flight,
                  const std::vector<std::string>& fetches,
                  const training_observer& observer, training_report& report) {
  training(exe, source, position, updates, fetches, observer, report)
    .run(in_flight);
}

} // namespace troupe
