// SPDX-License-Identifier: Apache-2.0
#include "apps/command_runner.hpp"

#include <support/files.hpp>

#include <doctest/doctest.h>

using namespace troupe::test;

namespace {

/// Valid command lines for all commands; a test makes them wrong by an option.
const std::vector<words> all_commands{
  {"train", "mlp"},          {"eval", "mlp", "--params", "p"},
  {"graph", "mlp"},          {"inspect", "mlp"},
  {"bench", "tasks"},        {"bench", "schedule", "mlp"},
  {"bench", "steps", "mlp"}, {"bench", "latency"},
  {"bench", "train", "mlp"}, {"bench", "inference", "mlp"},
  {"launch", "--nodes", "1"}};

/// The options of a command whose values have one of the types, according to
/// `--help`.
words options_with(const words& types, const words& command) {
  words found;
  for (const auto& line : lines_of(run_troupe(command + words{"--help"}).out))
    for (const auto& type : types)
      if (const auto end = line.find(" " + type, 2);
          line.starts_with("  --") && end == line.find(' ', 2))
        found.push_back(line.substr(2, end - 2));
  return found;
}

/// Calls `check(command, option)` for each option that takes a number. Returns
/// how many there are.
template <class Check>
std::size_t for_each_number_option(Check check) {
  std::size_t options = 0;
  for (const auto& command : all_commands)
    for (const auto& option : options_with({"INT", "UINT", "FLOAT"}, command)) {
      if (option == "--memory-limit") // a size, which has a rule of its own
        continue;
      CAPTURE(command);
      check(command, option);
      ++options;
    }
  return options;
}

} // namespace

TEST_SUITE("apps.usage") {
TEST_CASE("help names an example and leaves with 0") {
  for (const char* command : {"train", "eval", "graph", "inspect", "doctor"}) {
    CAPTURE(command);
    const auto result = run_troupe({command, "--help"});
    CHECK(result.code == 0);
    CHECK(contains(result.out, std::string("Example:\n  troupe ") + command));
    CHECK(contains(result.out, "--json"));
    CHECK(result.err.empty());
  }
  CHECK(contains(run_troupe({"inspect", "--help"}).out, "an .npz file\n"));
  CHECK(run_troupe({"--help"}).code == 0);
  CHECK(run_troupe({"--version"}).out.starts_with("troupe 0."));
}

TEST_CASE("a wrong command line leaves with 2 and one line") {
  const std::vector<std::string> train{"train", "mlp", "--synthetic"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), train.begin(), train.end());
    return run_troupe(more);
  };
  CHECK(fails_with(run_troupe({}), 2, {"--help"}));
  CHECK(fails_with(run_troupe({"fly"}), 2, {"--help"}));
  CHECK(fails_with(run_troupe({"train"}), 2, {"PROGRAM|NET"}));
  CHECK(fails_with(run_troupe({"train", "mlp"}), 2, {"--synthetic"}));
  CHECK(fails_with(with({"--no-such"}), 2, {"--no-such", "troupe train"}));
  CHECK(fails_with(with({"--steps", "0"}), 2, {"--steps"}));
  CHECK(fails_with(with({"--steps", "x"}), 2, {"--steps"}));
  CHECK(fails_with(with({"--steps", "1", "--epochs", "1"}), 2, {"--epochs"}));
  CHECK(fails_with(with({"--batch", "-1"}), 2, {"--batch"}));
  CHECK(fails_with(with({"--batch"}), 2, {"--batch"}));
  CHECK(fails_with(with({"--data", "x"}), 2, {"--synthetic"}));
  CHECK(fails_with(with({"--fetch", "x"}), 2, {"--fetch-out"}));
  CHECK(fails_with(with({"--strategy", "vote"}), 2, {"vote", "all_reduce"}));
  CHECK(fails_with(with({"--gradient-scale", "2"}), 2, {"coeff"}));
  CHECK(fails_with(with({"--devices", "tpu:1"}), 2, {"tpu"}));
  CHECK(fails_with(with({"--devices", "cpu:0"}), 2, {"cpu"}));
  CHECK(fails_with(with({"--sync", "never"}), 2, {"--sync", "event or block"}));
  CHECK(
    fails_with(run_troupe({"graph", "mlp", "--format", "png"}), 2, {"png"}));
  CHECK(fails_with(run_troupe({"eval", "mlp"}), 2, {"--params"}));
}

