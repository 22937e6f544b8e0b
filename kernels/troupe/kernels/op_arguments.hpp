// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

class variable;

/// A slot of an op with the names of its variables.
struct op_slot {
  std::string name;
  std::vector<std::string> arguments;
  friend bool operator==(const op_slot&, const op_slot&) = default;
};

/// One argument of an op: variable `var` in slot `slot` ("X", "Filter").
struct op_argument {
  std::string_view slot;
  std::string_view name; ///< the variable's name, for errors
  variable* var;         ///< null: the program names no variable here
};

/// The inputs or the outputs of an op. Slots and names belong to the op's
/// description, which all its runs share. Only the variables differ from run to
/// run, so they are kept apart: a pointer per argument, slot by slot.
///
/// A reference type: slots and variables must outlive it. It is made for every
/// run of an op, so the constructor does not touch the description. Any thread.
class op_arguments {
public:
  /// No arguments.
  op_arguments() noexcept;
  /// @param variables one per name in `slots`, in the same order
  op_arguments(const std::vector<op_slot>& slots,
               variable* const* variables) noexcept
    : slots_(&slots), variables_(variables) {}

  /// The slots with the names of their arguments.
  const std::vector<op_slot>& slots() const noexcept { return *slots_; }
  /// Number of arguments, including absent ones.
  std::size_t size() const noexcept;
  /// The variables of all slots; null where an argument is absent.
  std::span<variable* const> variables() const noexcept {
    return {variables_, size()};
  }
  /// The variables of a slot; none if there is no such slot.
  std::span<variable* const> in(std::string_view slot) const noexcept;
  /// The name of argument `index` of a slot, which must exist.
  std::string_view name(std::string_view slot, std::size_t index) const;

  /// Calls `visit(op_slot, variables of the slot)` for each slot in order.
  template <class Visit>
  void for_each_slot(Visit visit) const {
    auto* first = variables_;
    for (const auto& slot : *slots_) {
      visit(slot, std::span{first, slot.arguments.size()});
      first += slot.arguments.size();
    }
  }
  /// Calls `visit(op_argument)` for each argument in order.
  template <class Visit>
  void for_each(Visit visit) const {
    for_each_slot([&](const op_slot& slot, auto variables) {
      for (std::size_t i = 0; i < variables.size(); ++i)
        visit(op_argument{slot.name, slot.arguments[i], variables[i]});
    });
  }

private:
  const std::vector<op_slot>* slots_;
  variable* const* variables_ = nullptr;
};

/// Arguments that are put together by hand. Thread rule: one thread.
class argument_list {
public:
  argument_list() = default;
  /// Arguments of the same slot must be consecutive.
  argument_list(std::initializer_list<op_argument> all);

  /// Adds an argument behind all others.
  void add(const op_argument& argument);

  ///@{
  /// Valid until the next `add`.
  op_arguments view() const noexcept { return {slots_, variables_.data()}; }
  operator op_arguments() const noexcept { return view(); }
  ///@}

private:
  std::vector<op_slot> slots_;
  std::vector<variable*> variables_;
};

} // namespace troupe
