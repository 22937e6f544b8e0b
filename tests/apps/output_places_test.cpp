// SPDX-License-Identifier: Apache-2.0
//
// Where the command writes: no result replaces another result or an input.
#include "apps/command_runner.hpp"

#include <support/files.hpp>

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

using namespace troupe::test;

TEST_SUITE("apps.output_places") {
namespace {} // namespace

TEST_CASE("results in one place are refused before anything runs") {
  const temporary_folder folder;
  const std::string a = folder / "a", same = folder.path() / "b/../a";
  const auto with = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"train", "mlp", "--synthetic", "--steps", "1"});
    return run_troupe(more);
  };
  CHECK(fails_with(
    with({"--metrics", a, "--fetch", "fc_0.w_0", "--fetch-out", same}), 2,
    {"--metrics and --fetch-out would both write " + same}));
  CHECK(fails_with(with({"--save", a + "/", "--loss-curve", a}), 2,
                   {"--save and --loss-curve would both write " + a}));
  CHECK(folder.entries() == 0);
}

TEST_CASE("results in one place are refused however its name is spelled") {
  const temporary_folder folder;
  const auto refused = [&](const std::string& first, const std::string& one,
                           const std::string& second, const std::string& two) {
    const auto fetch = second == "--fetch-out" ? " --fetch fc_0.b_0" : "";
    CHECK(fails_with(run_in(folder, "troupe train mlp --synthetic --steps 1 "
                                      + first + " " + one + " " + second + " "
                                      + two + fetch),
                     2, {first + " and " + second + " would both write "}));
  };
  const std::string whole = folder / "new";
  std::filesystem::create_directory(folder / "there");
  std::filesystem::create_directory_symlink("there", folder / "folder_link");
  std::filesystem::create_symlink("new", folder / "link");
  std::filesystem::create_symlink("../new", folder / "there/up");
  const std::vector<std::string> spellings{"new",
                                           "./new",
                                           ".//new",
                                           "missing/../new",
                                           "there/../new",
                                           "folder_link/../new",
                                           whole,
                                           "link",
                                           "./link",
                                           "there/up",
                                           "folder_link/up",
                                           "/proc/self/cwd/new"};
  for (const auto& spelling : spellings) {
    CAPTURE(spelling);
    for (const std::string option :
         {"--metrics", "--loss-curve", "--fetch-out"}) {
      CAPTURE(option);
      refused("--save", "new", option, spelling);
      refused("--save", spelling, option, "new");
      if (option == "--metrics")
        continue;
      refused("--metrics", "new", option, spelling);
      refused("--metrics", spelling, option, "new");
    }
    refused("--loss-curve", "new", "--fetch-out", spelling);
    refused("--loss-curve", spelling, "--fetch-out", "new");
  }
  for (const auto& folder_name : {"new/", "./new/.", "new/x/.."})
    refused("--save", folder_name, "--metrics", "new");
  refused("--save", "./new", "--metrics", "new/main.pdmodel");
  refused("--save", "new", "--metrics", "./link/main.pdmodel");
  CHECK(folder.entries() == 3);
  CHECK_FALSE(std::filesystem::exists(whole));
}

TEST_CASE("results in different places are all written") {
  const temporary_folder folder;
  CHECK(run_in(folder, "troupe train mlp --synthetic --steps 1 --devices cpu:1 "
                       "--metrics new --loss-curve ./new.svg --save sub")
          .code
        == 0);
  CHECK(folder.entries() == 3);
}

TEST_CASE("a result in the place of an input is refused in a current folder") {
  const temporary_folder folder;
  REQUIRE(run_in(folder, "troupe train mlp --synthetic --steps 1 --devices "
                         "cpu:1 --save program")
            .code
          == 0);
  for (const std::string line :
       {"cd program && troupe train . --metrics main.pdmodel",
        "cd program && troupe train ../program --metrics ./main.pdmodel",
        "cd program && troupe train $PWD --metrics main.pdmodel",
        "troupe train program --metrics $PWD/program/main.pdmodel",
        "troupe train program/main.pdmodel --metrics ./program/main.pdmodel"})
    CHECK(fails_with(run_in(folder, line + " --synthetic --steps 1"), 2,
                     {"--metrics would write over ", "which is read"}));
}

