// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/state_exchange.hpp>

#include <troupe/apps/elastic/epoch_group.hpp>
#include <troupe/comm/word_sum.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace troupe::apps {

namespace {

/// What comes before the values: the position, then lines: that of metrics, and
/// the names of variables.
struct state_header {
  run_position position;
  std::string lines;

  tensor bytes(arena& memory) const {
    auto all = tensor::make(
      memory, {static_cast<std::int64_t>(sizeof position + lines.size())},
      dtype::uint8);
    std::memcpy(all.raw(), &position, sizeof position);
    std::memcpy(all.raw() + sizeof position, lines.data(), lines.size());
    return all;
  }
  static state_header read(const tensor& from) {
    state_header found;
    std::memcpy(&found.position, from.raw(), sizeof found.position);
    found.lines.assign(reinterpret_cast<const char*>(from.raw())
                         + sizeof found.position,
                       from.bytes() - sizeof found.position);
    return found;
  }
};

bool has_value(const scope& parameters, const std::string& name) {
  const auto* held = parameters.find(name);
  return held && held->is_tensor() && held->as_tensor();
}

class state_exchange {
public:
  state_exchange(rank_part& part, scope& parameters, const rank_state& own,
                 const std::vector<std::string>& divided)
    : part_(part), parameters_(parameters), own_(own), divided_(divided),
      group_(part) {}

  std::optional<rank_state> run() {
    auto steps = std::vector<std::uint64_t>(part_.size());
    steps[part_.rank()] = own_.position.steps;
    add_up(steps);
    const auto most = std::ranges::max_element(steps);
    first_ = static_cast<std::size_t>(most - steps.begin());
    is_behind_ = own_.position.steps < *most;
    const auto homes = homes_of_divided();
    if (!homes)
      return std::nullopt;
    for (std::size_t i = 0; i < divided_.size(); ++i)
      if ((*homes)[i]) // else all ranks have it
        exchange_value(divided_[i], *(*homes)[i],
                       is_behind_ || !has_value(parameters_, divided_[i]));
    return std::ranges::min(steps) == *most ? own_ : state_of_first();
  }

private:
  bool is_first() const { return part_.rank() == first_; }

  /// Each rank gets the sums over all ranks.
  void add_up(std::vector<std::uint64_t>& numbers) {
    variable words;
    words.set(comm::to_summand(numbers, memory_));
    group_.call(comm::collective_kind::all_reduce, 0,
                {"numbers", &words, &words});
    comm::read_sum(words.as_tensor(), numbers);
  }

  /// For each divided variable: the first rank that has it, and nothing if all
  /// have it. Nothing at all if one is lost.
  std::optional<std::vector<std::optional<std::size_t>>> homes_of_divided() {
    std::vector<std::optional<std::size_t>> homes(divided_.size());
    if (divided_.empty())
      return homes;
    std::vector<std::uint64_t> has(divided_.size() * part_.size());
    for (std::size_t i = 0; !is_behind_ && i < divided_.size(); ++i)
      has[i * part_.size() + part_.rank()] =
        has_value(parameters_, divided_[i]) ? 1 : 0;
    add_up(has);
    for (std::size_t i = 0; i < divided_.size(); ++i) {
      const auto begin =
        has.begin() + static_cast<std::ptrdiff_t>(i * part_.size());
      const auto end = begin + static_cast<std::ptrdiff_t>(part_.size());
      const auto home = std::find(begin, end, 1);
      if (home == end)
        return std::nullopt;
      if (std::find(begin, end, 0) != end)
        homes[i] = static_cast<std::size_t>(home - begin);
    }
    return homes;
  }

  /// Those that are behind get all that the first rank with the most steps has.
  rank_state state_of_first() {
    const auto header = exchange_header();
    std::istringstream lines{header.lines};
    std::string last_line, name;
    std::getline(lines, last_line);
    while (std::getline(lines, name))
      exchange_value(name, first_, is_behind_);
    if (is_behind_)
      parameters_.drop_replicas(); // the executor makes new ones
    return {header.position, last_line.empty() ? "" : last_line + '\n'};
  }

  state_header exchange_header() {
    state_header header{own_.position, is_first() ? lines() : ""};
    variable bytes;
    if (is_first())
      bytes.set(header.bytes(memory_));
    // All ranks need the names, because all take part in what follows.
    group_.call(comm::collective_kind::broadcast, first_,
                {"header", is_first() ? &bytes : nullptr, &bytes});
    return state_header::read(bytes.as_tensor());
  }

  std::string lines() const {
    auto all = own_.last_line.empty() ? "\n" : own_.last_line;
    for (auto& name : parameters_.names())
      if (has_value(parameters_, name)
          && std::ranges::find(divided_, name) == divided_.end())
        all += name + '\n';
    return all;
  }

  /// @param home the rank that sends it
  void exchange_value(const std::string& name, std::size_t home, bool takes) {
    variable value;
    const bool sends = part_.rank() == home;
    if (sends)
      value.set(parameters_.var(name).as_tensor());
    group_.call(comm::collective_kind::broadcast, home,
                {name, sends ? &value : nullptr, takes ? &value : nullptr});
    if (takes) // the group's memory goes with the group
      parameters_.var(name).set(clone(value.as_tensor(), memory_));
  }

  rank_part& part_;
  scope& parameters_;
  rank_state own_;
  const std::vector<std::string>& divided_;
  arena memory_{make_host_memory_source()}; // its blocks outlive it
  epoch_group group_;
  std::size_t first_ = 0; // of those with the most steps
  bool is_behind_ = false;
};

} // namespace

std::optional<rank_state>
exchange_state(rank_part& part, scope& parameters, const rank_state& own,
               const std::vector<std::string>& divided) {
  if (part.has_others())
    return state_exchange{part, parameters, own, divided}.run();
  const bool has_all = std::ranges::all_of(
    divided, [&](auto& name) { return has_value(parameters, name); });
  return has_all ? std::optional{own} : std::nullopt;
}

} // namespace troupe::apps
