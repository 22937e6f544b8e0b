// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::dashboard {
class board;
} // namespace troupe::dashboard

namespace troupe::apps {

/// Whether and where a command shows a dashboard.
struct dashboard_options {
  std::string address; ///< empty: no dashboard
  std::string token_file;
  std::string certificate;
  std::string key;

  bool is_wanted() const noexcept { return !address.empty(); }
};

/// Adds `--dashboard [ADDR]`, and the options below.
void add_dashboard_option(CLI::App& command, dashboard_options& options);
/// Adds `--dashboard-token`, `--dashboard-certificate` and `--dashboard-key`.
/// @param needs the option without which they mean nothing; empty: none
void add_dashboard_access(CLI::App& command, dashboard_options& options,
                          const std::string& needs);
/// The address if `--dashboard` is given without one.
inline constexpr const char* default_dashboard_address = "127.0.0.1:0";

/// Throws usage_error for options that a board refuses, such as an address that
/// is none. Reads no file.
/// @param option by which the command gets the address, for messages
void check_dashboard(const dashboard_options& options,
                     const std::string& option);
/// Listens. Throws what `dashboard::board` throws.
std::unique_ptr<dashboard::board> make_board(const dashboard_options& options);
/// The same host with port 0: the system chooses one.
std::string at_free_port(const std::string& address);

} // namespace troupe::apps
