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

template <class T, class Value>
auto& content(Value& value, const char* wanted) {
  auto* held = std::get_if<T>(&value);
  if (!held)
    wrong_content(wanted, value.index());
  return *held;
}

} // namespace

const tensor& variable::as_tensor() const {
  return content<tensor>(value_, "a tensor");
}

tensor& variable::as_tensor() {
  return content<tensor>(value_, "a tensor");
}

const selected_rows& variable::as_rows() const {
  return content<selected_rows>(value_, "selected rows");
}

selected_rows& variable::as_rows() {
  return content<selected_rows>(value_, "selected rows");
}

const tensor_array& variable::as_array() const {
  return content<tensor_array>(value_, "a tensor array");
}

tensor_array& variable::as_array() {
  return content<tensor_array>(value_, "a tensor array");
}

const step_scopes& variable::as_scopes() const {
  return content<step_scopes>(value_, "step scopes");
}

step_scopes& variable::as_scopes() {
  return content<step_scopes>(value_, "step scopes");
}

void variable::clear() noexcept {
  value_ = std::monostate{};
}

} // namespace troupe
