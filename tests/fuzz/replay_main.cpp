// SPDX-License-Identifier: Apache-2.0
// Runs a target on files, and on copies of them with damage that a seed
// determines: what libFuzzer does, in seconds and with any compiler.
//
// usage: replay_TARGET COPIES FILE|FOLDER...

#include "fuzz/fuzz_target.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using generator = std::mt19937_64;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> read_all(int count, char** paths) {
  std::vector<fs::path> files;
  for (int i = 0; i < count; ++i)
    if (fs::is_directory(paths[i]))
      for (const auto& entry : fs::recursive_directory_iterator(paths[i]))
        files.push_back(entry.path());
    else
      files.push_back(paths[i]);
  std::sort(files.begin(), files.end());
  std::vector<std::string> contents;
  for (const fs::path& file : files)
    if (fs::is_regular_file(file))
      contents.push_back(read_file(file));
  return contents;
}

/// A number in [0, below).
std::size_t draw(generator& random, std::size_t below) {
  return below == 0 ? 0 : random() % below;
}

using damage = void (*)(std::string&, const std::string& other, generator&);

void flip_bit(std::string& bytes, const std::string&, generator& random) {
  if (!bytes.empty())
    bytes[draw(random, bytes.size())] ^=
      static_cast<char>(1 << draw(random, 8));
}

void set_byte(std::string& bytes, const std::string&, generator& random) {
  constexpr std::array values{'\0', '\1', '\x7f', '\x80', '\xff', '"', ','};
  if (!bytes.empty())
    bytes[draw(random, bytes.size())] = values[draw(random, values.size())];
}

/// Writes a little-endian number that readers trip over.
void set_number(std::string& bytes, const std::string&, generator& random) {
  constexpr std::array<std::uint64_t, 8> values{0,
                                                1,
                                                0x7fffffff,
                                                0x80000000,
                                                0xffffffff,
                                                0x7fffffffffffffff,
                                                0x8000000000000000,
                                                0xffffffffffffffff};
  const auto value = values[draw(random, values.size())];
  const std::size_t size = draw(random, 2) == 0 ? 4 : 8;
  if (bytes.size() >= size)
    bytes.replace(draw(random, bytes.size() - size + 1), size,
                  reinterpret_cast<const char*>(&value), size);
}

void truncate(std::string& bytes, const std::string&, generator& random) {
  bytes.resize(draw(random, bytes.size() + 1));
}

void remove_part(std::string& bytes, const std::string&, generator& random) {
  const auto from = draw(random, bytes.size());
  bytes.erase(from,
              draw(random, std::min<std::size_t>(64, bytes.size() - from) + 1));
}

void repeat_part(std::string& bytes, const std::string&, generator& random) {
  const auto from = draw(random, bytes.size());
  const auto part = bytes.substr(from, draw(random, 256) + 1);
  for (auto times = draw(random, 8) + 1; times > 0; --times)
    bytes.insert(from, part);
}

void join(std::string& bytes, const std::string& other, generator& random) {
  bytes.resize(draw(random, bytes.size() + 1));
  bytes += other.substr(draw(random, other.size() + 1));
}

std::string damaged(const std::vector<std::string>& seeds, generator& random) {
  constexpr std::array<damage, 9> kinds{flip_bit,    flip_bit,    set_byte,
                                        set_byte,    set_number,  truncate,
                                        remove_part, repeat_part, join};
  std::string bytes = seeds[draw(random, seeds.size())];
  for (auto times = draw(random, 4) + 1; times > 0; --times)
    kinds[draw(random, kinds.size())](bytes, seeds[draw(random, seeds.size())],
                                      random);
  return bytes;
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s COPIES FILE|FOLDER...\n", argv[0]);
    return 2;
  }
  const auto seeds = read_all(argc - 2, argv + 2);
  if (seeds.empty()) {
    std::fprintf(stderr, "%s: no files\n", argv[0]);
    return 2;
  }
  for (const std::string& seed : seeds)
    troupe::fuzz::run_guarded(seed);
  const auto copies = std::strtoull(argv[1], nullptr, 10);
  generator random{1};
  for (std::size_t i = 0; i < copies; ++i)
    troupe::fuzz::run_guarded(damaged(seeds, random));
  std::printf("%zu files, %llu damaged copies\n", seeds.size(), copies);
}
