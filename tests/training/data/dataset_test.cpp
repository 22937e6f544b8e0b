// SPDX-License-Identifier: Apache-2.0
#include <support/caught.hpp>
#include <support/files.hpp>
#include <troupe/kernels/memory/memory_limit.hpp>
#include <troupe/training/data/dataset.hpp>

#include <doctest/doctest.h>

#include <algorithm>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("training.dataset") {

namespace {

namespace fs = std::filesystem;

const feed_info image{"image", dtype::float32, {-1, 1, 2, 2}, std::nullopt};
const feed_info label{"label", dtype::int64, {-1, 1}, 3};
const std::vector<feed_info> picture_feeds{image, label};

std::string big_endian(std::uint32_t value) {
  std::string text;
  for (int shift : {24, 16, 8, 0})
    text += static_cast<char>(value >> shift);
  return text;
}

/// A folder with two 2x2 images and their labels.
struct idx_folder {
  arena memory{make_host_memory_source()};
  temporary_folder folder;

  idx_folder() {
    write(big_endian(0x803) + big_endian(2) + big_endian(2) + big_endian(2)
            + std::string("\x00\xff\x33\x00\x00\x00\x00\x66", 8),
          std::string("\x02\x01", 2));
  }
  void write(const std::string& images, const std::string& labels,
             const std::string& part = "train") {
    write_bytes(folder / (part + "-images-idx3-ubyte"), images);
    write_bytes(folder / (part + "-labels-idx1-ubyte"),
                big_endian(0x801)
                  + big_endian(static_cast<std::uint32_t>(labels.size()))
                  + labels);
  }
  dataset load(const std::vector<feed_info>& feeds = picture_feeds) {
    return load_dataset(folder.path(), feeds, dataset_part::train, memory);
  }
  std::string refusal(const std::vector<feed_info>& feeds = picture_feeds) {
    return error_of([&] { load(feeds); });
  }
};

struct text_file {
  arena memory{make_host_memory_source()};
  temporary_folder folder;

  dataset load(const std::string& name, const std::string& text,
               const std::vector<feed_info>& feeds) {
    write_bytes(folder / name, text);
    return load_dataset(folder / name, feeds, dataset_part::train, memory);
  }
  std::string refusal(const std::string& name, const std::string& text,
                      const std::vector<feed_info>& feeds) {
    return error_of([&] { load(name, text, feeds); });
  }
};

std::vector<std::int64_t> whole(const dataset& data, const char* name) {
  const auto all = data.columns.find(name)->second.values<std::int64_t>();
  return {all.begin(), all.end()};
}

} // namespace

TEST_CASE_FIXTURE(idx_folder, "pixels become [0, 1] in the feed's shape") {
  const dataset data = load();
  CHECK(data.samples == 2);
  const tensor& pixels = data.columns.find("image")->second;
  CHECK(pixels.dims() == shape{2, 1, 2, 2});
  CHECK(pixels.data<float>()[0] == 0.0f);
  CHECK(pixels.data<float>()[1] == 1.0f);
  CHECK(pixels.data<float>()[2] == doctest::Approx(0.2));
  CHECK(whole(data, "label") == std::vector<std::int64_t>{2, 1});
}

TEST_CASE_FIXTURE(idx_folder, "a label outside the classes is named") {
  write(read_bytes(folder / "train-images-idx3-ubyte"),
        std::string("\x02\x03", 2));
  const std::string text = refusal();
  CHECK(contains(text, "out_of_range"));
  CHECK(contains(text, "train-labels-idx1-ubyte: label [1, 0] is 3, outside "
                       "[0, 3)"));
}

TEST_CASE_FIXTURE(idx_folder, "files that contradict each other are refused") {
  write(read_bytes(folder / "train-images-idx3-ubyte"), "\x01");
  CHECK(contains(refusal(), "labels [1] for 2 images"));
}

TEST_CASE_FIXTURE(idx_folder, "files without samples are refused") {
  write(big_endian(0x803) + big_endian(0) + big_endian(2) + big_endian(2), "");
  CHECK(contains(refusal(), "train-images-idx3-ubyte: no samples"));
}

TEST_CASE_FIXTURE(idx_folder, "data that needs too much memory is named") {
  constexpr std::uint32_t samples = 1'000'000;
  write(big_endian(0x803) + big_endian(samples) + big_endian(2) + big_endian(2)
          + std::string(std::size_t{4} * samples, '\0'),
        std::string(samples, '\0'));
  for (const std::size_t bytes : {1'000'000, 12'000'000}) {
    set_host_memory_limit(host_memory_reserved() + bytes);
    const auto text = refusal();
    set_host_memory_limit(0);
    CHECK(contains(text, "out_of_memory"));
    CHECK(contains(text, folder.path().string()));
  }
}

