// SPDX-License-Identifier: Apache-2.0

// How selected rows are merged: all row numbers go to all hosts, to check them;
// values go to those that want the result.
#include <troupe/comm/engine/exchange.hpp>

#include <troupe/kernels/memory/memory_limit.hpp>

#include <algorithm>
#include <string>

namespace troupe::comm {

namespace {

/// Selected rows are sent in parts of at most so many bytes.
constexpr std::size_t rows_part_bytes = std::size_t{16} << 20;

} // namespace

std::span<const std::int64_t> exchange::numbers_in(const std::byte* data,
                                                   const letter_value& v) {
  return {reinterpret_cast<const std::int64_t*>(data),
          static_cast<std::size_t>(v.row_count)};
}

/// Throws if another process has more row numbers than this one could: memory
/// is taken for them, or they are read, by this number.
std::size_t exchange::bytes_of_numbers(const letter_value& v) {
  if (v.row_count > host_memory_limit() / sizeof(std::int64_t))
    throw error(errc::out_of_memory, "selected rows of another process have "
                                       + std::to_string(v.row_count)
                                       + " row numbers");
  return static_cast<std::size_t>(v.row_count) * sizeof(std::int64_t);
}

std::optional<error> exchange::merge_rows(const letters_plan& plan,
                                          std::size_t i,
                                          std::span<own_values> own,
                                          merged_value& result) {
  const auto givers = plan.values()[i].givers;
  auto& all = rows_.emplace_back(rows_here(plan, i, own));
  send_rows(plan, i, all);
  if (options_.nearby)
    show_rows(plan, i, all);
  std::vector<std::optional<local::rows_view>> views(plan.size());
  for_each_rank(givers, [&](std::size_t r) {
    const auto& said = plan.value(r, i);
    const auto& here = all[r];
    // Row numbers are checked also where nobody needs the values.
    const auto* data = said.axes == 0 ? nullptr
                       : here.values
                         ? here.values
                         : reinterpret_cast<const std::byte*>(&said);
    views[r] = local::rows_view{here.numbers, said.height, data, said.extents(),
                                said.type};
  });
  std::optional<error> why;
  try {
    local::check_rows(views);
  } catch (const error& e) {
    why = e.with_context({.variable = std::string{plan.name(i)}});
  }
  if (!why && has_taker(plan, i, self()))
    result.rows = local::merge_rows(views, memory_);
  if (options_.nearby)
    options_.nearby->require_intact();
  return why;
}

/// The rows of ranks of this host, and memory for those that this process
/// receives for it.
exchange::rows_of_ranks exchange::rows_here(const letters_plan& plan,
                                            std::size_t i,
                                            std::span<own_values> own) {
  const auto values = plan.values().size();
  rows_of_ranks all(plan.size());
  for_each_rank(plan.values()[i].givers, [&](std::size_t r) {
    const auto& said = plan.value(r, i);
    auto& here = all[r];
    const auto at = std::ranges::find(own, r, &own_values::rank);
    if (at != own.end()) {
      here.numbers = (*at->rows)[i];
      here.values = (*at->given)[i].raw();
    } else if (host_of_[process_of(r)] == own_host()) {
      here.numbers = numbers_in(near_numbers_[r * values + i], said);
      here.values = said.axes > 0 ? near_values_[r * values + i] : nullptr;
    } else if (agent_of_rows(own_host(), r) == self()) {
      here.memory_of_numbers = memory_.allocate(bytes_of_numbers(said));
      here.numbers = numbers_in(here.memory_of_numbers.data(), said);
      if (said.axes > 0 && has_taker_on(plan, i, own_host())) {
        here.memory_of_values =
          tensor::make(memory_, said.extents(), said.type);
        here.values = here.memory_of_values.raw();
      }
    }
  });
  return all;
}

/// Each rank's rows go to one process of each other host.
void exchange::send_rows(const letters_plan& plan, std::size_t i,
                         rows_of_ranks& all) {
  for_each_rank(plan.values()[i].givers, [&](std::size_t r) {
    auto& here = all[r];
    const auto& said = plan.value(r, i);
    const auto from = process_of(r);
    if (here.memory_of_numbers || here.memory_of_values) {
      receive_parts(from,
                    {here.memory_of_numbers.data(), bytes_of_numbers(said)});
      receive_parts(
        from, {here.memory_of_values.raw(), here.memory_of_values.bytes()});
    }
    for (std::size_t h = 0; from == self() && h < options_.hosts.size(); ++h) {
      if (h == own_host())
        continue;
      const auto to = agent_of_rows(h, r);
      send_parts(to, std::as_bytes(here.numbers));
      if (said.axes > 0 && has_taker_on(plan, i, h))
        send_parts(to, {here.values, static_cast<std::size_t>(said.bytes)});
    }
  });
  wait_all(results_);
}

void exchange::send_parts(std::size_t to, std::span<const std::byte> bytes) {
  for (; !bytes.empty();
       bytes = bytes.subspan(std::min(bytes.size(), rows_part_bytes)))
    results_.push_back(
      send(to, rows_tag, bytes.first(std::min(bytes.size(), rows_part_bytes))));
}

void exchange::receive_parts(std::size_t from, std::span<std::byte> bytes) {
  for (; !bytes.empty();
       bytes = bytes.subspan(std::min(bytes.size(), rows_part_bytes)))
    results_.push_back(receive(
      from, rows_tag, bytes.first(std::min(bytes.size(), rows_part_bytes))));
}

} // namespace troupe::comm
