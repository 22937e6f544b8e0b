// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::apps {

/// What a chosen subcommand does; returns the exit code, may throw.
using action = std::function<int()>;

/// Each adds one subcommand, which sets `chosen` when it is on the command
/// line.
void add_train(CLI::App& app, action& chosen);
void add_eval(CLI::App& app, action& chosen);
void add_graph(CLI::App& app, action& chosen);
void add_inspect(CLI::App& app, action& chosen);
void add_doctor(CLI::App& app, action& chosen);
void add_bench(CLI::App& app, action& chosen);

} // namespace troupe::apps
