// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/export/exporters.hpp>
#include <troupe/trace/export/sqlite_schema.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/atomic_file.hpp>

#include <sqlite3.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::trace {

namespace {

class database {
public:
  explicit database(const std::filesystem::path& target) : target_(target) {
    const auto result = sqlite3_open(file_.temporary().c_str(), &opened_);
    holder_.reset(opened_); // also if opening failed
    require(result);
    // Until it is whole the file has another name: nothing must be undone.
    run("pragma journal_mode = off; pragma synchronous = off; begin;");
  }
  sqlite3* get() const noexcept { return opened_; }
  void run(const char* commands) {
    require(sqlite3_exec(opened_, commands, nullptr, nullptr, nullptr));
  }
  void require(int result) const {
    if (result != SQLITE_OK && result != SQLITE_DONE)
      throw error(errc::io_failure,
                  target_.string() + ": " + sqlite3_errmsg(opened_));
  }
  void commit() {
    run("commit;");
    require(sqlite3_close(holder_.release()));
    file_.commit();
  }

private:
  struct closes {
    void operator()(sqlite3* opened) const { sqlite3_close(opened); }
  };

  std::filesystem::path target_;
  atomic_file file_{target_};
  sqlite3* opened_ = nullptr;
  std::unique_ptr<sqlite3, closes> holder_;
};

/// A number that may be missing.
struct null_or {
  bool is_null;
  std::int64_t value;
};
null_or handle_or_null(handle_id id) {
  return {id == no_handle, static_cast<std::int64_t>(id)};
}

/// Inserts rows into a table.
class table {
public:
  /// @param columns their number
  table(database& in, const char* name, std::size_t columns) : in_(in) {
    std::string text = "insert into " + std::string{name} + " values(?";
    for (std::size_t i = 1; i < columns; ++i)
      text += ",?";
    text += ")";
    sqlite3_stmt* made = nullptr;
    in.require(sqlite3_prepare_v2(in.get(), text.c_str(), -1, &made, nullptr));
    statement_.reset(made);
  }

  template <class... Value>
  void insert(const Value&... values) {
    int column = 0;
    (bind(++column, values), ...);
    in_.require(sqlite3_step(statement_.get()));
    in_.require(sqlite3_reset(statement_.get()));
  }

private:
  struct finalizes {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };

  void bind(int column, std::integral auto value) {
    in_.require(sqlite3_bind_int64(statement_.get(), column,
                                   static_cast<sqlite3_int64>(value)));
  }
  void bind(int column, std::string_view text) {
    in_.require(sqlite3_bind_text(statement_.get(), column, text.data(),
                                  static_cast<int>(text.size()),
                                  SQLITE_TRANSIENT));
  }
  void bind(int column, null_or number) {
    if (number.is_null)
      in_.require(sqlite3_bind_null(statement_.get(), column));
    else
      bind(column, number.value);
  }

  database& in_;
  std::unique_ptr<sqlite3_stmt, finalizes> statement_;
};

class sqlite_writer final : public slice_sink {
public:
  sqlite_writer(database& to, const traced_process& process)
    : to_(to), process_(process), trace_(*process.trace) {}

  void write_facts();
  void write_graph();
  void write_messages();
  void write_actors();

  void take(const slice& s) override;
  void take(const instant& i) override;
  void take(const memory_sample& m) override;

private:
  void take_handled(const slice& s);

