// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace troupe::apps {

/// Turns Ctrl-C (SIGINT) and SIGTERM into a flag that a long loop looks at
/// between steps, for as long as the object lives. A second signal ends the
/// process as usual.
///
/// Thread rule: one object at a time.
class stop_request {
public:
  stop_request();
  ~stop_request();
  stop_request(const stop_request&) = delete;
  stop_request& operator=(const stop_request&) = delete;

  bool stopped() const noexcept;
};

} // namespace troupe::apps
