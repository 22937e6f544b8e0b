// SPDX-License-Identifier: Apache-2.0
// What a name in the command line can mean: a net, a program, a file, a
// variable; and what is said if there is none.
#include "apps/command_runner.hpp"

#include <support/files.hpp>

#include <doctest/doctest.h>

using namespace troupe::test;

TEST_SUITE("apps.names_and_paths") {

namespace {

/// The folder of a program that the command has saved.
std::string saved_mlp(const temporary_folder& in) {
  const std::string program = in / "program";
  REQUIRE(run_troupe({"train", "mlp", "--synthetic", "--steps", "1",
                      "--devices", "cpu:1", "--save", program})
            .code
          == 0);
  return program;
}

} // namespace

TEST_CASE("a variable that is no float number cannot be the loss") {
  const auto with = [](const char* loss) {
    return run_troupe({"train", "mlp", "--synthetic", "--loss", loss});
  };
  CHECK(fails_with(with("label"), 2,
                   {"--loss: 'label' is int64 [-1, 1], but a loss is one "
                    "float number"}));
  CHECK(fails_with(with("fc_0.w_0"), 2, {"--loss: 'fc_0.w_0' is float32 ["}));
  CHECK(fails_with(with("mean_0.tmp_0@GRAD"), 2,
                   {"--loss: the test program, without gradients and updates, "
                    "has no variable 'mean_0.tmp_0@GRAD'"}));
}

TEST_CASE("the loss of a folder is checked as that of the command line") {
  const temporary_folder folder;
  const auto program = saved_mlp(folder), notes = program + "/program.json";
  const auto refused = [&](const std::string& loss, const std::string& why) {
    write_bytes(notes, "{\"loss_var\": \"" + loss + "\"}");
    for (const words& command :
         {words{"train", program, "--synthetic"},
          {"eval", program, "--params", program, "--data", "data/digits"},
          {"inspect", program},
          {"graph", program}})
      CHECK(fails_with(run_troupe(command), 1,
                       {"troupe: " + notes + ": loss_var: " + why}));
  };
  refused("ghost", "the program has no variable 'ghost'");
  refused("label", "'label' is int64 [-1, 1], but a loss is one float number");
  refused("fc_0.w_0", "'fc_0.w_0' is float32 [");
  refused("mean_0.tmp_0@GRAD", "the test program, without gradients and "
                               "updates, has no variable 'mean_0.tmp_0@GRAD'");
}

TEST_CASE("a number of a folder that is too large is named with its file") {
  const temporary_folder folder;
  const auto program = saved_mlp(folder), notes = program + "/program.json";
  const auto with = [&](const std::string& text) {
    write_bytes(notes, text);
    return run_troupe({"train", program, "--synthetic", "--steps", "1"});
  };
  const auto below = [&](const std::string& number) {
    return with("{\"feeds\": {\"label\": {\"shape\": [1, 1], \"dtype\": "
                "\"int64\", \"below\": "
                + number + "}}}");
  };
  for (const std::string number :
       {"4294967297", "9223372036854775807"}) // above 2^32, at most 2^63 - 1
    CHECK(fails_with(with("{\"batch\": " + number + "}"), 1,
                     {"troupe: " + notes + ": 'batch' is " + number}));
  for (const std::string number : {"11", "9223372036854775807"})
    CHECK(fails_with(below(number), 1,
                     {"troupe: " + notes + ": feed 'label': 'below' is "
                      + number + ", but the program takes numbers below 10"}));
  for (const std::string number : {"1", "10"})
    CHECK(below(number).code == 0);
}

TEST_CASE("wrong parameters and names to fetch are found before a trial") {
  const auto with = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"train", "mlp", "--synthetic"});
    const auto result = run_troupe(more);
    CHECK(lines_of(result.err).size() == 1);
    return result;
  };
  CHECK(fails_with(with({"--params", "/no/such"}), 1, {"/no/such"}));
  CHECK(fails_with(with({"--fetch", "ghost", "--fetch-out", "x.npz"}), 2,
                   {"--fetch: no op reads or writes 'ghost', and it is not "
                    "persistable"}));
}

TEST_CASE("a net that is not there is a wrong command line") {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"train", "nonet", "--synthetic"},
        {"eval", "nonet", "--params", "p", "--data", "data/digits"},
        {"graph", "nonet"},
        {"inspect", "nonet"},
        {"bench", "train", "nonet"},
        {"bench", "schedule", "nonet"},
        {"bench", "steps", "nonet"}})
    CHECK(fails_with(run_troupe(command), 2,
                     {"no built-in model 'nonet'", "resnet18",
                      "no file or folder has that name"}));
}

TEST_CASE("a name with a dot or a slash is a path") {
  for (const std::string path :
       {"no.pdmodel", "no.trt", "no/such", "such/", "/dev/null/x"})
    for (const words& command : {words{"train", path, "--synthetic"},
                                 {"inspect", path},
                                 {"bench", "schedule", path}})
      CHECK(fails_with(run_troupe(command), 1,
                       {path + ": "
                        + (path == "/dev/null/x" ? "Not a directory"
                                                 : "No such file or "
                                                   "directory")}));
}

TEST_CASE("a name that the program does not have is a wrong command line") {
  for (const words& command : {words{"train", "mlp", "--synthetic"},
                               {"graph", "mlp"},
                               {"inspect", "mlp"}})
    CHECK(fails_with(run_troupe(command + words{"--loss", "l"}), 2,
                     {"troupe: --loss: the program has no variable 'l'"}));
  const words train{"train", "mlp", "--synthetic"};
  CHECK(fails_with(
    run_troupe(train + words{"--fetch", "ghost", "--fetch-out", "x.npz"}), 2,
    {"ghost"}));
  CHECK(fails_with(run_troupe({"graph", "mlp", "--fetch", "ghost"}), 2,
                   {"--fetch: no op reads or writes 'ghost'"}));
  CHECK(
    fails_with(run_troupe(train + words{"--slow", "ghost=1us"}), 2, {"ghost"}));
}