TEST_CASE("a wrong value of an option is answered with the option's name") {
  for (const words& command :
       {words{"train", "mlp", "--synthetic"},
        {"eval", "mlp", "--params", "p", "--data", "data/digits"},
        {"graph", "mlp"},
        {"bench", "train", "mlp"},
        {"bench", "schedule", "mlp"}}) {
    CHECK(fails_with(run_troupe(command + words{"--devices", "0"}), 2,
                     {"troupe: --devices: \"0\": unknown kind \"0\"; expected "
                      "cpu, cpu:N, sim:N"}));
    if (command.front() == "eval")
      continue;
    CHECK(fails_with(run_troupe(command + words{"--strategy", "vote"}), 2,
                     {"troupe: --strategy: unknown merge strategy \"vote\""}));
    CHECK(
      fails_with(run_troupe(command + words{"--gradient-scale", "2"}), 2,
                 {"troupe: --gradient-scale: unknown gradient scale \"2\""}));
  }
}

TEST_CASE("a number out of range is answered with its rule") {
  CHECK(fails_with(run_troupe({"train", "mlp", "--synthetic", "--steps", "-3"}),
                   2,
                   {"--steps: must be more than 0, not -3 (see troupe "
                    "train --help)"}));
  CHECK(fails_with(run_troupe({"bench", "tasks", "--grain", "-1"}), 2,
                   {"--grain: must not be negative, not -1 (see troupe bench "
                    "tasks --help)"}));
  CHECK(fails_with(run_troupe({"bench", "steps", "mlp", "--batch", "0"}), 2,
                   {"--batch: must be more than 0, not 0"}));
  CHECK(fails_with(
    run_troupe({"bench", "train", "mlp", "--in-flight", "4294967295"}), 2,
    {"--in-flight: must be from 1 to 1024, not 4294967295"}));
  for (const std::string threads : {"0", "-1", "4097", "100000"})
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"train", "mlp", "--synthetic"},
          {"eval", "mlp", "--params", "p"},
          {"graph", "mlp"},
          {"bench", "train", "mlp"},
          {"bench", "tasks"},
          {"bench", "schedule", "mlp"},
          {"bench", "steps", "mlp"}}) {
      auto words = command;
      words.insert(words.end(), {"--threads", threads});
      CHECK(fails_with(
        run_troupe(words), 2,
        {"--threads: must be from 1 to 4096, not " + threads + " (see"}));
    }
  CHECK(
    fails_with(run_troupe({"bench", "schedule", "mlp", "--delay-kind", "x"}), 2,
               {"--delay-kind: x not in {sleep,spin}"}));
  CHECK(
    fails_with(run_troupe({"bench", "schedule", "mlp", "--delay-kind", "spin"}),
               2, {"--delay-kind requires --delay"}));
}

TEST_CASE("a value of another type than its option's is told which it takes") {
  const auto options =
    for_each_number_option([](const words& command, const std::string& option) {
      CHECK(fails_with(run_troupe(command + words{option, "1x"}), 2,
                       {option + ": must be ", "number", "1x"}));
    });
  CHECK(options > 35);
  const auto result = run_troupe({"train", "mlp", "--threads", "1.5"});
  CHECK(result.err
        == "troupe: --threads: must be a whole number, not 1.5 (see troupe "
           "train --help)\n");
  CHECK(fails_with(run_troupe({"bench", "tasks", "--sample-ms", "x"}), 2,
                   {"--sample-ms: must be a number, not x (see"}));
}

TEST_CASE("a flag takes no value") {
  for (const auto& [command, flag] :
       {std::pair<words, std::string>{{"doctor"}, "--json"},
        {{"train", "mlp", "--synthetic"}, "--json"},
        {{"train", "mlp"}, "--dry-run"},
        {{"graph", "mlp"}, "--wiring"},
        {{"bench", "tasks"}, "--check"}})
    for (const std::string value : {"maybe", "false", "0", "2", "1x", "nan"}) {
      CAPTURE(flag);
      const auto result = run_troupe(command + words{flag + "=" + value});
      CHECK(
        fails_with(result, 2, {"troupe: " + flag + ": takes no value (see "}));
    }
}

TEST_CASE("an empty value is not taken for one that is not given") {
  std::size_t options = 0;
  for (const auto& command : all_commands)
    for (const auto& option :
         options_with({"TEXT", "INT", "UINT", "FLOAT"}, command)) {
      CAPTURE(command);
      CHECK(fails_with(run_troupe(command + words{option, ""}), 2,
                       {option + ": must "}));
      ++options;
    }
  CHECK(options > 80);
  for (const words& command :
       {words{"train", ""}, {"inspect", ""}, {"bench", "schedule", ""}})
    CHECK(fails_with(run_troupe(command), 2, {"PROGRAM|NET", "must not be"}));
}