TEST_CASE("results in the place of what is read are refused") {
  const temporary_folder folder;
  const std::string read = folder / "read", same = folder / "same";
  const auto with = [&](const char* input, const char* output) {
    return run_troupe({"train", "mlp", input, read, output, same});
  };
  write_bytes(read, "1,2,0\n");
  std::filesystem::create_hard_link(read, same);
  for (const auto* input : {"--data", "--feeds", "--params"})
    for (const auto* output : {"--metrics", "--loss-curve", "--save"}) {
      CAPTURE(input);
      CAPTURE(output);
      if (input == std::string_view{"--params"}
          && output == std::string_view{"--save"})
        continue; // a program may be saved to the folder that it came from
      CHECK(fails_with(with(input, output), 2,
                       {std::string{output} + " would write over " + same
                        + ", which is read"}));
    }
  CHECK(read_bytes(read) == "1,2,0\n");
}

TEST_CASE("names that writing an output would remove are refused") {
  const temporary_folder folder;
  std::filesystem::copy(TROUPE_DATA "/digits",
                        folder.path() / "dd.troupe-tmp.99999",
                        std::filesystem::copy_options::recursive);
  const std::string train = "troupe train digits --devices cpu:1 --steps 1 ";
  for (const std::string data :
       {"dd.troupe-tmp.99999", "./dd.troupe-tmp.99999/",
        "$PWD/dd.troupe-tmp.99999/train-images-idx3-ubyte"}) {
    CAPTURE(data);
    const auto result = run_in(folder, train + "--data " + data + " --save dd");
    CHECK(fails_with(result, 2, {"--save would remove ", "rename it"}));
  }
  const std::string leftover = "m.svg.troupe-tmp.99999.3";
  for (const std::string& outputs :
       {"--metrics " + leftover + " --loss-curve m.svg",
        "--save " + leftover + " --loss-curve m.svg",
        "--synthetic --params " + leftover + " --loss-curve ./m.svg",
        "--feeds " + leftover + " --loss-curve m.svg"}) {
    CAPTURE(outputs);
    CHECK(fails_with(run_in(folder, train + outputs), 2,
                     {"--loss-curve would remove ", leftover, "rename it"}));
  }
  CHECK(fails_with(
    run_in(folder, "mv dd.troupe-tmp.99999 p.json.troupe-tmp.99999; troupe "
                   "bench train p.json.troupe-tmp.99999 --save-start p.json"),
    2, {"--save-start would remove "}));
  CHECK(folder.entries() == 1); // nothing was removed
}

TEST_CASE("links to files in folders that are read are not written over") {
  const temporary_folder folder;
  const std::string program = folder / "program", data = folder / "data",
                    hard = folder / "hard.jsonl", real = folder / "real";
  REQUIRE(run_troupe({"train", "mlp", "--synthetic", "--steps", "1",
                      "--devices", "cpu:1", "--save", program})
            .code
          == 0);
  std::filesystem::copy(TROUPE_DATA "/digits", data);
  const auto refused = [&](words command, const std::string& input) {
    CAPTURE(input);
    const auto before = read_bytes(input);
    std::filesystem::create_hard_link(input, hard);
    for (const auto* output : {"--metrics", "--loss-curve"})
      CHECK(fails_with(run_troupe(command + words{output, hard}), 2,
                       {"would write over " + hard + ", which is read"}));
    // The target of a link in the folder is refused too.
    std::filesystem::rename(input, real);
    std::filesystem::create_symlink(real, input);
    CHECK(fails_with(run_troupe(command + words{"--metrics", real}), 2,
                     {"would write over " + real + ", which is read"}));
    CHECK(read_bytes(input) == before);
    std::filesystem::remove(hard);
    std::filesystem::rename(real, input);
  };
  const words train{"train", "--steps", "1", "--devices", "cpu:1"};
  refused(train + words{program, "--synthetic"}, program + "/main.pdmodel");
  refused(train + words{"mlp", "--synthetic", "--params", program},
          program + "/params.pdiparams");
  refused(train + words{"digits", "--data", data},
          data + "/train-labels-idx1-ubyte");
  // A result of an earlier run does not count as an input.
  write_bytes(program + "/run.jsonl", "");
  std::filesystem::create_hard_link(program + "/run.jsonl", hard);
  CHECK(
    run_troupe(train + words{program, "--synthetic", "--metrics", hard}).code
    == 0);
}

