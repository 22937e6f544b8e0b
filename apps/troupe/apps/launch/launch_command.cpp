// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/job.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/subcommands.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/comm/letter.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

namespace troupe::apps {

namespace {

constexpr double longest_grace = 24 * 3600; // seconds

struct launch_options {
  std::size_t nodes = 0;
  std::string logs;
  double grace = 5; ///< seconds
  bool no_bind = false;
  std::string elastic; ///< MIN:MAX
};

void add_launch_options(CLI::App& command, launch_options& options) {
  command
    .add_option("--nodes", options.nodes,
                "how many processes to start: the ranks of the job")
    ->check(positive());
  command
    .add_option("--elastic", options.elastic,
                "MIN:MAX ranks: start a rank that was killed again, and go on "
                "while MIN live (--nodes: MAX)")
    ->check(not_empty());
  command
    .add_option("--logs", options.logs,
                "folder for the ranks' output, rank-0.log, rank-1.log, ...")
    ->check(not_empty());
  command
    .add_option("--grace", options.grace,
                "seconds that the other ranks have after one has failed, and "
                "again after SIGTERM")
    ->check(not_negative(longest_grace))
    ->capture_default_str();
  command.add_flag("--no-bind", options.no_bind,
                   "let every rank use all cores; by default, the ranks divide "
                   "them if there are enough");
}

/// Words of the command that stand before the "--" are a slip.
void refuse_words(const std::vector<std::string>& words) {
  if (words.empty())
    return;
  const auto first = quoted_name(words.front());
  throw usage_error(words.front().starts_with('-')
                      ? "troupe launch does not take " + first
                          + " (see troupe launch --help)"
                      : "a -- is missing before the command " + first
                          + " (see troupe launch --help)");
}

/// The numbers of "MIN:MAX".
struct rank_range {
  std::size_t least = 0, most = 0;
};

rank_range parse_range(const std::string& text) {
  rank_range range;
  int used = 0;
  if (std::sscanf(text.c_str(), "%zu:%zu%n", &range.least, &range.most, &used)
        != 2
      || static_cast<std::size_t>(used) != text.size() || range.least == 0
      || range.most < range.least || text.find_first_of("+- ") != text.npos)
    throw usage_error(
      "--elastic: must be MIN:MAX, two numbers of ranks such as "
      "2:4, not '"
      + text + "'");
  return range;
}

/// Sets `nodes` of an elastic job. Returns its smallest number of ranks.
std::optional<std::size_t> apply_elastic(launch_options& options) {
  if (options.elastic.empty())
    return std::nullopt;
  const auto range = parse_range(options.elastic);
  if (options.nodes == 0)
    options.nodes = range.most;
  if (options.nodes < range.least || options.nodes > range.most)
    throw usage_error("--nodes: must be within --elastic " + options.elastic
                      + ", not " + std::to_string(options.nodes));
  return range.least;
}

void check_launch(const launch_options& options,
                  const std::vector<std::string>& command) {
  if (options.nodes == 0)
    throw usage_error("--nodes is required (see troupe launch --help)");
  if (options.nodes > comm::max_ranks)
    throw usage_error(
      "--nodes: must be at most " + std::to_string(comm::max_ranks) + ", not "
      + std::to_string(options.nodes)
      + ": a group of ranks that share memory cannot be larger");
  if (command.empty() || command.front().empty())
    throw usage_error("a command is missing: troupe launch --nodes N -- "
                      "COMMAND ARGS (see troupe launch --help)");
  if (const char* rank = std::getenv("TROUPE_RANK"); rank && *rank)
    throw usage_error("troupe launch was started by rank " + one_line(rank)
                      + " of another troupe launch (TROUPE_RANK is set)");
}

int run_launch(launch_options options,
               const std::vector<std::string>& command) {
  const auto least = apply_elastic(options);
  check_launch(options, command);
  const auto result =
    run_job({.ranks = options.nodes,
             .command = command,
             .logs = options.logs,
             .grace = std::chrono::milliseconds(
               static_cast<std::int64_t>(options.grace * 1000)),
             .binds = !options.no_bind,
             .least_ranks = least});
  if (!result.failure.empty())
    std::fprintf(stderr, "troupe: %s\n", one_line(result.failure).c_str());
  return result.code;
}

} // namespace

void add_launch(CLI::App& app, action& chosen,
                const std::vector<std::string>& command) {
  auto options = std::make_shared<launch_options>();
  auto& launch = *app.add_subcommand(
    "launch", "start a command as several processes on this host");
  add_launch_options(launch, *options);
  launch.footer("COMMAND and its arguments stand behind \"--\". Each process "
                "finds its place in the job\nin TROUPE_RANK, TROUPE_SIZE and "
                "other variables.\n\nExample:\n  troupe launch --nodes 2 -- "
                "troupe train digits --data data/digits");
  launch.allow_extras();
  launch.callback([&launch, options, command, &chosen] {
    refuse_words(launch.remaining());
    chosen = [options, command] { return run_launch(*options, command); };
  });
}

} // namespace troupe::apps