TEST_CASE("a number that is none is called so") {
  const auto options =
    for_each_number_option([](const words& command, const std::string& option) {
      for (const std::string none : {"nan", "-NaN"})
        CHECK(fails_with(run_troupe(command + words{option, none}), 2,
                         {option + ": must be a number, not " + none}));
      for (const std::string far : {"inf", "-1e400"})
        CHECK(fails_with(run_troupe(command + words{option, far}), 2,
                         {option, far}));
    });
  CHECK(options > 35);
}

TEST_CASE("what could only be a slip is refused before anything runs") {
  const auto with = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"train", "mlp", "--synthetic"});
    return run_troupe(more);
  };
  CHECK(fails_with(with({"--save", ""}), 2, {"--save: must not be empty"}));
  CHECK(
    fails_with(with({"--seed", "-1"}), 2, {"--seed: must not be negative"}));
  CHECK(fails_with(with({"--seed", "18446744073709551616"}), 2,
                   {"--seed: must be below 2^64"}));
  CHECK(fails_with(with({"--epochs", "18446744073709551615"}), 2,
                   {"--epochs 18446744073709551615 of 8 steps"}));
  CHECK(fails_with(
    with({"--devices", "cpu:2", "--strategy", "none", "--sync-batch-norm"}), 2,
    {"--sync-batch-norm", "--strategy none"}));
  CHECK(fails_with(
    with({"--devices", "cpu:2", "--strategy", "none", "--verify-every", "5"}),
    2, {"--verify-every", "--strategy none"}));
  const auto late = with(
    {"--steps", "1", "--fetch", "fc_0.w_0", "--fetch-out", "/no/such/f.npz"});
  CHECK(fails_with(late, 1, {"/no/such/f.npz"}));
  CHECK_FALSE(contains(late.err, "trained"));
}

TEST_CASE("an empty name is not fetched") {
  for (const std::string names :
       {"", ",", "fc_0.w_0,", ",fc_0.w_0", "fc_0.w_0,,fc_0.b_0"}) {
    const auto rule =
      "--fetch: must be names with commas between, not '" + names + "'";
    CHECK(fails_with(run_troupe({"train", "mlp", "--synthetic", "--fetch",
                                 names, "--fetch-out", "f.npz"}),
                     2, {rule}));
    CHECK(
      fails_with(run_troupe({"graph", "mlp", "--fetch", names}), 2, {rule}));
  }
}

TEST_CASE("a gradient that nothing feeds is asked for at once") {
  const std::string needed = "--gradient-scale custom needs --feeds with an "
                             "array mean_0.tmp_0@GRAD";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"train", "mlp", "--synthetic"},
        {"train", "mlp", "--data", "/no/such"}}) {
    auto words = command;
    words.insert(words.end(), {"--gradient-scale", "custom"});
    CHECK(fails_with(run_troupe(words), 2, {needed}));
  }
  for (const words& command :
       {words{"bench", "train", "mlp"}, {"bench", "schedule", "mlp"}})
    CHECK(fails_with(run_troupe(command + words{"--gradient-scale", "custom"}),
                     2,
                     {"--gradient-scale custom: bench makes no "
                      "mean_0.tmp_0@GRAD to feed; it measures coeff and one"}));
}

TEST_CASE("the wiring has no format") {
  for (const char* format : {"dot", "json"})
    CHECK(
      fails_with(run_troupe({"graph", "mlp", "--wiring", "--format", format}),
                 2, {"--wiring excludes --format"}));
}

TEST_CASE("a command that is not there is named") {
  CHECK(fails_with(
    run_troupe({"fly"}), 2,
    {"unknown command 'fly'; commands are train, eval, graph, "
     "inspect, doctor, bench, trace, dashboard, launch, credentials (see "
     "troupe --help)"}));
  CHECK(fails_with(run_troupe({}), 2, {"a command is missing"}));
  CHECK(fails_with(run_troupe({"bench", "fly"}), 2,
                   {"unknown command 'bench fly'; commands of bench are tasks, "
                    "schedule, steps, latency, inference, train, comm (see "
                    "troupe bench"}));
  CHECK(fails_with(run_troupe({"bench"}), 2,
                   {"a command is missing (see troupe bench --help)"}));
}

