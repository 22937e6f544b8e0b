// SPDX-License-Identifier: Apache-2.0
#include "trace/export/hand_made_trace.hpp"

#include <troupe/trace/export/trace_export.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#ifdef TROUPE_HAS_SQLITE
#include <sqlite3.h>
#endif

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.export.sqlite") {

#ifdef TROUPE_HAS_SQLITE

namespace {

using texts = std::vector<std::string>;

class exported_database {
public:
  explicit exported_database(const std::vector<process_trace>& traces) {
    export_trace(traces, export_format::sqlite, folder_ / "t.db");
    REQUIRE(sqlite3_open((folder_ / "t.db").c_str(), &opened_) == SQLITE_OK);
  }
  ~exported_database() { sqlite3_close(opened_); }
  exported_database(const exported_database&) = delete;
  exported_database& operator=(const exported_database&) = delete;

  /// The rows of an answer, with '|' between columns.
  texts rows(const std::string& query) const {
    texts found;
    char* problem = nullptr;
    const auto add = [](void* into, int columns, char** values, char**) {
      std::string row;
      for (int i = 0; i < columns; ++i)
        row +=
          (i == 0 ? "" : "|") + std::string{values[i] ? values[i] : "null"};
      static_cast<texts*>(into)->push_back(row);
      return 0;
    };
    sqlite3_exec(opened_, query.c_str(), add, &found, &problem);
    const std::string said = problem ? problem : "";
    sqlite3_free(problem);
    CHECK(said == "");
    return found;
  }

private:
  temporary_folder folder_;
  sqlite3* opened_ = nullptr;
};

/// The queries of the page, in its order.
texts queries_of_page() {
  const auto page = read_bytes(TROUPE_TRACE_PAGE);
  const std::string begin = "```sql\n";
  texts found;
  for (auto at = page.find(begin); at != page.npos;
       at = page.find(begin, at + 1)) {
    const auto from = at + begin.size();
    found.push_back(page.substr(from, page.find("```", from) - from));
  }
  return found;
}

} // namespace

TEST_CASE("tables have what the trace has, with times from the earliest phase "
          "on") {
  const exported_database db{{one_step()}};
  CHECK(db.rows("select kind, track, op, step, ready_ns, waited_for, begin_ns, "
                "end_ns, is_cut from runs order by begin_ns, kind")
        == texts{"run|worker 0|0|0|2110|null|3000|4000|0",
                 "help|worker 1|0|0|null|null|3200|3800|0",
                 "merge|worker 1|2|0|null|null|4500|4700|0",
                 "run|worker 1|2|0|4000|1|4500|5000|0"});
  CHECK(db.rows("select * from messages order by ns, sender")
        == texts{"0|null|0|0|2110|0", "0|0|1|0|4000|0", "0|1|2|0|4000|0",
                 "0|2|0|1|5000|1"});
  CHECK(db.rows("select * from steps") == texts{"0|0|2100|5020|0"});
  CHECK(db.rows("select * from memory")
        == texts{"0|0|2050|1|null|0|64|64", "0|0|4000|1|0|0|4096|4160",
                 "0|0|5010|1|2|0|-4096|64"});
  CHECK(db.rows("select name, begin_ns, end_ns from phases")
        == texts{"read program|0|500", "build \"graph\"|500|1990"});
  CHECK(db.rows("select * from host_events") == texts{"0|feed|1|0|2050|64"});
  CHECK(db.rows("select * from edges")
        == texts{"0|0|1|0", "0|1|2|0", "0|2|0|1"});
  CHECK(db.rows("select name, type from ops")
        == texts{"conv2d#0@cpu:0|conv2d", "momentum#1@cpu:0|momentum"});
  CHECK(db.rows("select handle, kind, device, shape from handles where "
                "handle = 1")
        == texts{"1|var|0|[-1, 4]"});
  CHECK(
    db.rows("select rank, host, pid, workers, level, begin_ns, lost_events, "
            "is_complete from processes")
    == texts{"0|host-a|17|2|messages|2000|0|1"});
  CHECK(db.rows("select * from devices") == texts{"0|0|cpu:0"});
  CHECK(db.rows("pragma integrity_check") == texts{"ok"});
}

TEST_CASE("parcels have both ends in one row, and null for what is missing") {
  const auto traces = two_ranks();
  const exported_database both{traces};
  CHECK(both.rows("select * from parcels order by sent_ns")
        == texts{"value|0|0|1|1|0|512|1500|1800",
                 "value|0|0|1|1|1|1024|2100|2500",
                 "collective|1|3|0|2|1|80|4500|4800"});
  CHECK(both.rows("select count(*) from host_events") == texts{"0"});
  CHECK(both.rows(queries_of_page().at(3))
        == texts{"send#0@cpu:0|recv#1@cpu:1|2|768.0|2194.3"});
  const exported_database one{{traces[1]}};
  CHECK(one.rows("select * from parcels order by arrived_ns")
        == texts{"value|null|0|0|1|0|512|null|1800",
                 "value|null|0|0|1|1|1024|null|2500"});
}

TEST_CASE("the queries of the page have answers") {
  const exported_database db{{one_step(), of_rank(1, one_step())}};
  const auto queries = queries_of_page();
  REQUIRE(queries.size() == 4);
  CHECK(db.rows(queries[0]) == texts{"conv2d|2|2.0", "momentum|2|1.0"});
  CHECK(db.rows(queries[1])[0] == "momentum#1@cpu:0|0|0.5|a,\"b\":v1@cpu:0");
  CHECK(
    db.rows(queries[2])
    == texts{"0|cpu:0|4160|a,\"b\":v1@cpu:0", "1|cpu:0|4160|a,\"b\":v1@cpu:0"});
}

TEST_CASE("actors of the application and their messages are tables") {
  const exported_database db{{two_actors()}};
  CHECK(db.rows("select * from actors order by actor")
        == texts{"0|0|feeder|12||1|700|1|no more data",
                 "0|1|reporter|13||1|null|0|", "0|2|main|4||0|null|0|"});
  CHECK(db.rows("select * from actor_messages order by begin_ns")
        == texts{"0|2|0|('feed')|100|200|600|0|failed|0",
                 "0|0|1|('report', float)|300|400|500|3|skipped|0"});
}

TEST_CASE("an older file is replaced") {
  const temporary_folder folder;
  write_bytes(folder / "t.db", "something else");
  export_trace(std::vector{one_step()}, export_format::sqlite, folder / "t.db");
  CHECK(read_bytes(folder / "t.db").starts_with("SQLite format 3"));
  CHECK(folder.entries() == 1);
}

#else

TEST_CASE("a build without SQLite says so") {
  const temporary_folder folder;
  CHECK_FALSE(is_built_in(export_format::sqlite));
  const auto thrown = caught([&] {
    export_trace(std::vector{one_step()}, export_format::sqlite, folder / "t");
  });
  CHECK(says(thrown, "this build has no SQLite: install libsqlite3-dev"));
  CHECK(folder.entries() == 0);
}

#endif
} // TEST_SUITE("trace.export.sqlite")
