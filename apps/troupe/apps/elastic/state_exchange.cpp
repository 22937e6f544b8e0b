// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/state_exchange.hpp>

#include <troupe/apps/elastic/epoch_group.hpp>
#include <troupe/base/error.hpp>
#include <troupe/comm/word_sum.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
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

class state_exchange {
public:
  state_exchange(rank_part& part, scope& parameters, const rank_state& own)
    : part_(part), parameters_(parameters), own_(own), group_(part) {}

  rank_state run() {
    const auto steps = steps_of_all();
    const auto most = std::ranges::max_element(steps);
    if (std::ranges::min(steps) == *most)
      return own_;
    root_ = static_cast<std::size_t>(most - steps.begin());
    is_behind_ = own_.position.steps < *most;
    const auto header = exchange_header();
    std::istringstream lines{header.lines};
    std::string last_line, name;
    std::getline(lines, last_line);
    while (std::getline(lines, name))
      exchange_value(name);
    if (is_behind_)
      parameters_.drop_replicas(); // the executor makes new ones
    return {header.position, last_line.empty() ? "" : last_line + '\n'};
  }

private:
  bool is_root() const { return part_.rank() == root_; }

  std::vector<std::uint64_t> steps_of_all() {
    std::vector<std::uint64_t> steps(part_.size());
    steps[part_.rank()] = own_.position.steps;
    variable words;
    words.set(comm::to_summand(steps, memory_));
    group_.call(comm::collective_kind::all_reduce, 0,
                {"steps", &words, &words});
    comm::read_sum(words.as_tensor(), steps);
    return steps;
  }

  void broadcast(std::string_view name, variable& value) {
    group_.call(
      comm::collective_kind::broadcast, root_,
      {name, is_root() ? &value : nullptr, is_behind_ ? &value : nullptr});
  }

  state_header exchange_header() {
    state_header header{own_.position, is_root() ? lines() : ""};
    variable bytes;
    if (is_root())
      bytes.set(header.bytes(memory_));
    // All ranks need the names, because all take part in what follows.
    group_.call(comm::collective_kind::broadcast, root_,
                {"header", is_root() ? &bytes : nullptr, &bytes});
    return state_header::read(bytes.as_tensor());
  }

  std::string lines() const {
    auto all = own_.last_line.empty() ? "\n" : own_.last_line;
    for (auto& name : parameters_.names())
      if (auto* held = parameters_.find(name);
          held->is_tensor() && held->as_tensor())
        all += name + '\n';
    return all;
  }

  void exchange_value(const std::string& name) {
    variable value;
    if (is_root())
      value.set(parameters_.var(name).as_tensor());
    broadcast(name, value);
    if (is_behind_) // the group's memory goes with the group
      parameters_.var(name).set(clone(value.as_tensor(), memory_));
  }

  rank_part& part_;
  scope& parameters_;
  rank_state own_;
  arena memory_{make_host_memory_source()}; // its blocks outlive it
  epoch_group group_;
  std::size_t root_ = 0;
  bool is_behind_ = false;
};

} // namespace

rank_state exchange_state(rank_part& part, scope& parameters,
                          const rank_state& own) {
  if (!part.has_others())
    return own;
  return state_exchange{part, parameters, own}.run();
}

} // namespace troupe::apps
