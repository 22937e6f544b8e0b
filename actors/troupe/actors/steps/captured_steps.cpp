// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/steps/captured_steps.hpp>

#include <troupe/actors/actor_graph.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/base/recorder.hpp>

#include <algorithm>
#include <exception>
#include <iterator>
#include <set>
#include <utility>

namespace troupe::actors {

namespace {

/// So many steps of a form run by actors first: libraries make their plans, and
/// a single batch of another size makes no recording.
constexpr std::uint32_t steps_before = 2;

bool is_plain(const variable& v) {
  return v.is_tensor() && v.as_tensor().is_plain() && !v.as_tensor().levels();
}

/// True if the variable's value can be copied to where `to` lies.
bool fits(const variable& v, const tensor& to) {
  return is_plain(v) && v.as_tensor().dims() == to.dims()
         && v.as_tensor().type() == to.type();
}

} // namespace

// -- the launch of a step -----------------------------------------------------

/// One step's launch. The actor of the compute stream runs it.
class captured_steps::launched_step final : public work, private ready_op {
public:
  launched_step(captured_steps& of, step_state& step) : of_(of), step_(step) {}
  void submit() { of_.origin_.submit(*this); }

  void execute(stream& on) override;
  void completed(std::exception_ptr failure) noexcept override;

private:
  /// Returns the memory of feeds to what launches next.
  struct feeds_in_place {
    ~feeds_in_place() {
      for (auto& fed : of.feeds_)
        of.place_of(fed, step)->clear();
    }
    captured_steps& of;
    step_state& step;
  };

  void run(worker& on) override;

