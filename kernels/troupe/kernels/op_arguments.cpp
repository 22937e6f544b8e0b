// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/op_arguments.hpp>

#include <algorithm>

namespace troupe {

namespace {

const std::vector<op_slot> no_slots;

} // namespace

op_arguments::op_arguments() noexcept : slots_(&no_slots) {}

std::size_t op_arguments::size() const noexcept {
  std::size_t count = 0;
  for (const auto& slot : *slots_)
    count += slot.arguments.size();
  return count;
}

std::span<variable* const>
op_arguments::in(std::string_view slot) const noexcept {
  auto* first = variables_;
  for (const auto& s : *slots_) {
    if (s.name == slot)
      return {first, s.arguments.size()};
    first += s.arguments.size();
  }
  return {};
}

std::string_view op_arguments::name(std::string_view slot,
                                    std::size_t index) const {
  const auto found = std::ranges::find(*slots_, slot, &op_slot::name);
  return found->arguments[index];
}

argument_list::argument_list(std::initializer_list<op_argument> all) {
  for (const auto& argument : all)
    add(argument);
}

void argument_list::add(const op_argument& argument) {
  if (slots_.empty() || slots_.back().name != argument.slot)
    slots_.push_back({std::string(argument.slot), {}});
  slots_.back().arguments.emplace_back(argument.name);
  variables_.push_back(argument.var);
}

} // namespace troupe
