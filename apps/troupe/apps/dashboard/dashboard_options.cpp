// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/dashboard/dashboard_options.hpp>

#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/error.hpp>
#include <troupe/dashboard/board.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace troupe::apps {

namespace {

dashboard::board_options board_options_of(const dashboard_options& options) {
  return {options.address, options.token_file, options.certificate,
          options.key};
}

} // namespace

void add_dashboard_access(CLI::App& command, dashboard_options& options,
                          const std::string& needs) {
  auto* token =
    command
      .add_option("--dashboard-token", options.token_file,
                  "file with a secret with which scripts and Prometheus may "
                  "look; made if it is missing")
      ->check(not_empty());
  auto* certificate =
    command
      .add_option("--dashboard-certificate", options.certificate,
                  "PEM file: the dashboard speaks TLS, as it "
                  "must off loopback")
      ->check(not_empty());
  auto* key = command
                .add_option("--dashboard-key", options.key,
                            "PEM file with the certificate's key")
                ->check(not_empty());
  certificate->needs(key);
  key->needs(certificate);
  if (!needs.empty())
    for (auto* option : {token, certificate, key})
      option->needs(command.get_option(needs));
}

void add_dashboard_option(CLI::App& command, dashboard_options& options) {
  command
    .add_option_function<std::string>(
      "--dashboard",
      [&options](const std::string& address) {
        options.address = address.empty() ? default_dashboard_address : address;
      },
      "show a live dashboard in the browser, at HOST:PORT (default: a free "
      "port of 127.0.0.1); prints a link")
    ->expected(0, 1)
    ->type_name("ADDR");
  add_dashboard_access(command, options, "--dashboard");
}

void check_dashboard(const dashboard_options& options,
                     const std::string& option) {
  if (!options.is_wanted())
    return;
  try {
    dashboard::require_safe(board_options_of(options));
  } catch (const error& failure) {
    if (failure.code() == errc::invalid_argument)
      throw usage_error(option + ": " + failure.message());
    throw;
  }
}

std::unique_ptr<dashboard::board> make_board(const dashboard_options& options) {
  return std::make_unique<dashboard::board>(board_options_of(options));
}

std::string at_free_port(const std::string& address) {
  const auto colon = address.rfind(':');
  return (colon == address.npos ? "" : address.substr(0, colon + 1)) + "0";
}

} // namespace troupe::apps