  captured_steps& of_;
  step_state& step_;
};

void captured_steps::launched_step::run(worker&) {
  auto& on = of_.origin_.device_stream();
  if (const auto& fed = step_.fed.front(); fed.position != 0)
    on.wait(*fed.on, fed.position);
  try {
    // The step may be over, and this be used for another one, on return.
    on.launch(*this, {.give_position = false, .op_type = "captured step"});
  } catch (...) {
    completed(std::current_exception());
  }
}

void captured_steps::launched_step::execute(stream& on) {
  const feeds_in_place given{of_, step_};
  if (step_.failed.load(std::memory_order_relaxed))
    return;
  auto& recording = *of_.recording_;
  for (auto& fed : of_.feeds_) {
    step_recording::value_copy copy{of_.place_of(fed, step_)->as_tensor(),
                                    fed.value};
    if (copy.from.raw() != copy.to.raw())
      recording.copy(copy);
  }
  of_.copy_replaced();
  recording.launch(step_.shards.front().step);
  for (std::size_t i = 0; i < of_.sources_.size(); ++i)
    if (of_.sources_[i])
      step_.fetched[i] = of_.parts_.on->to_host(of_.sources_[i], of_.host_, on);
}

// The stream calls this in the order of launches, so steps end in order.
void captured_steps::launched_step::completed(
  std::exception_ptr failure) noexcept {
  auto& graph = of_.parts_.graph->context();
  if (failure)
    graph.fail(step_, failure);
  step_.is_launched.store(false, std::memory_order_relaxed);
  graph.step_ended(graph.owner, step_);
}

// -- what can be captured -----------------------------------------------------

std::string captured_steps::obstacle(const executor_options& options,
                                     const graph::ssa_graph& g) {
  const auto merges = [](const graph::op_handle& o) {
    return o.collective_index >= 0;
  };
  if (options.devices.size() > 1)
    return "only steps of one device are captured";
  if (options.accumulate > 1)
    return "gradients are added up over several steps";
  if (!g.delayed_inputs.empty())
    return "ops read values of earlier steps";
  if (!options.outside_ops.empty())
    return "ops are computed outside of the graph";
  if (options.nodes || !options.hooks.places.empty() || !g.transfers.empty()
      || std::ranges::any_of(g.ops, merges))
    return "values come from other places";
  if (options.hooks.form != edge_form::counter
      || options.hooks.message_edges > 0)
    return "edges are CAF messages";
  return {};
}

bool captured_steps::form::is_of(const feed_map& fed,
                                 std::span<const std::string> fetched) const {
  return std::ranges::equal(feeds, fed,
                            [](const feed& known, const auto& entry) {
                              return known.name == entry.first
                                     && known.dims == entry.second.dims()
                                     && known.type == entry.second.type();
                            })
         && std::ranges::equal(fetches, fetched);
}

void captured_steps::form::set(const feed_map& fed,
                               std::span<const std::string> fetched) {
  feeds.clear();
  for (auto& [name, value] : fed)
    feeds.push_back({name, value.dims(), value.type()});
  fetches.assign(fetched.begin(), fetched.end());
}

captured_steps::captured_steps(parts p)
  : parts_(std::move(p)), origin_(parts_.graph->compute_stream()) {
  for (auto& step : parts_.graph->context().steps)
    steps_.push_back(std::make_unique<launched_step>(*this, *step));
  std::set<std::string_view> known;
  for (auto& v : parts_.graph->context().graph->vars)
    if (v.persistable && known.insert(v.name).second)
      parameters_.push_back(
        {std::string{v.name}, &parts_.parameters->var(v.name), {}});
}

captured_steps::~captured_steps() = default;

// -- the way of a step --------------------------------------------------------

captured_steps::way
captured_steps::choose(const feed_map& feeds,
                       std::span<const std::string> fetches) {
  // Somebody wants to see the ops.
  if (parts_.trace->wants(trace_level::ops))
    return way::by_actors;
  const auto has_levels = [](const auto& fed) {
    return fed.second.levels() != nullptr;
  };
  if (std::ranges::any_of(feeds, has_levels))
    return way::by_actors;
  if (recording_ && !is_stale_ && form_.is_of(feeds, fetches)) {
    same_ = 0;
    return way::launched;
  }
  if (!reason_.empty())
    return way::by_actors;
  if (!latest_.is_of(feeds, fetches)) {
    latest_.set(feeds, fetches);
    same_ = 0;
  }
  return same_++ < steps_before ? way::by_actors : way::recorded;
}

void captured_steps::change_to(way next) {
  if (is_stale_ || next == way::recorded)
    drop();
  present_ = next == way::recorded ? way::launched : next;
}

void captured_steps::drop() noexcept {
  recording_.reset();
  feeds_.clear();
  sources_.clear();
  replaced_.clear();
  for (auto& p : parameters_)
    p.value = {};
  is_stale_ = false;
}

void captured_steps::step_failed() noexcept {
  is_stale_ = recording_ != nullptr;
  same_ = 0;
}

bool captured_steps::refuse(std::string why) {
  drop();
  present_ = way::by_actors;
  reason_ = std::move(why);
  return false;
}

// -- recording ----------------------------------------------------------------

variable* captured_steps::place_of(const fed_value& fed,
                                   const step_state& step) const {
  return &parts_.graph->tasks().find_fed(fed.name, 0)->value.at(step.slot);
}

void captured_steps::keep_parameters() {
  for (auto& p : parameters_) {
    const auto& held = *p.place;
    if (!is_plain(held))
      throw error(errc::unsupported_op,
                  held.has_value() ? "the variable holds no plain tensor"
                                   : "the variable has no value yet",
                  {.variable = p.name});
    p.value = held.as_tensor();
  }
}

void captured_steps::keep_feeds(const step_state& step) {
  const auto is_parameter = [this](const std::string& name) {
    return std::ranges::count(parameters_, name, &parameter::name) > 0;
  };
  for (auto& name : parts_.feeds)
    if (parts_.graph->tasks().find_fed(name, 0) && !is_parameter(name)) {
      fed_value fed{name, {}};
      if (auto* place = place_of(fed, step); place->is_tensor()) {
        fed.value = place->as_tensor();
        feeds_.push_back(std::move(fed));
      }
    }
}

bool captured_steps::begin(const step_state& step) {
  try {
    keep_parameters();
    keep_feeds(step);
    const auto streams = parts_.graph->device_streams();
    recording_ = parts_.on->record(streams);
  } catch (const error& e) {
    return refuse(e.what());
  }
  ++recordings_;
  records_.store(true, std::memory_order_relaxed);
  return true;
}

void captured_steps::step_recorded() noexcept {
  records_.store(false, std::memory_order_release);
  records_.notify_all();
}

/// Parameters whose ops have put them elsewhere. The scope has them where the
/// recording reads them, so it must write them there in the end.
std::vector<step_recording::value_copy> captured_steps::put_back_parameters() {
  std::vector<step_recording::value_copy> moved;
  std::optional<error> failure;
  for (auto& p : parameters_) {
    if (!fits(*p.place, p.value))
      failure = error(errc::unsupported_op,
                      "the step changes the shape of the variable",
                      {.variable = p.name});
    else if (const auto& now = p.place->as_tensor(); now.raw() != p.value.raw())
      moved.push_back({now, p.value});
    p.place->set(p.value);
  }
  if (failure)
    throw *failure;
  return moved;
}

void captured_steps::find_sources(step_state& step) {
  for (auto& fetched : step.fetched)
    sources_.push_back(fetched ? recording_->source_of(fetched) : tensor{});
}

bool captured_steps::end(step_state& step) {
  auto failure = step.take_error();
  try {
    auto moved = put_back_parameters();
    if (!failure) {
      recording_->finish(moved);
      find_sources(step);
    }
  } catch (const error& e) {
    if (!failure)
      failure = e;
  }
  step.fetched.assign(step.fetched.size(), tensor{});
  for (auto& fed : feeds_)
    place_of(fed, step)->set(fed.value);
  if (failure && failure->code() == errc::cancelled) {
    drop();
    present_ = way::by_actors;
    throw *failure;
  }
  if (failure)
    return refuse(failure->what());
  form_ = latest_;
  return true;
}

// -- launching ----------------------------------------------------------------

bool captured_steps::look_at_parameters() {
  replaced_.clear();
  for (auto& p : parameters_) {
    const auto& held = *p.place;
    if (!fits(held, p.value)) {
      drop();
      same_ = 1; // this step
      present_ = way::by_actors;
      return false;
    }
    if (held.as_tensor().raw() != p.value.raw())
      replaced_.push_back(&p);
  }
  return true;
}

/// Called from work of the compute stream. What is copied stays in the scope
/// until its copy is queued.
void captured_steps::copy_replaced() {
  for (auto* p : replaced_) {
    step_recording::value_copy copy{p->place->as_tensor(), p->value};
    recording_->copy(copy);
    p->place->set(p->value);
  }
  replaced_.clear();
}

void captured_steps::launch(step_state& step) {
  ++launched_;
  step.is_launched.store(true, std::memory_order_relaxed);
  steps_[step.slot]->submit();
}

} // namespace troupe::actors
