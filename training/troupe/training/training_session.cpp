// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/training_session.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/one_at_a_time.hpp>
#include <troupe/training/learning_rate.hpp>
#include <troupe/training/snapshots/run_snapshots.hpp>

#include <cmath>
#include <utility>

namespace troupe {

namespace {

run_identity identity_of(const training_program& program,
                         const session_options& options) {
  if (options.snapshots.folder.empty())
    return {};
  const auto form = options.batches.value_or(generated_batches{0, 0});
  return {hash_of(program.main), options.executor.seed, form.batch,
          form.steps_per_epoch, options.executor.accumulate};
}

executor_options with_parameters(const training_program& program,
                                 executor_options options) {
  options.loss = program.loss;
  if (!options.parameters) {
    options.parameters = std::make_shared<scope>();
    run_startup(program.startup, *options.parameters, options.seed);
  }
  return options;
}

/// Adds what `feeds` adds to the batches of another source.
class completed_source final : public batch_source {
public:
  using function = std::function<feed_map(feed_map)>;

  completed_source(batch_source& from, function feeds)
    : from_(from), feeds_(std::move(feeds)) {}

  std::uint64_t steps_per_epoch() const override {
    return from_.steps_per_epoch();
  }
  std::int64_t batch_samples(std::uint64_t index) const override {
    return from_.batch_samples(index);
  }
  bool has_ended() override { return from_.has_ended(); }
  feed_map batch(std::uint64_t epoch, std::uint64_t index) override {
    return feeds_(from_.batch(epoch, index));
  }

private:
  batch_source& from_;
  function feeds_;
};

} // namespace

struct training_session::impl {
  impl(training_program what, session_options how)
    : program(std::move(what)), options(std::move(how)),
      snapshots(options.snapshots, identity_of(program, options)),
      running(with_parameters(program, options.executor)) {
    if (snapshots.has_devices())
      snapshots.restore(running.devices.size(), *running.parameters);
    exe.emplace(program.main, running);
    snapshots.begin(running);
    position = snapshots.start();
    draw_as_position();
  }

  feed_map with_rate(feed_map batch);
  void take_back_rate();
  void draw_as_position();
  void require_no_step() const;