TEST_CASE_FIXTURE(idx_folder, "truncated and oversized files are refused") {
  const auto file = folder / "train-images-idx3-ubyte";
  const std::string right = read_bytes(file);
  write_bytes(file, right.substr(0, 20));
  CHECK(contains(refusal(), "bad_file"));
  write_bytes(file, right + "x");
  CHECK(contains(refusal(), "bad_file"));
  fs::remove(file);
  CHECK(contains(refusal(), "not_found"));
}

TEST_CASE_FIXTURE(idx_folder, "pictures of another size are refused") {
  feed_info larger = image;
  larger.dims = {-1, 9};
  CHECK(contains(refusal({larger, label}),
                 "samples have [2, 2, 2], feed image float32 [-1, 9] wants 9 "
                 "elements"));
}

TEST_CASE_FIXTURE(idx_folder, "programs with other feeds are refused") {
  CHECK(contains(refusal({label, label}), "one float feed and one label"));
  CHECK(contains(refusal({image}), "this one is fed image float32"));
}

TEST_CASE_FIXTURE(idx_folder, "held-out samples are seen when they are there") {
  CHECK_FALSE(has_held_out(folder.path()));
  write(read_bytes(folder / "train-images-idx3-ubyte"),
        std::string("\x00\x00", 2), "t10k");
  CHECK(has_held_out(folder.path()));
  CHECK(whole(load_dataset(folder.path(), picture_feeds, dataset_part::held_out,
                           memory),
              "label")
        == std::vector<std::int64_t>{0, 0});
}

TEST_CASE_FIXTURE(idx_folder, "one of two held-out files alone is refused") {
  for (auto* lone : {"images-idx3", "labels-idx1"}) {
    write(read_bytes(folder / "train-images-idx3-ubyte"),
          std::string("\x00\x00", 2), "t10k");
    const std::string other = lone[0] == 'i' ? "labels-idx1" : "images-idx3";
    fs::remove(folder / ("t10k-" + other + "-ubyte"));
    REQUIRE(has_held_out(folder.path()));
    CHECK(contains(error_of([&] {
                     load_dataset(folder.path(), picture_feeds,
                                  dataset_part::held_out, memory);
                   }),
                   "t10k-" + other + "-ubyte: No such file"));
  }
}

TEST_CASE_FIXTURE(text_file, "the last column of a csv file is the label") {
  const dataset data =
    load("a.csv", "a,b,c,d,class\n1,2,3,4,0\n5,6,7,8,2\n", picture_feeds);
  CHECK(data.samples == 2);
  CHECK(data.columns.find("image")->second.data<float>()[7] == 8.0f);
  CHECK(whole(data, "label") == std::vector<std::int64_t>{0, 2});
  CHECK(contains(refusal("a.csv", "1,2,0\n", picture_feeds), "2 columns"));
  CHECK(contains(refusal("a.csv", "1,2,3,4,7\n", picture_feeds),
                 "a.csv: label [0, 0] is 7, outside [0, 3)"));
}

TEST_CASE_FIXTURE(text_file, "a text becomes windows and what follows them") {
  const std::vector<feed_info> feeds{{"targets", dtype::int64, {-1, 3, 1}, 256},
                                     {"tokens", dtype::int64, {-1, 3}, 256}};
  const dataset data = load("a.txt", "abcdefgh", feeds);
  CHECK(data.samples == 2);
  CHECK(whole(data, "tokens")
        == std::vector<std::int64_t>{'a', 'b', 'c', 'd', 'e', 'f'});
  CHECK(whole(data, "targets")
        == std::vector<std::int64_t>{'b', 'c', 'd', 'e', 'f', 'g'});
  CHECK(data.columns.find("targets")->second.dims() == shape{2, 3, 1});
  CHECK(contains(refusal("a.txt", "abc", feeds), "a sample needs 4"));
  CHECK(contains(refusal("a.txt", "abcdef", picture_feeds),
                 "two feeds of as many whole numbers"));
}

TEST_CASE_FIXTURE(text_file, "other paths are refused") {
  CHECK(contains(refusal("a.png", "x", picture_feeds), ".csv or .txt"));
  CHECK(contains(error_of([&] {
                   load_dataset("/no/such", picture_feeds, dataset_part::train,
                                memory);
                 }),
                 "/no/such: no such file"));
}
} // TEST_SUITE("training.dataset")
