// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/kernel.hpp>

#include <algorithm>

namespace troupe {

namespace {

bool has(const op_arguments& all, std::string_view slot) noexcept {
  return std::ranges::any_of(all.in(slot), [](auto* var) { return var; });
}

bool has(const op_arguments& all, std::string_view slot,
         std::size_t index) noexcept {
  const auto found = all.in(slot);
  return index < found.size() && found[index];
}

std::string describe(std::string_view slot, std::size_t index) {
  return std::string(slot) + "[" + std::to_string(index) + "]";
}

[[noreturn]] void bad_argument(const op_arguments& all, std::string_view slot,
                               std::size_t index, const char* why) {
  throw error(errc::kernel_failure, "argument " + describe(slot, index) + why,
              {.variable = std::string(all.name(slot, index))});
}

variable& find(const op_arguments& all, std::string_view slot,
               std::size_t index) {
  const auto found = all.in(slot);
  if (index >= found.size())
    throw error(errc::kernel_failure,
                "argument " + describe(slot, index) + " is missing");
  if (!found[index])
    bad_argument(all, slot, index, " has no variable");
  return *found[index];
}

std::string_view name_of(const op_arguments& all, std::string_view slot,
                         std::size_t index) {
  find(all, slot, index); // throws if there is none
  return all.name(slot, index);
}

/// Makes a tensor; if there is no memory, the error names the variable.
tensor make_named(arena& memory, const shape& dims, dtype type,
                  std::string_view name) {
  try {
    return tensor::make(memory, dims, type);
  } catch (const error& e) {
    throw e.with_context({.variable = std::string(name)});
  }
}

tensor in_plain_layout(const tensor& value, std::string_view name, device& on,
                       stream* queue) {
  auto plain = make_named(on.memory(), value.dims(), value.type(), name);
  value.format()->to_plain(value, plain, queue);
  plain.set_levels(value.levels());
  return plain;
}

bool can_write_in_place(const variable& var, const shape& dims, dtype type) {
  if (!var.is_tensor())
    return false;
  auto& held = var.as_tensor();
  return held && held.is_plain() && held.type() == type && !held.is_shared()
         && held.numel() == dims.numel();
}

class function_kernel final : public kernel {
public:
  explicit function_kernel(kernel_function function) : run_(function) {}
  void run(kernel_context& ctx) override { run_(ctx); }

private:
  kernel_function run_;
};

} // namespace

bool kernel_context::has_input(std::string_view slot) const noexcept {
  return has(inputs_, slot);
}

bool kernel_context::has_output(std::string_view slot) const noexcept {
  return has(outputs_, slot);
}

bool kernel_context::has_input(std::string_view slot,
                               std::size_t index) const noexcept {
  return has(inputs_, slot, index);
}

bool kernel_context::has_output(std::string_view slot,
                                std::size_t index) const noexcept {
  return has(outputs_, slot, index);
}

std::size_t kernel_context::num_inputs(std::string_view slot) const noexcept {
  return inputs_.in(slot).size();
}

std::size_t kernel_context::num_outputs(std::string_view slot) const noexcept {
  return outputs_.in(slot).size();
}

tensor kernel_context::input(std::string_view slot, std::size_t index) const {
  const auto& var = input_variable(slot, index);
  if (!var.has_value())
    bad_argument(inputs_, slot, index, " holds no value");
  if (!var.is_tensor())
    bad_argument(inputs_, slot, index,
                 var.is_rows() ? " holds selected rows, expected a tensor"
                               : " holds no single tensor, expected a tensor");
  auto& value = var.as_tensor();
  return value.is_plain() ? value
                          : in_plain_layout(value, inputs_.name(slot, index),
                                            device_, stream_);
}

const variable& kernel_context::input_variable(std::string_view slot,
                                               std::size_t index) const {
  return find(inputs_, slot, index);
}

std::string_view kernel_context::input_name(std::string_view slot,
                                            std::size_t index) const {
  return name_of(inputs_, slot, index);
}

std::string_view kernel_context::output_name(std::string_view slot,
                                             std::size_t index) const {
  return name_of(outputs_, slot, index);
}

tensor kernel_context::output(std::string_view slot, const shape& dims,
                              dtype type, std::size_t index) const {
  auto& var = output_variable(slot, index);
  auto value =
    can_write_in_place(var, dims, type)
      ? var.as_tensor().reshaped(dims)
      : make_named(device_.memory(), dims, type, output_name(slot, index));
  value.set_levels(nullptr);
  var.set(value);
  return value;
}

variable& kernel_context::output_variable(std::string_view slot,
                                          std::size_t index) const {
  return find(outputs_, slot, index);
}

std::size_t kernel_context::workers() const noexcept {
  return stream_ && stream_->helpers()
           ? static_cast<std::size_t>(stream_->width())
           : 1;
}

void kernel_context::in_parts(std::size_t parts,
                              const part_function& part) const {
  run_parts(workers() > 1 ? stream_->helpers() : nullptr, parts, part);
}

tensor kernel_context::scratch(std::int64_t elements) const {
  return tensor::make(device_.memory(), {elements}, dtype::float32);
}

void kernel_table::add(std::string op_type, device_kind kind,
                       kernel_maker make) {
  entries_[{std::move(op_type), kind}] = {.make = std::move(make),
                                          .run = nullptr};
}

void kernel_table::add(std::string op_type, device_kind kind,
                       kernel_function function) {
  entries_[{std::move(op_type), kind}] = {.make = {}, .run = function};
}

void kernel_table::add(const kernel_table& others) {
  for (const auto& [key, code] : others.entries_)
    entries_[key] = code;
  for (const auto& [kind, rule] : others.rules_)
    rules_[kind] = rule;
}

void kernel_table::set_dtype_rule(device_kind kind, dtype_rule rule) {
  rules_[kind] = rule;
}

bool kernel_table::takes(std::string_view op_type, device_kind kind,
                         std::string_view slot, dtype type) const {
  const auto found = rules_.find(kind);
  return found == rules_.end() || found->second(op_type, slot, type);
}

bool kernel_table::has(std::string_view op_type, device_kind kind) const {
  return entries_.contains(std::pair{std::string(op_type), kind});
}

std::unique_ptr<kernel>
kernel_table::make(std::string_view op_type, device_kind kind,
                   const attribute_map& attributes) const {
  auto found = entries_.find(std::pair{std::string(op_type), kind});
  if (found == entries_.end())
    throw error(errc::unsupported_op,
                "no kernel for \"" + std::string(op_type) + "\" on "
                  + std::string(to_string(kind)),
                {.op_type = std::string(op_type)});
  auto& code = found->second;
  return code.make ? code.make(attributes)
                   : std::make_unique<function_kernel>(code.run);
}

std::vector<std::string> kernel_table::op_types(device_kind kind) const {
  std::vector<std::string> result;
  for (const auto& [key, code] : entries_)
    if (key.second == kind)
      result.push_back(key.first);
  return result;
}

kernel_table kernel_table::for_kind(device_kind kind) const {
  kernel_table made;
  for (const auto& [key, code] : entries_)
    made.entries_[{key.first, kind}] = code;
  return made;
}

} // namespace troupe