  training_program program;
  session_options options;
  run_snapshots snapshots;
  executor_options running; // of `exe`
  std::optional<executor> exe;
  run_position position;
  std::optional<float> rate;     // that the next step is to be fed
  std::optional<float> fed_rate; // of the last batch, if that had one
  // Number of steps that the executor has ended and that are not of the run,
  // modulo 2^64.
  std::uint64_t beside_run = 0;
  one_at_a_time use;
  arena host{make_host_memory_source()};
};

training_session::training_session(training_program program,
                                   session_options options)
  : impl_(std::make_unique<impl>(std::move(program), std::move(options))) {}

training_session::~training_session() = default;

const training_program& training_session::program() const noexcept {
  return impl_->program;
}

executor& training_session::exe() noexcept {
  return *impl_->exe;
}

const run_position& training_session::position() const noexcept {
  return impl_->position;
}

training_report training_session::run(batch_source& source,
                                      const training_plan& plan,
                                      training_observer observer) {
  const one_at_a_time::call here{impl_->use, "the session"};
  const auto epoch = source.steps_per_epoch();
  const update_steps updates{plan.steps > 0 ? plan.steps : plan.epochs * epoch,
                             epoch, impl_->running.accumulate};
  const auto is_due = [updates, every = plan.snapshot_every](auto steps) {
    return updates.is_due(every, steps);
  };
  auto own = observer;
  own.pauses_after = [&](std::uint64_t steps) {
    return is_due(steps)
           || (observer.pauses_after && observer.pauses_after(steps));
  };
  own.pause = [&](const run_position& done) {
    if (is_due(done.steps))
      take_snapshot();
    if (observer.pauses_after && observer.pauses_after(done.steps))
      observer.pause(done);
  };
  training_report report;
  completed_source completed{source, [this](feed_map batch) {
                               return impl_->with_rate(std::move(batch));
                             }};
  try {
    run_training(exe(), completed, impl_->position, updates,
                 impl_->running.steps_in_flight, impl_->running.fetches, own,
                 report);
  } catch (...) {
    impl_->take_back_rate();
    impl_->draw_as_position();
    throw;
  }
  impl_->draw_as_position();
  require_snapshots_written();
  return report;
}

void training_session::count_step(double loss, std::int64_t samples) {
  auto& at = impl_->position;
  ++at.steps;
  at.epoch_loss += loss * static_cast<double>(samples);
  at.epoch_samples += static_cast<double>(samples);
}

void training_session::run_async(const feed_map& batch,
                                 std::span<const std::string> fetches,
                                 std::function<void(step_outcome)> done) {
  try {
    exe().run_async(impl_->with_rate(batch), fetches, std::move(done));
  } catch (...) {
    impl_->take_back_rate();
    throw;
  }
}

feed_map training_session::impl::with_rate(feed_map batch) {
  fed_rate = std::exchange(rate, std::nullopt);
  if (fed_rate) {
    const auto name = learning_rate_variable(program.main);
    auto value =
      tensor::make(host, program.main.main().var(name).dims, dtype::float32);
    value.values<float>()[0] = *fed_rate;
    batch.insert_or_assign(name, std::move(value));
  }
  return batch;
}

/// The step may not have begun. A rate that is fed twice does no harm.
void training_session::impl::take_back_rate() {
  if (!rate)
    rate = fed_rate;
}

/// Steps that have failed or were cancelled are none of the run: its next step
/// is to draw the random numbers of its own number.
void training_session::impl::draw_as_position() {
  const auto beside = exe->steps_ended() - position.steps;
  if (beside != beside_run)
    exe->continue_from(position.steps);
  beside_run = beside;
}

void training_session::impl::require_no_step() const {
  if (exe->is_running())
    throw error(errc::invalid_argument,
                "steps are running that use the parameters: a callback that "
                "needs them is `pause`, or `epoch` with `rest_between_epochs`");
}

double training_session::learning_rate() const {
  const auto name = learning_rate_variable(impl_->program.main);
  if (impl_->rate)
    return *impl_->rate;
  const auto* held = impl_->running.parameters->find(name);
  if (!held || !held->is_tensor() || !held->as_tensor())
    throw error(errc::not_found, "the learning rate has no value",
                {.variable = name});
  arena host{make_host_memory_source()}; // its blocks outlive it
  return impl_->running.parameters->to_host(held->as_tensor(), host)
    .values<float>()[0];
}

void training_session::set_learning_rate(double rate) {
  const auto name = learning_rate_variable(impl_->program.main);
  const auto fed = static_cast<float>(rate);
  if (!std::isfinite(fed) || fed < 0)
    throw error(errc::invalid_argument,
                "the learning rate is " + std::to_string(rate)
                  + ", but must be a finite float32 of at least 0",
                {.variable = name});
  impl_->rate = fed;
}

executor_options training_session::options_of_evaluation() const {
  executor_options made;
  made.devices = {impl_->running.devices.front()};
  made.threads = impl_->running.threads;
  made.system = impl_->running.system;
  made.kernels = impl_->running.kernels;
  made.outside_ops = impl_->running.outside_ops;
  return evaluation_options(impl_->program, std::move(made));
}

std::shared_ptr<scope> training_session::copied_parameters() {
  impl_->require_no_step();
  exe().synchronize_parameters();
  return copy_parameters(*impl_->running.parameters, impl_->program.test);
}

evaluation training_session::evaluate(batch_source& samples,
                                      std::uint64_t steps) {
  auto options = options_of_evaluation();
  options.parameters = copied_parameters();
  executor tester{impl_->program.test, std::move(options)};
  return troupe::evaluate(tester, impl_->program, samples,
                          steps > 0 ? steps : samples.steps_per_epoch());
}

void training_session::take_snapshot(snapshot_written written) {
  if (impl_->options.snapshots.folder.empty())
    throw error(errc::invalid_argument,
                "the session has no folder for snapshots");
  impl_->require_no_step();
  impl_->snapshots.take(exe(), impl_->position, std::move(written));
}

void training_session::require_snapshots_written() {
  impl_->snapshots.require_written();
}

std::string training_session::snapshot_name() const {
  return snapshot_folder{impl_->options.snapshots.folder, 0, 1}.name_of(
    impl_->position.steps);
}

std::vector<std::string> training_session::take_notes() {
  return impl_->snapshots.take_notes();
}

void training_session::save(const std::filesystem::path& folder) {
  impl_->require_no_step();
  exe().synchronize_parameters();
  refresh_coalesced(impl_->program, *impl_->running.parameters);
  const auto batch = impl_->options.batches ? impl_->options.batches->batch : 0;
  save_program(impl_->program, batch, *impl_->running.parameters, folder);
}

} // namespace troupe
