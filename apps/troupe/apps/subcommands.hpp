// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::apps {

/// Runs a subcommand and returns the exit code. May throw.
using action = std::function<int()>;

/// Each adds a subcommand that sets `chosen` if it is on the command line.
void add_train(CLI::App& app, action& chosen);
void add_eval(CLI::App& app, action& chosen);
void add_graph(CLI::App& app, action& chosen);
void add_inspect(CLI::App& app, action& chosen);
void add_doctor(CLI::App& app, action& chosen);
void add_bench(CLI::App& app, action& chosen);
void add_trace(CLI::App& app, action& chosen);
void add_dashboard(CLI::App& app, action& chosen);
/// @param command the words after "--"
void add_launch(CLI::App& app, action& chosen,
                const std::vector<std::string>& command);
void add_launch_rank(CLI::App& app, action& chosen);
void add_launch_host(CLI::App& app, action& chosen);
void add_launch_address(CLI::App& app, action& chosen);
void add_credentials(CLI::App& app, action& chosen);

} // namespace troupe::apps