TEST_CASE("unknown words are listed in their order") {
  CHECK(fails_with(
    run_troupe({"train", "mlp", "--one", "--two", "three", "--synthetic"}), 2,
    {"train does not take --one --two three (see troupe train --help)"}));
  CHECK(fails_with(run_troupe({"--fly", "high"}), 2,
                   {"troupe does not take --fly high (see troupe --help)"}));
  CHECK(fails_with(run_troupe({"bench", "tasks", "--a", "--b"}), 2,
                   {"tasks does not take --a --b (see troupe bench tasks"}));
}

TEST_CASE("of an option that is given twice the last one counts") {
  const auto result = run_troupe(
    {"train", "mlp", "--synthetic", "--steps", "5", "--steps", "1", "--json"});
  CHECK(result.code == 0);
  CHECK(contains(result.out, "\"steps\":1,"));
  CHECK(
    contains(run_troupe({"train", "mlp", "--synthetic", "--steps", "1"}).err,
             "trained 1 step in "));
}

TEST_CASE("of variables to fetch all are taken") {
  const temporary_folder folder;
  const std::string file = folder / "f.npz";
  CHECK(
    run_troupe({"train", "mlp", "--synthetic", "--steps", "1", "--devices",
                "cpu:1", "--fetch", "fc_0.b_0", "--fetch", "fc_1.b_0,fc_0.w_0",
                "--fetch", "fc_0.b_0", "--fetch-out", file})
      .code
    == 0);
  const auto arrays = run_troupe({"inspect", file}).out;
  for (const std::string name : {"fc_0.b_0", "fc_0.w_0", "fc_1.b_0"})
    CHECK(contains(arrays, "  " + name + " "));
}

TEST_CASE("output that cannot be written is a failure") {
  const temporary_folder folder;
  const std::string script = folder / "run.sh";
  const std::string errors = folder / "errors";
  for (const std::string command :
       {"--help", "--version", "train --help", "bench tasks --help",
        "graph mlp", "graph mlp --wiring", "inspect mlp", "inspect mlp --json",
        "doctor", "doctor --json",
        "train mlp --synthetic --steps 1 --devices cpu:1 --json",
        "bench schedule mlp --repeat 1 --sample-ms 1 --threads 1 --json"}) {
    CAPTURE(command);
    write_bytes(script,
                "exec " TROUPE_COMMAND " " + command + " > /dev/full\n");
    const int status = std::system(("sh " + script + " 2> " + errors).c_str());
    CHECK(WEXITSTATUS(status) == 1);
    CHECK(contains(read_bytes(errors),
                   "troupe: cannot write to standard output\n"));
  }
}

TEST_CASE("output whose reader has left ends without a word") {
  const temporary_folder folder;
  const std::string script = folder / "run.sh", errors = folder / "errors",
                    pipe = folder / "pipe";
  write_bytes(script, "mkfifo " + pipe + "\nexec 3<>" + pipe + " 4>" + pipe
                        + "\nexec 3<&-\nexec " TROUPE_COMMAND
                          " graph mlp >&4 4>&-\n");
  const int status = std::system(("sh " + script + " 2> " + errors).c_str());
  CHECK(WEXITSTATUS(status) == 1);
  CHECK(read_bytes(errors).empty());
}

TEST_CASE("a file is whole though standard error is closed") {
  const temporary_folder folder;
  const std::string script = folder / "run.sh", metrics = folder / "m";
  write_bytes(script, "exec " TROUPE_COMMAND " train mlp --synthetic --steps 3 "
                      "--devices cpu:1 --metrics "
                        + metrics + " 2>&-\n");
  CHECK(std::system(("sh " + script).c_str()) == 0);
  CHECK(read_bytes(metrics).starts_with("{\"step\":0,"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a small stack is enlarged or refused in one line") {
  const temporary_folder folder;
  const std::string script = folder / "run.sh", errors = folder / "errors";
  const auto run = [&](const std::string& limit) {
    write_bytes(script, "ulimit " + limit
                          + "; exec " TROUPE_COMMAND
                            " train mlp --synthetic --steps 3\n");
    const int status = std::system(("sh " + script + " 2> " + errors).c_str());
    return WEXITSTATUS(status);
  };
  CHECK(run("-Ss 64") == 0);
  // With less than 20 KiB, the dynamic loader can overflow it before main.
  for (const std::string kib : {"24", "64"})
    for (int i = 0; i < 4; ++i) { // each time at another place in its page
      CHECK(run("-s " + kib) == 1);
      CHECK(read_bytes(errors)
            == "troupe: a stack of " + kib
                 + " KiB (ulimit -s) is too small, 256 KiB are needed\n");
    }
}
#endif
} // TEST_SUITE("apps.usage")
