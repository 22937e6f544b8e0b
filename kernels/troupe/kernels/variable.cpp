// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/variable.hpp>

namespace troupe {

namespace {

[[noreturn]] void wrong_content(const char* wanted, std::size_t held) {
  static constexpr const char* contents[] = {
    "no value", "a tensor", "selected rows", "a tensor array", "step scopes"};
  throw error(errc::kernel_failure, std::string("the variable holds ")
                                      + contents[held] + " instead of "
                                      + wanted);
}

} // namespace

variable::variable(const variable& other)
  : content_(other.has_value() ? std::make_unique<content>(*other.content_)
                               : nullptr),
    held_(other.held_) {}

template <class T>
T& variable::held(const char* wanted) const {
  auto* value = content_ ? std::get_if<T>(content_.get()) : nullptr;
  if (!value)
    wrong_content(wanted, held_);
  return *value;
}

template <class T>
void variable::hold(T value) {
  if (content_)
    *content_ = std::move(value);
  else
    content_ = std::make_unique<content>(std::move(value));
  held_ = static_cast<std::uint8_t>(content_->index());
}

const tensor& variable::as_tensor() const {
  return held<tensor>("a tensor");
}

tensor& variable::as_tensor() {
  return held<tensor>("a tensor");
}

const selected_rows& variable::as_rows() const {
  return held<selected_rows>("selected rows");
}

selected_rows& variable::as_rows() {
  return held<selected_rows>("selected rows");
}

const tensor_array& variable::as_array() const {
  return held<tensor_array>("a tensor array");
}

tensor_array& variable::as_array() {
  return held<tensor_array>("a tensor array");
}

const step_scopes& variable::as_scopes() const {
  return held<step_scopes>("step scopes");
}

step_scopes& variable::as_scopes() {
  return held<step_scopes>("step scopes");
}

void variable::set(tensor value) {
  hold(std::move(value));
}

void variable::set(selected_rows value) {
  hold(std::move(value));
}

void variable::set(tensor_array value) {
  hold(std::move(value));
}

void variable::set(step_scopes value) {
  hold(std::move(value));
}

void variable::clear() noexcept {
  if (has_value())
    *content_ = std::monostate{};
  held_ = 0;
}

} // namespace troupe
