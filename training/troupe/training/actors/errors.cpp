// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/actors/errors.hpp>

#include <cstdint>

namespace troupe {

caf::error to_caf(const error& failure) {
  const auto code = static_cast<std::uint8_t>(failure.code());
  return actors::make_answer(static_cast<std::uint8_t>(code + 1),
                             failure.what());
}

std::optional<errc> code_of(const caf::error& answer) {
  if (!answer || answer.category() != error_category)
    return std::nullopt;
  return static_cast<errc>(answer.code() - 1);
}

std::string text_of(const caf::error& answer) {
  if (code_of(answer) && answer.context().match_elements<std::string>())
    return answer.context().get_as<std::string>(0);
  return caf::to_string(answer);
}

} // namespace troupe
