// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/io/csv.hpp>
#include <troupe/kernels/io/text.hpp>
#include <troupe/kernels/memory/memory_limit.hpp>

#include <support/child_process.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <fstream>
#include <random>
#include <stdexcept>

using namespace troupe;
using test::contains;
using test::error_of;

namespace {

struct fixture {
  arena memory{make_host_memory_source()};
  test::temporary_folder folder;

  csv_table read(const std::string& text, const csv_options& options = {}) {
    test::write_bytes(folder / "t.csv", text);
    return read_csv(folder / "t.csv", options, memory);
  }
  std::string reading(const std::string& text,
                      const csv_options& options = {}) {
    return error_of([&] { read(text, options); });
  }
};

/// Bytes of addresses that this process has. Sanitizers take too many to count.
[[maybe_unused]] std::size_t address_space() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

} // namespace

TEST_SUITE("kernels.csv") {

TEST_CASE_FIXTURE(fixture, "numbers become features, the last column labels") {
  auto table = read("1,2.5,0\n-3e2,+4,1\n");
  CHECK(table.columns.empty());
  CHECK(table.features.dims() == shape{2, 2});
  auto features = table.features.values<float>();
  CHECK(features[1] == 2.5f);
  CHECK(features[2] == -300.0f);
  CHECK(features[3] == 4.0f);
  CHECK(table.labels.dims() == shape{2, 1});
  CHECK(table.labels.values<std::int64_t>()[1] == 1);
}

TEST_CASE_FIXTURE(fixture, "a header names columns and chooses the label") {
  auto table = read("\"kind\", width ,\"a,b\"\r\n2,0.5,7\r\n\r\n1,1.5,8",
                    {.label_column = "kind"});
  CHECK(table.columns == std::vector<std::string>{"width", "a,b"});
  CHECK(table.labels.values<std::int64_t>()[0] == 2);
  CHECK(table.features.dims() == shape{2, 2});
  CHECK(table.features.values<float>()[3] == 8.0f);
}

TEST_CASE_FIXTURE(fixture, "a first line with a number in it is no header") {
  const std::string rest = "\n3,4,1\n";
  const auto refused = [&](const std::string& first) {
    return reading(first + rest);
  };
  CHECK(contains(refused("1,x,0"),
                 "t.csv: line 1, column 2: 'x' is not a number, but other "
                 "fields of the first line are, which no header has"));
  CHECK(contains(refused("\n\"?\", 2 ,0"), "line 2, column 1: '?' is not a"));
  CHECK(contains(refused("\xEF\xBB\xBF"
                         "1,2,"),
                 "line 1, column 3: ''"));
  CHECK(contains(refused("1,2,1e999 kg"), "line 1, column 3: '1e999 kg'"));
  CHECK(contains(refused("a,\"2019\",b"), "line 1, column 1: 'a'"));
  CHECK(contains(refused("a,1e999,b"), "line 1, column 1: 'a'"));
  CHECK(contains(refused("1,nan,0"), "column 2: 'nan' is not a finite number"));
  CHECK(contains(refused(",,"), "line 1, column 1: '' is not a finite"));
  CHECK(contains(reading("1,x,0" + rest, {.label_column = "x"}), "column 2"));
}

TEST_CASE_FIXTURE(fixture, "a header may leave columns without a name") {
  CHECK(read(",\"\",y\n1,2,0\n").columns == std::vector<std::string>{"", ""});
}

TEST_CASE_FIXTURE(fixture, "a text that the memory limit has no room for is "
                           "refused before it is read") {
  std::string rows;
  for (int row = 0; row < 100'000; ++row)
    rows += "1,2,0\n";
  test::write_bytes(folder / "t.txt", rows);
  const auto held = host_memory_reserved();
  const auto within = [&](std::size_t bytes, auto work) {
    set_host_memory_limit(held + bytes);
    auto message = error_of(work);
    set_host_memory_limit(0);
    return message;
  };
  const auto csv = [&] { read(rows); };
  const auto text = [&] { read_text(folder / "t.txt", memory); };
  CHECK(contains(within(500'000, csv),
                 "t.csv: no memory for 600000 bytes to read it: "));
  CHECK(contains(within(500'000, text),
                 "t.txt: no memory for 600000 bytes to read it: "));
  CHECK(contains(within(2'000'000, csv), "t.csv: no memory for "));
  CHECK(host_memory_reserved() == held);
  CHECK(within(100'000'000, csv) == "none");
  CHECK(within(100'000'000, text) == "none");
}

TEST_CASE_FIXTURE(fixture, "names of columns count towards the memory limit") {
  std::string names = "a", row = "1";
  for (int i = 1; i < 100'000; ++i) {
    names += ",a";
    row += ",1";
  }
  set_host_memory_limit(host_memory_reserved() + 3'000'000);
  const auto message = reading(names + "\n" + row + "\n");
  set_host_memory_limit(0);
  CHECK(contains(message, "t.csv: no memory for 3"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE_FIXTURE(fixture, "fields of a long line take no memory") {
  test::write_bytes(folder / "t.csv", std::string(std::size_t{8} << 20, ','));
  const auto child = test::in_child([&] {
    constexpr std::size_t mib = 1 << 20;
    const rlimit limit{address_space() + 64 * mib, RLIM_INFINITY};
    ::setrlimit(RLIMIT_AS, &limit);
    set_host_memory_limit(host_memory_reserved() + 16 * mib);
    try {
      read_csv(folder / "t.csv", {}, memory);
    } catch (const error& e) {
      if (contains(e.what(), "t.csv: no memory for 3"))
        return;
      throw;
    }
    throw std::runtime_error("it was read");
  });
  CHECK(test::exit_code(child) == 0);
}
#endif

TEST_CASE_FIXTURE(fixture, "a byte order mark is no part of the first field") {
  const std::string mark = "\xEF\xBB\xBF";
  CHECK(read(mark + "1,2,0\n3,4,1\n").labels.dims() == shape{2, 1});
  CHECK(read(mark + "a,b\n1,0\n").columns == std::vector<std::string>{"a"});
  CHECK(contains(reading(mark), "has no rows"));
}

TEST_CASE_FIXTURE(fixture, "labels may be values") {
  auto table = read("1,0.25\n", {.label_type = dtype::float32});
  CHECK(table.labels.values<float>()[0] == 0.25f);
  CHECK(contains(reading("1,0.25\n"), "line 1, column 2: '0.25' is not a "
                                      "class number"));
  CHECK(contains(reading("1,2\n", {.label_type = dtype::int8}),
                 "invalid_argument"));
}

TEST_CASE_FIXTURE(fixture, "errors name file, line and column") {
  CHECK(contains(reading("a,b\n1,2\n\n3\n"),
                 "t.csv: line 4: expected 2 fields, found 1"));
  CHECK(contains(reading("a,b\n1,2\nx,2\n"),
                 "line 3, column 'a': 'x' is not a finite number"));
  CHECK(contains(reading("1,2\n,2\n"), "line 2, column 1: ''"));
  CHECK(contains(reading("1,2\nnan,2\n"), "'nan' is not a finite"));
  CHECK(contains(reading("1,2\n1e39,2\n"), "'1e39' is not a finite"));
  CHECK(contains(reading("1,2\n1e999,2\n"), "'1e999' is not a finite"));
  CHECK(contains(reading(""), "has no rows"));
  CHECK(contains(reading("a,b\n"), "has a header but no rows"));
  CHECK(contains(reading("a,b\n1,2\n", {.label_column = "c"}), "not_found"));
  CHECK(contains(error_of([&] { read_csv(folder / "no", {}, memory); }),
                 "not_found"));
}

TEST_CASE_FIXTURE(fixture, "damaged text never crashes the reader") {
  const std::string whole = "a,\"b\",c\n1,2,3\n4.5,-6e1,7\n";
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    auto changed = whole.substr(0, random() % (whole.size() + 1));
    if (!changed.empty())
      changed[random() % changed.size()] ^= 1 << random() % 8;
    REQUIRE(test::survives([&] { read(changed); }));
  }
}

} // TEST_SUITE("kernels.csv")

TEST_SUITE("kernels.text") {

TEST_CASE_FIXTURE(fixture, "the bytes of a text are its tokens") {
  test::write_bytes(folder / "a.txt", "a\xff\n");
  auto tokens = read_text(folder / "a.txt", memory);
  CHECK(tokens.dims() == shape{3});
  CHECK(tokens.values<std::int64_t>()[0] == 'a');
  CHECK(tokens.values<std::int64_t>()[1] == 255);
  test::write_bytes(folder / "b.txt", "");
  CHECK(contains(error_of([&] { read_text(folder / "b.txt", memory); }),
                 "is empty"));
}

} // TEST_SUITE("kernels.text")