TEST_CASE("a folder without a program that hides a net is told of") {
  const temporary_folder folder;
  std::filesystem::create_directory(folder / "digits");
  std::filesystem::create_directory(folder / "empty");
  const auto refusal = [&](const std::string& name) {
    const auto result = run_in(folder, "troupe graph " + name);
    CHECK(result.code == 1);
    return result.err;
  };
  const std::string hidden =
    "the folder has the name of a built-in net, which is used only where no "
    "file or folder has that name";
  CHECK(contains(refusal("digits"),
                 "digits/main.pdmodel: No such file or directory; " + hidden));
  for (const auto* other : {"empty", "./digits"})
    CHECK_FALSE(contains(refusal(other), hidden));
}

TEST_CASE("what is not there leaves with 1 and one line") {
  CHECK(fails_with(run_troupe({"train", "/no/such", "--synthetic"}), 1,
                   {"/no/such: No such file or directory"}));
  CHECK(fails_with(
    run_troupe({"train", "mlp", "--synthetic", "--devices", "cuda:0"}), 1,
    {"cuda"}));
  CHECK(fails_with(
    run_troupe({"train", "mlp", "--synthetic", "--place", "/no/such"}), 1,
    {"--place: /no/such: No such file or directory"}));
  CHECK(fails_with(run_troupe({"train", "mlp", "--data", "/no/such"}), 1,
                   {"/no/such"}));
  CHECK(fails_with(run_troupe({"train", "mlp", "--feeds", "/no/such.npz"}), 1,
                   {"/no/such.npz"}));
  CHECK(fails_with(
    run_troupe({"train", "mlp", "--synthetic", "--params", "/no/such"}), 1,
    {"/no/such"}));
  CHECK(
    fails_with(run_troupe({"inspect", "/no/such.npz"}), 1, {"/no/such.npz"}));
}

TEST_CASE("held-out files are those of --data, not of the current folder") {
  const temporary_folder folder;
  const std::string script = folder / "run.sh", errors = folder / "errors";
  write_bytes(folder / "t10k-images-idx3-ubyte", "");
  write_bytes(script, "cd " + folder.path().string()
                        + "; exec " TROUPE_COMMAND " train mlp --synthetic "
                          "--steps 1 --devices cpu:1\n");
  CHECK(std::system(("sh " + script + " 2> " + errors).c_str()) == 0);
  CHECK(contains(read_bytes(errors), "trained 1 step in "));
}

TEST_CASE("a path that leads nowhere is answered in the usual line") {
  const temporary_folder folder;
  const std::string circle = folder / "circle";
  std::filesystem::create_symlink("circle", circle);
  std::string deep = folder.path();
  while (deep.size() < 5000)
    deep += "/deeper";
  const auto refused = [](const std::vector<std::string>& words,
                          const std::string& line) {
    const auto result = run_troupe(words);
    CHECK(result.code == 1);
    CHECK(result.out.empty());
    CHECK(result.err == "troupe: " + line + "\n");
  };
  const std::vector<std::pair<std::string, std::string>> paths{
    {circle, "Too many levels of symbolic links"},
    {circle + "/program", "Too many levels of symbolic links"},
    {folder / std::string(300, 'n'), "File name too long"},
    {std::string(300, 'n'), "File name too long"},
    {deep, "File name too long"}};
  for (const auto& [path, why] : paths) {
    const auto line = path + ": " + why;
    refused({"inspect", path}, line);
    refused({"graph", path}, line);
    refused({"train", path, "--synthetic"}, line);
    refused({"bench", "schedule", path}, line);
    refused({"train", "mlp", "--data", path}, line);
    refused({"train", "mlp", "--feeds", path}, line);
    refused({"train", "mlp", "--synthetic", "--params", path}, line);
    refused({"inspect", path + "/x.npz"}, path + "/x.npz: " + why);
    refused({"eval", "mlp", "--params", "p", "--data", path}, line);
  }
}

TEST_CASE("a link that leads nowhere is no missing net or folder") {
  const temporary_folder folder;
  const std::string link = folder / "link", net = folder / "mlp";
  std::filesystem::create_symlink("nowhere", link);
  std::filesystem::create_symlink("nowhere", net);
  const auto why = ": the link leads nowhere: No such file or directory";
  for (const words& command : {words{"inspect", link},
                               {"graph", link},
                               {"train", link, "--synthetic"},
                               {"bench", "schedule", link},
                               {"train", "mlp", "--data", link}})
    CHECK(fails_with(run_troupe(command), 1, {"troupe: " + link + why}));
  // Also by a bare name, and instead of a net of that name.
  for (const std::string name : {"link", "mlp"}) {
    const std::string errors = folder / "errors";
    const int status =
      std::system(("cd " + folder.path().string()
                   + " && " TROUPE_COMMAND " inspect " + name + " 2> errors")
                    .c_str());
    CHECK(WEXITSTATUS(status) == 1);
    CHECK(read_bytes(errors) == "troupe: " + name + why + "\n");
  }
}

TEST_CASE("inspect takes a loss only for a program") {
  CHECK(fails_with(run_troupe({"inspect", "x.npz", "--loss", "l"}), 2,
                   {"--loss l: an .npz file has no loss"}));
}

} // TEST_SUITE("apps.names_and_paths")
