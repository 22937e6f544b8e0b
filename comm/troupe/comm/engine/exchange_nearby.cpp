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

using kind = nearby_signals::kind;

buffer copied(std::span<const std::byte> bytes, arena& memory) {
  if (bytes.empty())
    return {};
  auto made = memory.allocate(bytes.size());
  std::memcpy(made.data(), bytes.data(), bytes.size());
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
      numbers.push_back(copied(std::as_bytes(std::span{rows}), memory_));
  }
}

/// True if the process receives the rank's rows for all processes of its host.
bool exchange::shows(std::size_t process, std::size_t rank) const noexcept {
  const auto host = host_of_[process];
  return host_of_[process_of(rank)] != host
         && agent_of_rows(host, rank) == process;
}

/// Calls `use(what, rank, value, word)` for each word of a process's list of
/// places.
template <class Use>
void exchange::for_each_place(const letters_plan& plan, std::size_t process,
                              Use use) const {
  std::size_t word = 0;
  for (std::size_t i = 0; i < plan.values().size(); ++i) {
    const auto& v = plan.values()[i];
    if (!v.has_rows)
      use(place_kind::result, 0, i, word++);
    for_each_rank(v.givers & options_.ranks_of_process[process],
                  [&](std::size_t r) {
                    use(place_kind::value, r, i, word++);
                    if (v.has_rows)
                      use(place_kind::numbers, r, i, word++);
                  });
    for_each_rank(v.has_rows ? v.givers : 0, [&](std::size_t r) {
      if (!shows(process, r))
        return;
      use(place_kind::shown_numbers, r, i, word++);
      use(place_kind::shown_values, r, i, word++);
    });
  }
}

/// All processes of the host tell each other where their values and results
/// lie.
void exchange::tell_places(const letters_plan& plan, std::span<own_values> own,
                           const std::vector<merged_value>& results) {
  std::vector<std::uint64_t> told;
  for_each_place(
    plan, self(),
    [&](place_kind what, std::size_t rank, std::size_t i, std::size_t) {
      const std::byte* data =
        what == place_kind::result ? results[i].dense.raw() : nullptr;
      for (std::size_t k = 0; k < own.size(); ++k)
        if (own[k].rank == rank && what == place_kind::value)
          data = (*own[k].given)[i].raw();
        else if (own[k].rank == rank && what == place_kind::numbers)
          data = own_numbers_[k][i].data();
      told.push_back(place_of(data));
    });
  own_places_ = copied(std::as_bytes(std::span{told}), memory_);
  signals_->tell_places(place_of(own_places_.data()));
  const auto count = nearby().size();
  places_.assign(count, nullptr);
  near_values_.assign(plan.size() * plan.values().size(), nullptr);
  near_numbers_.assign(near_values_.size(), nullptr);
  near_results_.assign(count * plan.values().size(), nullptr);
  for_each_neighbour([&](std::size_t n, std::size_t) {
    wait_for(n, kind::places, signals_->next(n, kind::places));
    read_places(plan, n);
  });
}

/// Of bytes that neighbours can read. An empty value may lie anywhere: nobody
/// reads it.
std::uint64_t exchange::place_of(const std::byte* data) const noexcept {
  return data && options_.nearby->is_shared(data, 1)
           ? options_.nearby->place_of(data)
           : 0;
}

void exchange::read_places(const letters_plan& plan, std::size_t neighbour) {
  const auto values = plan.values().size();
  std::size_t words = 0;
  for_each_place(
    plan, nearby()[neighbour],
    [&](place_kind, std::size_t, std::size_t, std::size_t) { ++words; });
  places_[neighbour] = options_.nearby->at(
    neighbour, signals_->places_of(neighbour), words * sizeof(std::uint64_t));
  for_each_place(
    plan, nearby()[neighbour],
    [&](place_kind what, std::size_t rank, std::size_t i, std::size_t word) {
      if (is_shown(what))
        return;
      const auto place = place_in_list(neighbour, word);
      const auto givers = plan.values()[i].givers;
      const auto& said =
        plan.value(what == place_kind::result ? first_of(givers) : rank, i);
      const auto bytes =
        what == place_kind::numbers ? bytes_of_numbers(said) : said.bytes;
      const auto* data = options_.nearby->at(neighbour, place, bytes);
      if (what == place_kind::result)
        near_results_[neighbour * values + i] = data;
      else
        (what == place_kind::value ? near_values_
                                   : near_numbers_)[rank * values + i] = data;
    });
}

