// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor_state.hpp>

namespace troupe {

using actors::actor_graph;
using actors::step_state;

executor::impl::impl(std::shared_ptr<const graph::program> main,
                     executor_options opts)
  : options(std::move(opts)), program(actors::exposed(std::move(main))),
    periods(options.accumulate) {
  actors::check_options(options);
  if (!options.kernels)
    options.kernels =
      std::make_shared<kernel_table>(kernels_for(options.devices));
  options.kernels = actors::with_outside_ops(options);
  parameters =
    options.parameters ? options.parameters : std::make_shared<scope>();
  devices = actors::devices_of(options);
  start.begin("build graph");
  graph::require_kernels(*program, *options.kernels, options.devices);
  loss = actors::loss_of(*program, options.loss);
  ssa = actors::build_graph(program, options, loss, &start);
  feeds_needed = {graph::feed_names(ssa), program->main()};
  gathers_losses = std::ranges::count(ssa.ops, graph::op_kind::gather_losses,
                                      &graph::op_handle::kind)
                   > 0;
  start.begin("prepare kernels");
  if (!options.hooks.dry_run)
    prepare_backends(options.devices, worker_count(options.threads));
  if (!options.system) {
    own = std::make_unique<actors::own_system>(options.threads,
                                               options.nodes.has_value());
    options.system = own->system.get();
  }
  init_message_types();
  workers = std::make_unique<actors::worker_pool>(*options.system);
  traces = std::make_unique<actors::executor_traces>(options, *program,
                                                     workers->queue());
  trace = &traces->events();
  if (!options.hooks.dry_run)
    replicas().spread();
  discards_seen = parameters->discards();
  start.begin("wire actors");
  if (!ssa.transfers.empty())
    transfers = std::make_unique<actors::transport>(
      ssa.transfers.size(), options.steps_in_flight,
      [ids = options.devices](std::string_view name, const shape& dims) {
        return find_layout(ids, name, dims);
      });
  if (options.nodes && !options.hooks.dry_run)
    shared = std::make_shared<comm::process_memory>();
  actors = std::make_unique<actor_graph>(actor_graph::parts{
    options.system, workers.get(), program.get(), &ssa, devices,
    parameters.get(), options.kernels.get(), &options, trace, traces->busy(),
    where(), transfers.get(), shared ? &shared->memory() : nullptr});
  failures.emplace(actors->context(), transfers.get(), actors->tasks().ranks());
  feeding.emplace(actors::feeder::parts{
    &program->main(), &feeds_needed, devices, where(), parameters.get(),
    &actors->tasks(), trace, options.borrow_feeds});
  actors->context().step_failed = &step_failed;
  actors->context().step_ended = &step_ended;
  actors->context().owner = this;
  actors->context().pace = &pace;
  start_captures();
  if (options.nodes)
    start.begin("join processes");
  connect();
  start.end();
  traces->begin(ssa, actors->messages(), start);
  // The engine has its messages. Whoever asks for the edges gets them again.
  graph::drop_data_edges(ssa);
  // CAF keeps a reference to the system's logger in this thread. The main
  // thread would drop it at exit, before objects in static storage are
  // destroyed, and the system of such an executor would drop it again.
  if (own)
    actors::forget_system();
}

void executor::impl::connect() {
  if (options.nodes) {
    others.emplace(actors::process_run::parts{
      options.system, &options, &loss, &ssa, parameters.get(), actors.get(),
      &*failures, transfers.get(), &workers->queue(), trace, shared, where(),
      [this] { return ended.load(std::memory_order_relaxed); },
      [this] { return pace.is_paused(); }});
  } else if (transfers) {
    loopback = std::make_unique<actors::loopback_wire>(*transfers);
    transfers->connect(*loopback);
  }
}

actors::parameter_replicas executor::impl::replicas() {
  return {ssa, *parameters, devices, where()};
}

/// Another executor may have discarded values that steps read.
void executor::impl::require_values() {
  if (options.hooks.dry_run || discards_seen == parameters->discards())
    return;
  replicas().require_values();
  discards_seen = parameters->discards();
}

bool executor::impl::feeds_a_share() const {
  return options.nodes && !ssa.places.empty();
}

std::int64_t executor::impl::check(const feed_map& feeds) const {
  const auto here = std::ranges::count_if(
    std::views::iota(std::size_t{0}, devices.size()),
    [at = where()](std::size_t d) { return at.is_here(d); });
  return actors::check_feeds(feeds, feeds_needed, program->main(),
                             static_cast<std::size_t>(here), feeds_a_share());
}

feed_map executor::impl::own_share(const feed_map& batch) const {
  if (!feeds_a_share())
    return batch;
  const auto samples =
    actors::check_feeds(batch, feeds_needed, program->main(), devices.size());
  const auto shards =
    actors::split_batch(samples, devices.size(), next_step, options.seed);
  return actors::select_samples(batch, feeds_needed, program->main(), shards,
                                where());
}

actors::placement executor::impl::where() const {
  if (!options.nodes)
    return {};
  return {options.nodes->process_of_device, options.nodes->process};
}

executor::impl::~impl() {
  if (!actors)
    return;
  failures->fail_from(0, error(errc::cancelled, "the executor is destroyed"));
  while (!in_flight.empty()) {
    actors::serving_thread serving{*workers};
    collect_oldest(serving);
    in_flight.pop_front();
  }
  server.reset();
  if (others)
    others->leave(next_step);
  others.reset();
  traces->end();
  actors->retire();
  settle();
  captures.reset();
  actors.reset();
}

void executor::impl::settle() {
  while (!actors->idle()) {
    actors::serving_thread{*workers}.serve_ready();
    std::this_thread::yield();
  }
}

bool executor::impl::wants(const std::vector<std::string>& wanted,
                           const std::string& name) const {
  return name == loss || std::ranges::count(wanted, name) > 0;
}

void executor::impl::prepare(const step_in_flight& s, const feed_map& feeds,
                             std::int64_t samples) {
  auto& state = state_of(s.id);
  state.started_ns = now_ns();
  state.shards.resize(devices.size());
  actors::split_batch(samples, s.id + random_offset, options.seed, where(),
                      state.shards);
  state.updates = periods.next_ends();
  state.samples.clear();
  for (auto& shard : state.shards) {
    shard.begins_update = periods.next_begins();
    shard.ends_update = state.updates;
    state.samples.push_back(shard.shard_samples);
  }
  state.losses.assign(gathers_losses ? devices.size() : 0,
                      std::numeric_limits<double>::quiet_NaN());
  state.wanted.clear();
  for (auto& f : actors->tasks().fetches())
    state.wanted.push_back(wants(s.wanted, f.name));
  state.fetched.assign(actors->tasks().fetches().size(), tensor{});
  if (options.hooks.dry_run)
    feeding->drop();
  else
    feeding->copy(feeds, state, s.id);
}

void executor::impl::admit(step_in_flight& s, actors::serving_thread& serving,
                           then next, actors::captured_steps::way how,
                           bool is_alone) {
  auto& state = state_of(s.id);
  const auto oldest =
    std::ranges::find(in_flight, false, &step_in_flight::collected);
  failures->admit(s.id, oldest->id, s.id < actors->steps_without_past());
  if (periods.is_spoiled())
    failures->fail_from(s.id, actors::step_failures::behind_a_failure());
  periods.admitted();
  trace->record_if_wanted(event_kind::step_begin, no_handle, s.id);
  feeding->set();
  workers->begin_step();
  if (next == then::waits)
    serving.sit();
  s.is_launched = how == actors::captured_steps::way::launched
                  && (!is_alone || captures->look_at_parameters());
  if (s.is_launched)
    captures->launch(state);
  else
    actors->start(state);
}

void executor::impl::step_failed(void* owner, step_state& step) {
  auto& self = *static_cast<impl*>(owner);
  self.failures->fail_behind(step.id);
  self.failures->stop_waiting(step.id, step.reason());
}

void executor::impl::step_ended(void* owner, step_state& step) {
  auto& self = *static_cast<impl*>(owner);
  if (self.captures && self.captures->is_recording()) {
    step.under_way.store(false, std::memory_order_relaxed);
    self.workers->end_step();
    self.captures->step_recorded();
    self.workers->queue().wake_borrowers();
    return;
  }
  step.ended_ns = now_ns();
  self.trace->record_if_wanted(event_kind::step_end, no_handle, step.id,
                               step.failed.load(std::memory_order_relaxed));
  self.traces->step_ended(step.id, step.started_ns, step.ended_ns);
  self.actors->context().last_step.store(
    step.id.load(std::memory_order_relaxed), std::memory_order_relaxed);
  step.under_way.store(false, std::memory_order_relaxed);
  if (step.failed.load(std::memory_order_relaxed))
    self.failures->fail_behind(step.id);
  if (self.others)
    self.tell_others(step);
  if (step.delivers)
    self.deliver(*step.delivers, step);
  self.workers->end_step();
  self.ended.fetch_add(1, std::memory_order_release);
  self.ended.notify_all();
  self.workers->queue().wake_borrowers();
}

void executor::impl::tell_others(const step_state& step) {
  if (!step.failed.load(std::memory_order_relaxed))
    return others->step_ended(step.id, nullptr);
  const auto reason = step.reason();
  others->step_ended(step.id, &reason);
}

/// The ranks of this process, if there are others; null otherwise.
actors::collective_ranks* executor::impl::ranks_of_others() const {
  return others ? others->ranks() : nullptr;
}

void executor::impl::collect(step_in_flight& s,
                             actors::serving_thread& serving) {
  // Steps end in order, because the end of a step waits for the end of the
  // previous step.
  serving.serve_until(
    [&] { return ended.load(std::memory_order_acquire) > s.id; });
  for (auto count = ended.load(std::memory_order_acquire); count <= s.id;
       count = ended.load(std::memory_order_acquire))
    ended.wait(count, std::memory_order_acquire);
  auto& state = state_of(s.id);
  s.collected = true;
  if (!s.is_async)
    take_result(s, state, values);
  if (s.failure)
    others ? periods.spoil() : periods.begin_anew();
  else if (!s.is_launched) // in a failed step most ops do nothing
    actors->took(state);
  if (s.failure && captures)
    captures->step_failed();
}

void executor::impl::take_result(step_in_flight& s, step_state& state,
                                 std::vector<actors::fetched_value>& taken) {
  s.failure = state.take_error();
  taken.clear();
  for (std::size_t i = 0; i < state.fetched.size(); ++i) {
    auto& from = actors->tasks().fetches()[i];
    if (state.fetched[i])
      trace->record_if_wanted(event_kind::fetch, from.op, s.id,
                              state.fetched[i].bytes());
    taken.push_back({from.name, from.device, std::move(state.fetched[i])});
  }
  try {
    actors::gather({s.id, state.samples, state.losses}, loss, taken, s.wanted,
                   s.result);
  } catch (const std::bad_alloc&) {
    s.failure = error(errc::out_of_memory, "no memory for the step's result",
                      {.step = s.id});
  }
  taken.clear();
  s.result.updates = state.updates;
  s.result.ms = static_cast<double>(state.ended_ns - state.started_ns) / 1e6;
}

// On the thread that ends the step. The executor's own thread looks at `s` only
// after `ended` has counted the step.
void executor::impl::deliver(step_in_flight& s, step_state& state) noexcept {
  s.is_delivered.store(true, std::memory_order_release);
  try {
    std::vector<actors::fetched_value> taken;
    take_result(s, state, taken);
  } catch (const std::bad_alloc&) {
    s.failure = error(errc::out_of_memory, "no memory for the step's result",
                      {.step = s.id});
  }
  try {
    step_outcome outcome{{}, s.failure};
    if (!s.failure)
      outcome.result = std::move(s.result);
    s.done(std::move(outcome));
  } catch (...) { // of the application's function
  }
  s.result = {};
  s.done = nullptr;
}

void executor::impl::drop_delivered(actors::serving_thread& serving) {
  while (
    !in_flight.empty() && in_flight.front().is_async
    && (in_flight.front().collected
        || in_flight.front().is_delivered.load(std::memory_order_acquire))) {
    if (!in_flight.front().collected)
      collect(in_flight.front(), serving);
    spare.splice(spare.begin(), in_flight, in_flight.begin());
  }
}

void executor::impl::collect_oldest(actors::serving_thread& serving) {
  for (auto& s : in_flight)
    if (!s.collected) {
      collect(s, serving);
      return;
    }
}

executor::executor(std::shared_ptr<const graph::program> main,
                   executor_options options)
  : impl_(std::make_unique<impl>(std::move(main), std::move(options))) {
  if (impl_->options.attach)
    impl_->attached = impl_->options.attach(*this);
}

executor::executor(const graph::program& main, executor_options options)
  : executor(std::make_shared<const graph::program>(main), std::move(options)) {
}

executor::~executor() {
  impl_->attached.reset(); // it may use the executor until then
}

step_id executor::impl::submit(const feed_map& feeds,
                               std::span<const std::string> fetches,
                               actors::serving_thread& serving, then next,
                               std::function<void(step_outcome)> done) {
  if (const auto reason = actors->context().failed_for_good())
    throw *reason;
  failures->require_can_run(next_step);
  require_values();
  for (auto& name : fetches)
    if (!wants(options.fetches, name))
      throw error(errc::not_found, "not among the fetches of this executor",
                  {.variable = name});
  const auto samples = check(feeds);
  // A persistable variable has a single place, which running steps may read.
  const auto apart = std::ranges::any_of(feeds, [&](const auto& feed) {
    return actors::feeds_persistable(program->main(), feed.first);
  });
  using way = actors::captured_steps::way;
  auto how = captures ? captures->choose(feeds, fetches) : way::by_actors;
  const auto changes = captures && captures->is_change(how);
  const auto most = apart || changes ? 1 : options.steps_in_flight;
  // A step that failed and was collected does not hold up later ones.
  drop_delivered(serving);
  const auto running = [](const step_in_flight& s) { return !s.collected; };
  while (std::count_if(in_flight.begin(), in_flight.end(), running)
         >= static_cast<long>(most))
    collect_oldest(serving);
  drop_delivered(serving);
  const auto is_alone = std::ranges::none_of(in_flight, running);
  if (changes) {
    settle();
    captures->change_to(how);
  }
  if (!pace.wait_for_step())
    throw error(errc::cancelled, "stopped on request");
  if (done && !workers->own_policy() && !server)
    server.emplace(*workers, ended);
  if (spare.empty())
    spare.emplace_back();
  auto& s = spare.front();
  s.id = next_step;
  s.collected = false;
  s.failure.reset();
  s.wanted.assign(fetches.begin(), fetches.end());
  prepare(s, feeds, samples);
  s.is_async = static_cast<bool>(done);
  s.is_delivered.store(false, std::memory_order_relaxed);
  s.done = std::move(done);
  if (how == way::recorded)
    how = record(s, serving, next);
  state_of(s.id).delivers = s.is_async ? &s : nullptr;
  ++next_step;
  in_flight.splice(in_flight.end(), spare, spare.begin());
  admit(s, serving, next, how, is_alone);
  if (server && s.is_async)
    server->serve_until(s.id + 1);
  return s.id;
}

void executor::impl::wait(step_id step, step_result& result,
                          actors::serving_thread& serving) {
  while (!in_flight.empty() && in_flight.front().is_async
         && in_flight.front().id < step) {
    if (!in_flight.front().collected)
      collect_oldest(serving);
    drop_delivered(serving);
  }
  if (in_flight.empty() || in_flight.front().id != step
      || in_flight.front().is_async)
    throw error(errc::invalid_argument,
                "step " + std::to_string(step)
                  + " is not the oldest that was submitted");
  if (!in_flight.front().collected)
    collect_oldest(serving);
  auto& oldest = in_flight.front();
  spare.splice(spare.begin(), in_flight, in_flight.begin());
  if (oldest.failure)
    throw *oldest.failure;
  std::swap(result, oldest.result);
}

/// A call that only one thread may make at a time.
one_at_a_time::call executor::impl::enter() {
  return {use, "the executor"};
}

/// The same, to begin a step.
one_at_a_time::call executor::impl::enter_step() {
  // A kernel that waits would keep a worker from what it waits for.
  if (actors::running_jobs::are_of(workers->system()))
    throw error(errc::invalid_argument,
                "an executor cannot run steps in a kernel of its own actor "
                "system");
  return enter();
}

bool executor::impl::is_running() const {
  return std::ranges::any_of(in_flight, [](const step_in_flight& s) {
    return !s.collected
           && !(s.is_async && s.is_delivered.load(std::memory_order_acquire));
  });
}

void executor::impl::require_no_step() const {
  if (is_running())
    throw error(errc::invalid_argument,
                "steps are running that use the parameters: wait for them "
                "first");
}

step_result executor::run(const feed_map& feeds,
                          std::span<const std::string> fetches) {
  const auto here = impl_->enter_step();
  actors::serving_thread serving{*impl_->workers};
  step_result result;
  const auto step = impl_->submit(feeds, fetches, serving, impl::then::waits);
  impl_->wait(step, result, serving);
  return result;
}

step_id executor::submit(const feed_map& feeds,
                         std::span<const std::string> fetches) {
  const auto here = impl_->enter_step();
  actors::serving_thread serving{*impl_->workers};
  return impl_->submit(feeds, fetches, serving, impl::then::returns);
}

void executor::run_async(const feed_map& feeds,
                         std::span<const std::string> fetches,
                         std::function<void(step_outcome)> done) {
  if (!done)
    throw error(errc::invalid_argument, "no function to call after the step");
  const auto here = impl_->enter_step();
  actors::serving_thread serving{*impl_->workers};
  impl_->submit(feeds, fetches, serving, impl::then::returns, std::move(done));
}

std::future<step_result>
executor::run_async(const feed_map& feeds,
                    std::span<const std::string> fetches) {
  auto promised = std::make_shared<std::promise<step_result>>();
  auto result = promised->get_future();
  run_async(feeds, fetches, [promised](step_outcome outcome) {
    if (outcome.failure)
      promised->set_exception(std::make_exception_ptr(*outcome.failure));
    else
      promised->set_value(std::move(outcome.result));
  });
  return result;
}

step_result executor::wait(step_id step) {
  step_result result;
  wait(step, result);
  return result;
}

void executor::wait(step_id step, step_result& result) {
  const auto here = impl_->enter();
  actors::serving_thread serving{*impl_->workers};
  impl_->wait(step, result, serving);
}

feed_map executor::own_share(const feed_map& batch) const {
  return impl_->own_share(batch);
}

void executor::update_in_next_step() {
  impl_->periods.end_with_next();
}

void executor::continue_from(std::uint64_t number) {
  const auto here = impl_->enter();
  impl_->require_no_step();
  impl_->random_offset = number - impl_->next_step;
  impl_->periods.begin_anew();
}

void executor::cancel() noexcept {
  impl_->failures->fail_from(0, error(errc::cancelled, "stopped on request"));
  impl_->pace.interrupt();
}

bool executor::is_running() const {
  return impl_->is_running();
}

void executor::impl::synchronize_parameters() {
  require_no_step();
  replicas().update_scope();
  if (auto* ranks = ranks_of_others())
    actors::gather_state(ssa, where(), *parameters, *ranks);
}

void executor::synchronize_parameters() {
  const auto here = impl_->enter();
  impl_->synchronize_parameters();
}

void executor::save(const std::filesystem::path& file) {
  const auto here = impl_->enter();
  impl_->synchronize_parameters();
  if (impl_->where().this_process == 0)
    graph::save_parameters(*impl_->program, *impl_->parameters, file);
}

void executor::load(const std::filesystem::path& path) {
  const auto here = impl_->enter();
  impl_->require_no_step();
  arena memory{make_host_memory_source()}; // its blocks outlive it
  scope read;
  graph::load_parameters(*impl_->program, path, read, memory);
  impl_->replicas().replace(read);
  impl_->discards_seen = impl_->parameters->discards();
  impl_->periods.begin_anew();
}

void executor::require_same_replicas() {
  const auto here = impl_->enter();
  impl_->require_no_step();
  actors::require_same_replicas(impl_->ssa, impl_->where(), *impl_->parameters,
                                impl_->ranks_of_others());
}

} // namespace troupe
