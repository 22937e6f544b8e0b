// SPDX-License-Identifier: Apache-2.0

// What the processes of a host tell each other about a call.
#include <troupe/comm/engine/exchange.hpp>

#include <troupe/comm/local/reduce_kernels.hpp>
#include <troupe/comm/tensor_copy.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::comm {

namespace {

buffer copied(std::span<const std::int64_t> numbers, arena& memory) {
  if (numbers.empty())
    return {};
  auto made = memory.allocate(numbers.size_bytes());
  std::memcpy(made.data(), numbers.data(), numbers.size_bytes());
  return made;
}

} // namespace

/// Copies values to memory that neighbours can read, unless they are there.
void exchange::make_readable(std::span<own_values> own) {
  own_numbers_.clear();
  for (auto& o : own) {
    for (auto& value : *o.given)
      if (value && value.bytes() > 0
          && !options_.nearby->is_shared(value.raw(), value.bytes()))
        value = copied_to(memory_, value);
    auto& numbers = own_numbers_.emplace_back();
    for (auto& rows : *o.rows)
      numbers.push_back(copied(rows, memory_));
  }
}

/// Calls `use(what, rank, value)` for each place that a process tells, in the
/// order in which it does.
template <class Use>
void exchange::for_each_place(const letters_plan& plan, std::size_t process,
                              Use use) const {
  for (std::size_t i = 0; i < plan.values().size(); ++i) {
    const auto& v = plan.values()[i];
    if (!v.has_rows)
      use(place_kind::result, 0, i);
    for_each_rank(v.givers & options_.ranks_of_process[process],
                  [&](std::size_t r) {
                    use(place_kind::value, r, i);
                    if (v.has_rows)
                      use(place_kind::numbers, r, i);
                  });
  }
}

/// All processes of the host tell each other where their values and results
/// lie.
void exchange::tell_places(const letters_plan& plan, std::span<own_values> own,
                           const std::vector<merged_value>& results) {
  const auto count = nearby().size();
  places_.assign(count, {});
  near_values_.assign(plan.size() * plan.values().size(), nullptr);
  near_numbers_.assign(near_values_.size(), nullptr);
  near_results_.assign(count * plan.values().size(), nullptr);
  auto& told = places_[place_of_[self()]];
  for_each_place(
    plan, self(), [&](place_kind what, std::size_t rank, std::size_t i) {
      const std::byte* data = results[i].dense.raw();
      for (std::size_t k = 0; k < own.size() && what != place_kind::result; ++k)
        if (own[k].rank == rank)
          data = what == place_kind::value ? (*own[k].given)[i].raw()
                                           : own_numbers_[k][i].data();
      // An empty value may lie anywhere: nobody reads it.
      told.push_back(data && options_.nearby->is_shared(data, 1)
                       ? options_.nearby->place_of(data)
                       : 0);
    });
  for_each_neighbour([&](std::size_t n, std::size_t p) {
    std::size_t places = 0;
    for_each_place(plan, p,
                   [&](place_kind, std::size_t, std::size_t) { ++places; });
    places_[n].resize(places);
    results_.push_back(send(p, places_tag, std::as_bytes(std::span{told})));
    results_.push_back(
      receive(p, places_tag, std::as_writable_bytes(std::span{places_[n]})));
  });
  wait_all(results_);
  for_each_neighbour([&](std::size_t n, std::size_t) { read_places(plan, n); });
}

void exchange::read_places(const letters_plan& plan, std::size_t neighbour) {
  const auto values = plan.values().size();
  std::size_t next = 0;
  for_each_place(
    plan, nearby()[neighbour],
    [&](place_kind what, std::size_t rank, std::size_t i) {
      const auto place = places_[neighbour][next++];
      const auto givers = plan.values()[i].givers;
      const auto& said =
        plan.value(what == place_kind::result ? first_of(givers) : rank, i);
      const auto bytes =
        what == place_kind::numbers ? bytes_of_numbers(said) : said.bytes;
      const auto* data = options_.nearby->at(neighbour, place, bytes);
      switch (what) {
      case place_kind::result:
        near_results_[neighbour * values + i] = data;
        break;
      case place_kind::value: near_values_[rank * values + i] = data; break;
      case place_kind::numbers: near_numbers_[rank * values + i] = data; break;
      }
    });
}

/// Returns when no neighbour reads the memory of this process any more.
void exchange::wait_for_neighbours() {
  static constexpr std::byte signal{};
  signals_.resize(nearby().size());
  for_each_neighbour([&](std::size_t n, std::size_t p) {
    results_.push_back(send(p, left_tag, {&signal, 1}));
    results_.push_back(receive(p, left_tag, {&signals_[n], 1}));
  });
  wait_all(results_);
}

/// True if the process is the agent of its host in a piece of the step.
bool exchange::acts(const step& s, std::size_t process) const {
  bool any = false;
  for_each_range(s, [&](const range& r) {
    any |= agent(*s.job, host_of_[process], r) == process;
  });
  return any;
}

/// Follows a step until this process has its result.
void exchange::finish(const letters_plan& plan, coming_step& c) {
  static constexpr std::byte signal{};
  const auto& job = *c.of.job;
  wait_all(c.of.in);
  if (wants(plan, job, own_host()) && acts(c.of, self()))
    for_each_neighbour([&](std::size_t, std::size_t p) {
      if (has_taker(plan, job.value, p))
        results_.push_back(send(p, ready_tag, {&signal, 1}));
    });
  wait_all(c.signals);
  if (has_taker(plan, job.value, self()))
    copy_from_neighbours(plan, c.of);
}

/// Begins to wait for the neighbours that get sums for this process.
void exchange::await_neighbours(const letters_plan& plan, coming_step& c) {
  c.room.resize(nearby().size());
  if (!wants(plan, *c.of.job, own_host())
      || !has_taker(plan, c.of.job->value, self()))
    return;
  for_each_neighbour([&](std::size_t n, std::size_t p) {
    if (acts(c.of, p))
      c.signals.push_back(receive(p, ready_tag, {&c.room[n], 1}));
  });
}

/// Copies the pieces of the step for which a neighbour is the agent. A value
/// that a rank of this host alone gives is copied from there.
void exchange::copy_from_neighbours(const letters_plan& plan,
                                    const step& s) const {
  const auto& job = *s.job;
  const auto element = size_of(job.type);
  const bool is_here = has_it(job, own_host());
  if (is_here && job.sources[0].is_own)
    return;
  for_each_range(s, [&](const range& r) {
    const auto by = agent(job, own_host(), r);
    const auto* from =
      is_here ? job.sources[0].data[0]
              : near_results_[place_of_[by] * plan.values().size() + job.value];
    if (by != self() || (is_here && !is_needed(plan, job, r)))
      local::copy(from + r.first * element, {job.result + r.first * element}, 0,
                  r.count * element);
  });
  options_.nearby->require_intact();
}

} // namespace troupe::comm