/// The list may lie at any byte: its process is not trusted.
std::uint64_t exchange::place_in_list(std::size_t neighbour,
                                      std::size_t word) const {
  std::uint64_t place = 0;
  std::memcpy(&place, places_[neighbour] + word * sizeof place, sizeof place);
  return place;
}

/// Whoever has received rows of another host tells its neighbours where they
/// lie.
void exchange::show_rows(const letters_plan& plan, std::size_t i,
                         rows_of_ranks& all) {
  const auto for_each_shown = [&](std::size_t process, auto use) {
    for_each_place(
      plan, process,
      [&](place_kind what, std::size_t r, std::size_t value, std::size_t word) {
        if (value == i && is_shown(what))
          use(what, r, word);
      });
  };
  bool tells = false;
  for_each_shown(self(), [&](place_kind what, std::size_t r, std::size_t word) {
    const auto* data =
      what == place_kind::shown_values
        ? all[r].values
        : reinterpret_cast<const std::byte*>(all[r].numbers.data());
    const auto place = place_of(data);
    std::memcpy(own_places_.data() + word * sizeof place, &place, sizeof place);
    tells = true;
  });
  if (tells)
    signals_->tell(kind::rows);
  for_each_neighbour([&](std::size_t n, std::size_t p) {
    bool has_come = false;
    for_each_shown(p, [&](place_kind what, std::size_t r, std::size_t word) {
      if (!std::exchange(has_come, true))
        wait_for(n, kind::rows, signals_->next(n, kind::rows));
      const auto& said = plan.value(r, i);
      const auto place = place_in_list(n, word);
      if (what == place_kind::shown_numbers)
        all[r].numbers = numbers_in(
          options_.nearby->at(n, place, bytes_of_numbers(said)), said);
      else if (said.axes > 0 && has_taker_on(plan, i, own_host()))
        all[r].values = options_.nearby->at(n, place, said.bytes);
    });
  });
}

void exchange::wait_for(std::size_t neighbour, kind what,
                        std::uint64_t number) {
  note_wait(nearby()[neighbour], true);
  signals_->wait(neighbour, what, number);
  note_wait();
}

/// Returns when no neighbour reads the memory of this process any more.
void exchange::wait_for_neighbours() {
  signals_->tell(kind::left);
  for_each_neighbour([&](std::size_t n, std::size_t) {
    wait_for(n, kind::left, signals_->next(n, kind::left));
  });
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
  const auto& job = *c.of.job;
  wait_all(c.of.in);
  if (wants(plan, job, own_host()) && acts(c.of, self()))
    signals_->tell(kind::part);
  for (auto& s : c.signals)
    wait_for(s.of, kind::part, s.number);
  if (has_taker(plan, job.value, self()))
    copy_from_neighbours(plan, c.of);
}

/// Notes for which neighbours that get sums for this process it has to wait.
/// They tell all others, also those that do not.
void exchange::await_neighbours(const letters_plan& plan, coming_step& c) {
  const auto& job = *c.of.job;
  if (!wants(plan, job, own_host()))
    return;
  for_each_neighbour([&](std::size_t n, std::size_t p) {
    if (!acts(c.of, p))
      return;
    const auto number = signals_->next(n, kind::part);
    if (has_taker(plan, job.value, self()))
      c.signals.push_back({n, number});
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