  database& to_;
  const traced_process& process_;
  const process_trace& trace_;
  table phases_{to_, "phases", 4};
  table steps_{to_, "steps", 5};
  table runs_{to_, "runs", 10};
  table memory_{to_, "memory", 8};
  table host_events_{to_, "host_events", 6};
  table actor_messages_{to_, "actor_messages", 10};
};

void sqlite_writer::write_facts() {
  const auto& run = trace_.run;
  table{to_, "processes", 13}.insert(
    process_.number, run.process, run.host, run.pid, run.command, run.version,
    run.strategy, run.workers, to_string(run.level), run.begin_unix_ns,
    process_.offset_ns, trace_.lost, trace_.is_complete);
}

void sqlite_writer::write_graph() {
  const auto& g = trace_.graph;
  table devices{to_, "devices", 3};
  for (std::size_t device = 0; device < g.devices.size(); ++device)
    devices.insert(process_.number, device, g.devices[device]);
  table handles{to_, "handles", 9};
  for (std::size_t id = 0; id < g.handles.size(); ++id) {
    const auto& h = g.handles[id];
    handles.insert(process_.number, id, h.name, h.is_op ? "op" : "var", h.type,
                   h.device, h.stream, h.is_collective, h.shape);
  }
  table edges{to_, "edges", 4};
  for (auto& e : g.edges)
    edges.insert(process_.number, e.from, e.to, e.distance);
}

void sqlite_writer::write_messages() {
  table messages{to_, "messages", 6};
  for (auto& e : trace_.events)
    if (e.kind == event_kind::message)
      messages.insert(process_.number, handle_or_null(e.from), e.to, e.step,
                      static_cast<std::int64_t>(e.time) + process_.offset_ns,
                      null_or{e.worker == recorder::no_worker, e.worker});
}

void sqlite_writer::write_actors() {
  table actors{to_, "actors", 9};
  for (std::size_t i = 0; i < trace_.actors.size(); ++i) {
    const auto& a = trace_.actors[i];
    actors.insert(process_.number, i, a.name, a.id, a.node, a.is_recorded,
                  null_or{!a.end_ns, a.end_ns.value_or(0) + process_.offset_ns},
                  a.has_failed, a.reason);
  }
}

void sqlite_writer::take_handled(const slice& s) {
  const auto& m = s.handled;
  actor_messages_.insert(
    process_.number, null_or{m.sender == no_actor, m.sender}, s.track.number,
    s.text, null_or{!m.sent, static_cast<std::int64_t>(m.sent.value_or(0))},
    s.begin, s.end, m.waiting, to_string(m.result), s.is_cut);
}

void sqlite_writer::take(const slice& s) {
  if (s.kind == slice_kind::phase)
    return phases_.insert(process_.number, s.text, s.begin, s.end);
  if (s.kind == slice_kind::step)
    return steps_.insert(process_.number, s.step, s.begin, s.end, s.is_cut);
  if (s.kind == slice_kind::handling)
    return take_handled(s);
  runs_.insert(process_.number, to_string(s.kind), to_string(s.track), s.op,
               s.step,
               null_or{s.ready == 0, static_cast<std::int64_t>(s.ready)},
               handle_or_null(s.waited_for), s.begin, s.end, s.is_cut);
}

void sqlite_writer::take(const instant& i) {
  if (is_parcel(i))
    return; // a table of their own has both ends in one row
  host_events_.insert(process_.number, to_string(i.kind),
                      handle_or_null(i.handle), i.step, i.time, i.bytes);
}

void sqlite_writer::take(const memory_sample& m) {
  memory_.insert(process_.number, m.device, m.time, m.variable,
                 handle_or_null(m.op), m.step, m.change, m.live_bytes);
}

void write_parcels(database& to, export_input traces,
                   std::span<const parcel> parcels) {
  table rows{to, "parcels", 9};
  const auto time_or_null = [&](const std::optional<parcel_end>& end) {
    return null_or{!end, end ? static_cast<std::int64_t>(end->time)
                                 + traces[end->trace].offset_ns
                             : 0};
  };
  const auto process_or_null = [](const std::optional<parcel_end>& end) {
    return null_or{!end, end ? static_cast<std::int64_t>(end->trace) : 0};
  };
  for (const auto& p : parcels)
    rows.insert(p.kind == parcel_kind::value ? "value" : "collective",
                process_or_null(p.sent), p.sender, process_or_null(p.arrived),
                p.receiver, p.step, p.bytes, time_or_null(p.sent),
                time_or_null(p.arrived));
}

} // namespace

void export_sqlite(export_input traces, std::span<const parcel> parcels,
                   const std::filesystem::path& file) {
  database to{file};
  to.run(sqlite_tables);
  for (auto& process : traces) {
    sqlite_writer writer{to, process};
    writer.write_facts();
    writer.write_graph();
    writer.write_messages();
    writer.write_actors();
    build_slices(process, with_messages::yes, writer);
  }
  write_parcels(to, traces, parcels);
  to.run(sqlite_indexes);
  to.commit();
}

bool has_sqlite() noexcept {
  return true;
}

} // namespace troupe::trace
