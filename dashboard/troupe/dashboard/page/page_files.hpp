// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace troupe::dashboard {

/// A file of the page, which is part of the program.
struct page_file {
  std::string_view path; ///< "/app.js"
  std::string_view type; ///< "text/javascript; charset=utf-8"
  std::string_view content;
};

/// The file of a path; "/" is index.html, and
/// "/favicon.ico" is favicon.svg. Null if there is none.
const page_file* find_page_file(std::string_view path) noexcept;

} // namespace troupe::dashboard
