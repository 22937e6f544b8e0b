// SPDX-License-Identifier: Apache-2.0
#pragma once

// Troupe's errors as answers of actors.

#include <troupe/actors/caf/caf.hpp>
#include <troupe/base/error.hpp>

#include <optional>
#include <string>

namespace troupe {

/// The category of CAF errors that Troupe's actors answer with. Their code is
/// that of `errc` plus one, because 0 means success. Their context is one line,
/// a string.
inline constexpr auto error_category = actors::answer_category;

/// The error as an answer.
caf::error to_caf(const error& failure);
/// The code of an answer of Troupe's category; nothing for another one.
std::optional<errc> code_of(const caf::error& answer);
/// The line of such an answer; of another one what CAF says of it.
std::string text_of(const caf::error& answer);

namespace actors {

/// Delivers what `make` returns, or the error that it throws.
template <class Promise, class Make>
void deliver_to(Promise& promise, Make make) {
  try {
    promise.deliver(make());
  } catch (const error& failure) {
    promise.deliver(to_caf(failure));
  }
}

} // namespace actors

} // namespace troupe
