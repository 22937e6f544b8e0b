// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace troupe::trace {

// docs/trace.md describes the tables.

inline constexpr const char* sqlite_tables = R"(
create table processes(process integer primary key, rank integer, host text,
  pid integer, command text, version text, strategy text, workers integer,
  level text, begin_unix_ns integer, begin_ns integer, lost_events integer,
  is_complete integer);
create table devices(process integer, device integer, name text);
create table handles(process integer, handle integer, name text, kind text,
  type text, device integer, stream text, is_collective integer, shape text);
create table edges(process integer, sender integer, receiver integer,
  distance integer);
create table phases(process integer, name text, begin_ns integer,
  end_ns integer);
create table steps(process integer, step integer, begin_ns integer,
  end_ns integer, is_cut integer);
create table runs(process integer, kind text, track text, op integer,
  step integer, ready_ns integer, waited_for integer, begin_ns integer,
  end_ns integer, is_cut integer);
create table messages(process integer, sender integer, receiver integer,
  step integer, ns integer, worker integer);
create table parcels(kind text, sender_process integer, sender integer,
  receiver_process integer, receiver integer, step integer, bytes integer,
  sent_ns integer, arrived_ns integer);
create table memory(process integer, device integer, ns integer,
  variable integer, op integer, step integer, change integer,
  live_bytes integer);
create table host_events(process integer, kind text, handle integer,
  step integer, ns integer, bytes integer);
create table actors(process integer, actor integer, name text, id integer,
  node text, is_recorded integer, end_ns integer, has_failed integer,
  reason text);
create table actor_messages(process integer, sender integer, receiver integer,
  type text, sent_ns integer, begin_ns integer, end_ns integer,
  waiting integer, result text, is_cut integer);
create view ops as
  select process, handle as op, name, type, device, stream, is_collective,
    shape from handles where kind = 'op';
)";

/// Made after the rows, which is faster.
inline constexpr const char* sqlite_indexes = R"(
create unique index handles_by_id on handles(process, handle);
create index edges_by_sender on edges(process, sender);
create index edges_by_receiver on edges(process, receiver);
create index steps_by_number on steps(process, step);
create index runs_by_op on runs(process, op, step);
create index runs_by_step on runs(process, step, begin_ns);
create index messages_by_receiver on messages(process, receiver, step);
create index messages_by_sender on messages(process, sender);
create index parcels_by_receiver on parcels(receiver, step);
create unique index actors_by_number on actors(process, actor);
create index actor_messages_by_receiver on actor_messages(process, receiver);
create index memory_by_time on memory(process, device, ns);
)";

} // namespace troupe::trace