TEST_CASE("metrics on a standard stream stand among its other lines") {
  const auto train = [](const std::string& metrics) {
    return run_troupe({"train", "mlp", "--synthetic", "--steps", "3",
                       "--devices", "cpu:1", "--json", "--metrics", metrics});
  };
  const auto out = train("/dev/stdout");
  CHECK(out.code == 0);
  const auto lines = lines_of(out.out);
  REQUIRE(lines.size() == 4);
  for (std::size_t step = 0; step < 3; ++step)
    CHECK(lines[step].starts_with("{\"step\":" + std::to_string(step) + ","));
  CHECK(lines[3].starts_with("{\"steps\":3,"));
  const auto err = train("/dev/stderr");
  CHECK(err.code == 0);
  CHECK(err.err.starts_with("mlp on cpu:1: "));
  CHECK(contains(err.err, "\n{\"step\":2,"));
}

TEST_CASE("no result replaces the file that standard output goes to") {
  const auto with = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"train", "mlp", "--synthetic", "--steps", "1"});
    return run_troupe(more);
  };
  CHECK(fails_with(with({"--loss-curve", "/dev/stdout"}), 2,
                   {"--loss-curve would replace /dev/stdout, where other "
                    "output goes"}));
  CHECK(
    fails_with(with({"--fetch", "fc_0.b_0", "--fetch-out", "/proc/self/fd/2"}),
               2, {"--fetch-out would replace"}));
  CHECK(fails_with(run_troupe({"bench", "train", "mlp", "--steps", "1",
                               "--save-start", "/dev/stdout"}),
                   2, {"--save-start would replace"}));
}

TEST_CASE("metrics on a stream that is not open for writing are refused") {
  const temporary_folder folder;
  write_bytes(folder / "kept", "kept");
  const auto train = [&](const std::string& rest) {
    return run_in(folder,
                  "troupe train mlp --synthetic --steps 1 --metrics " + rest);
  };
  for (const std::string rest :
       {"/dev/stdout >&-", "/dev/fd/1 >&-", "/proc/self/fd/1 >&-",
        "/dev/stdin <&-", "/dev/stdin < kept", "/dev/fd/3 3< kept", "/dev/fd/9",
        "/dev/stdout >&- --json"}) {
    const auto stream = rest.substr(0, rest.find(' '));
    CHECK(fails_with(train(rest), 2,
                     {"--metrics would write to " + stream
                      + ", which is not open for writing"}));
  }
  // Nothing can be said there.
  CHECK(train("/dev/stderr 2>&-").code == 2);
  CHECK(train("/dev/fd/2 2>&- >&-").code == 2);
  CHECK(read_bytes(folder / "kept") == "kept");
  // These are open, or no streams of the process.
  for (const std::string rest :
       {"/dev/stderr 2> new", "/dev/stdout > /dev/null", "/dev/null >&-",
        "/dev/stdout | cat", "/dev/fd/3 3>> kept"}) {
    CAPTURE(rest);
    CHECK(train(rest).code == 0);
  }
  CHECK(contains(read_bytes(folder / "new"), "{\"step\":0,"));
  CHECK(read_bytes(folder / "kept").starts_with("kept{\"step\":0,"));
}

TEST_CASE("metrics go to a pipe that somebody reads, and no other") {
  const temporary_folder folder;
  const std::string train =
    "timeout 60 " TROUPE_COMMAND " train mlp --synthetic --steps 1 --metrics p";
  CHECK(fails_with(run_in(folder, "mkfifo p && " + train), 1,
                   {"p: is a pipe without a reader"}));
  const auto read = run_in(folder, "exec 3<>p && " + train + " && head -1 <&3");
  CHECK(read.code == 0);
  CHECK(read.out.starts_with("{\"step\":0,"));
}

