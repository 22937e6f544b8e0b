// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::dashboard {

/// What somebody may do.
enum class right : std::uint8_t {
  none,
  view,    ///< look at the run
  control, ///< look at it, and pause it
};

/// Who may look at a run, and who may control it. Two links lead in, one to
/// view and one to control, each once: its first user gets a cookie instead.
/// Programs that look show the secret of a file; those that control open the
/// link, as browsers do. The secret of the file leads to no right to control.
///
/// Secrets have 128 bits from the system's generator, and are compared in
/// constant time: how long a refusal takes tells nothing about them.
///
/// Thread rule: one thread at a time.
class web_access {
public:
  /// Without a file: new links and new cookies, known to this object alone.
  web_access();
  /// New links. The cookie to view is derived from the secret of the file, so a
  /// browser may still look at a run that starts again on the same port. It may
  /// control the run only if it opens the new link.
  ///
  /// The file has one line of 32 to 256 letters, digits and `-._~+/=`. It is
  /// made with a new secret if it is missing, for its owner alone. Throws
  /// error(io_failure) if it cannot be read or made, error(bad_file) for other
  /// contents, error(invalid_argument) if it is another user's or others may
  /// read it.
  explicit web_access(const std::string& token_file);

  /// True if programs can show a secret.
  bool has_token_file() const noexcept { return !file_secret_.empty(); }

  ///@{
  /// The token of a link, 32 hexadecimal digits. Empty once it has been used.
  const std::string& view_token() const noexcept { return view_token_; }
  const std::string& control_token() const noexcept { return control_token_; }
  ///@}

  /// Uses up the token of a link. right::none if it is wrong or has been used.
  right redeem(std::string_view token);
  /// The value of the cookie that proves a right.
  const std::string& cookie_of(right which) const noexcept;
  /// What a cookie of that value proves. A cookie to control is the one to view
  /// with a secret of this object behind it: after the run has started again,
  /// it proves the right to view.
  right right_of_cookie(std::string_view value) const noexcept;
  /// What a program that shows this secret may do: look, if it is the file's.
  right right_of_bearer(std::string_view secret) const noexcept;

private:
  std::string file_secret_; ///< empty: there is no file
  std::string view_token_, control_token_;
  std::string view_cookie_, control_cookie_;
};

/// True if the texts are equal. The time that this takes depends on their
/// lengths alone.
bool equal_in_constant_time(std::string_view one,
                            std::string_view other) noexcept;

} // namespace troupe::dashboard