TEST_CASE("a result that is a file cannot go to a pipe") {
  const temporary_folder folder;
  const auto refused = [&](const std::string& command,
                           const std::string& option, const std::string& stream,
                           const std::string& redirection) {
    const auto result =
      run_in(folder, "( troupe " + command + " " + option + " " + stream + " "
                       + redirection + "; echo $? > code ) | cat");
    CHECK(result.err
          == "troupe: " + option + " would replace " + stream
               + ", which is not a file\n");
    CHECK(read_bytes(folder / "code") == "2\n");
  };
  const std::string train = "train mlp --synthetic --steps 1";
  for (const std::string stream :
       {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
    refused(train, "--loss-curve", stream, "");
    refused(train + " --fetch fc_0.b_0", "--fetch-out", stream, "");
    refused(train, "--save", stream, "");
    refused("bench train mlp --steps 1", "--save-start", stream, "");
  }
  refused(train, "--loss-curve", "/dev/stdout", "> /dev/null");
}

TEST_CASE("files of a program that is read or saved are not written over") {
  const temporary_folder folder;
  const std::string program = folder / "program", saved = folder / "saved";
  const auto train = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"train"});
    more.insert(more.end(),
                {"--synthetic", "--steps", "1", "--devices", "cpu:1"});
    return run_troupe(more);
  };
  REQUIRE(train({"mlp", "--save", program}).code == 0);
  for (const std::string name : {"main.pdmodel", "program.json"})
    for (const auto* output : {"--metrics", "--loss-curve"})
      CHECK(fails_with(train({program, output, program + "/" + name}), 2,
                       {"would write over " + program + "/" + name}));
  CHECK(fails_with(train({"mlp", "--params", program, "--loss-curve",
                          program + "/params.pdiparams"}),
                   2, {"params.pdiparams, which is read"}));
  CHECK(fails_with(
    train({"mlp", "--save", saved, "--metrics", saved + "/main.pdmodel"}), 2,
    {"--save and --metrics would both write"}));
  CHECK(fails_with(
    run_troupe({"bench", "train", program, "--save-start",
                program + "/main.pdmodel", "--steps", "1"}),
    2, {"--save-start would write over " + program + "/main.pdmodel"}));
  for (int run = 0; run < 2; ++run) // the second replaces the first one's
    CHECK(train({program, "--params", program, "--save", program, "--metrics",
                 program + "/run.jsonl"})
            .code
          == 0);
}

TEST_CASE("a folder's name is no place for a file") {
  const temporary_folder folder;
  std::filesystem::create_directory(folder / "there");
  for (const std::string name : {"new/", "there/", "new/.", "there/.."}) {
    const std::string place = folder.path() / name;
    CAPTURE(place);
    const auto refused = [&](const std::vector<std::string>& words) {
      const auto result = run_troupe(words);
      CHECK(fails_with(result, 1, {place + ": "}));
      CHECK(lines_of(result.err).size() == 1); // nothing was trained
    };
    for (const std::string option :
         {"--metrics", "--loss-curve", "--fetch-out"}) {
      CAPTURE(option);
      std::vector<std::string> words{"train",   "mlp",       "--synthetic",
                                     "--steps", "1",         option,
                                     place,     "--devices", "cpu:1"};
      if (option == "--fetch-out")
        words.insert(words.end(), {"--fetch", "fc_0.w_0"});
      refused(words);
    }
    refused({"bench", "train", "mlp", "--steps", "1", "--save-start", place});
  }
  CHECK(folder.entries() == 1);
}

TEST_CASE("results keep the permissions of those that they replace") {
  const temporary_folder folder;
  const std::string saved = folder / "saved", metrics = folder / "m.jsonl",
                    curve = folder / "c.svg", fetched = folder / "f.npz",
                    start = folder / "s.npz";
  const auto run_both = [&] {
    CHECK(run_troupe({"train", "mlp", "--synthetic", "--steps", "1",
                      "--devices", "cpu:1", "--save", saved, "--metrics",
                      metrics, "--loss-curve", curve, "--fetch", "fc_0.b_0",
                      "--fetch-out", fetched})
            .code
          == 0);
    CHECK(run_troupe({"bench", "train", "mlp", "--steps", "1", "--warm-up", "0",
                      "--devices", "cpu:1", "--save-start", start})
            .code
          == 0);
  };
  run_both();
  std::vector<std::string> files{metrics, curve, fetched, start};
  for (const auto& entry : std::filesystem::directory_iterator(saved))
    files.push_back(entry.path());
  CHECK(files.size() == 9);
  for (const auto& file : files)
    REQUIRE(::chmod(file.c_str(), 0600) == 0);
  REQUIRE(::chmod(saved.c_str(), 0700) == 0);
  run_both();
  for (const auto& file : files) {
    CAPTURE(file);
    CHECK(permissions_of(file) == 0600);
  }
  CHECK(permissions_of(saved) == 0700);
}
} // TEST_SUITE("apps.output_places")
