// SPDX-License-Identifier: Apache-2.0
#include "live_client.hpp"
#include "raw_client.hpp"
#include "served_run.hpp"

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe::dashboard;
using namespace troupe::dashboard::test;
using namespace std::chrono_literals;

TEST_SUITE("dashboard.live") {

namespace {

web_server::frame frame_of(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

bool becomes_watched_by(const served_run& run, std::size_t watchers) {
  return comes_true([&] { return run.server.watchers() == watchers; });
}

/// The number with which the server closes a WebSocket that sends these bytes.
int code_after(const std::string& bytes) {
  const served_run run;
  int code = 0;
  {
    live_client client{run};
    client.send(bytes);
    code = client.receive_close();
    CHECK(client.gets_closed());
  }
  CHECK(becomes_watched_by(run, 0));
  CHECK(run.get("/healthz", "").status == 200);
  return code;
}

} // namespace

TEST_CASE("a watcher speaks the protocol and gets frames as binary messages") {
  served_run run;
  live_client client{run};
  CHECK(client.begin.status == 101);
  CHECK(client.begin.header("Sec-WebSocket-Protocol") == "troupe.v1");
  // The key and the answer to it are those of RFC 6455, section 1.3.
  CHECK(client.begin.header("Sec-WebSocket-Accept")
        == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  CHECK(becomes_watched_by(run, 1));
  run.server.publish(frame_of("first"));
  const auto got = client.receive_frame();
  CHECK(got.code == 2);
  CHECK(got.is_last);
  CHECK(got.payload == "first");
  run.server.publish(frame_of("second"));
  CHECK(client.receive_message() == "second");
}

TEST_CASE("who begins to watch gets the newest frame") {
  served_run run;
  run.server.publish(frame_of("old"));
  run.server.publish(frame_of("new"));
  // Frames are taken before requests that come later.
  CHECK(run.get("/healthz", "").status == 200);
  live_client client{run};
  CHECK(client.receive_message() == "new");
}

TEST_CASE("frames of any size arrive whole") {
  served_run run;
  live_client client{run};
  for (const std::size_t bytes :
       {0, 1, 125, 126, 65535, 65536, 65537, 131072, 5'000'000}) {
    std::string text(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i)
      text[i] = static_cast<char>(i * 7 + i / 251);
    run.server.publish(frame_of(text));
    const auto got = client.receive_message();
    CHECK_MESSAGE(got == text, bytes);
  }
}

TEST_CASE("a slow watcher gets the newest frame and not those between") {
  served_run run;
  live_client slow{run, 4096}, quick{run};
  CHECK(becomes_watched_by(run, 2));
  const std::string filling(3'000'000, 'x');
  const int frames = 20;
  for (int i = 0; i < frames; ++i) {
    run.server.publish(frame_of(std::to_string(i) + filling));
    CHECK(quick.receive_message().size() > filling.size()); // it has been sent
  }
  std::vector<int> numbers;
  while (numbers.empty() || numbers.back() != frames - 1) {
    const auto message = slow.receive_message();
    REQUIRE_FALSE(message.empty());
    numbers.push_back(std::stoi(message));
  }
  CHECK(numbers.size() == 2); // the one that was under way, and the newest
  CHECK(numbers.front() == 0);
}

TEST_CASE("publish waits for no watcher") {
  served_run run;
  live_client stuck{run, 4096};
  CHECK(becomes_watched_by(run, 1));
  const auto large = frame_of(std::string(50'000'000, 'x'));
  for (int i = 0; i < 10'000; ++i)
    run.server.publish(large);
  CHECK(run.get("/healthz", "").status == 200);
  CHECK(run.server.watchers() == 1);
}

TEST_CASE("frames are not kept once all have them or newer ones") {
  served_run run;
  live_client client{run};
  auto first = frame_of("first");
  const std::weak_ptr<const std::string> kept = first;
  run.server.publish(std::move(first));
  CHECK(client.receive_message() == "first");
  run.server.publish(frame_of("second"));
  CHECK(client.receive_message() == "second");
  CHECK(comes_true([&] { return kept.expired(); }));
}

TEST_CASE("a watcher that takes nothing of a frame is cut off") {
  served_run run{{.patience = 300ms}};
  std::unique_ptr<live_client> stuck;
  CHECK(comes_true([&] { // if this thread is quick enough
    stuck = std::make_unique<live_client>(run, 4096);
    return stuck->begin.status == 101;
  }));
  run.server.publish(frame_of(std::string(20'000'000, 'x')));
  // It is not silent.
  CHECK(comes_true([&] {
    stuck->send(frame_bytes(0x8a, ""));
    std::this_thread::sleep_for(20ms);
    return run.server.watchers() == 0;
  }));
}

TEST_CASE("a watcher that answers no ping is cut off, others are not") {
  const served_run run{{.patience = 1000ms}};
  // Again if this thread is too slow to answer in time.
  CHECK(comes_true([&] {
    live_client silent{run}, alive{run};
    const auto both = silent.begin.status == 101 && alive.begin.status == 101
                      && run.get("/healthz", "").status == 200;
    while (run.server.watchers() == 2) {
      alive.send(frame_bytes(0x8a, "")); // more than it is asked for
      std::this_thread::sleep_for(100ms);
    }
    return both && run.server.watchers() == 1
           && silent.receive_frame().code == 9 && silent.gets_closed()
           && alive.receive_frame().code == 9;
  }));
}

TEST_CASE("pings of a watcher are answered, a flood is not borne") {
  const served_run run;
  live_client client{run};
  client.send(frame_bytes(0x89, "some"));
  const auto pong = client.receive_frame();
  CHECK(pong.code == 10);
  CHECK(pong.payload == "some");
  for (const auto kind : {0x89, 0x8a}) {
    live_client flooding{run};
    bool takes_more = true;
    while (takes_more)
      takes_more = flooding.send(frame_bytes(kind, ""));
    CHECK(flooding.gets_closed());
    CHECK(becomes_watched_by(run, 1));
  }
}

TEST_CASE("a watcher that says goodbye is let go") {
  CHECK(code_after(frame_bytes(0x88, std::string("\x03\xe8", 2))) == 1000);
}

TEST_CASE("a watcher that just leaves is forgotten") {
  const served_run run;
  {
    const live_client client{run};
    CHECK(becomes_watched_by(run, 1));
  }
  CHECK(becomes_watched_by(run, 0));
}

TEST_CASE("a message of a watcher ends its connection") {
  CHECK(code_after(frame_bytes(0x81, "")) == 1008);
  CHECK(code_after(frame_bytes(0x81, "x")) == 1008);
  CHECK(code_after(frame_bytes(0x82, "x")) == 1008);
  CHECK(code_after(frame_bytes(0x81, "watch")) == 1009);
  CHECK(code_after(frame_bytes(0x82, std::string(60'000, 'x'))) == 1009);
  CHECK(code_after(frame_bytes(0x01, "x") + frame_bytes(0x80, "y")) == 1009);
}

TEST_CASE("malformed frames end the connection") {
  CHECK(code_after(frame_bytes(0x89, "x", false)) == 1002); // no mask
  CHECK(code_after(frame_bytes(0xc1, "x")) == 1002);        // reserved bit
  CHECK(code_after(frame_bytes(0x83, "x")) == 1002);        // reserved code
  CHECK(code_after(frame_bytes(0x09, "x")) == 1002);        // a part of a ping
  CHECK(code_after(frame_bytes(0x80, "x")) == 1002);        // goes on with none
  CHECK(code_after(frame_bytes(0x89, std::string(126, 'x'))) == 1002);
  CHECK(code_after(std::string("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff"
                               "\x11\x22\x33\x44",
                               14))
        == 1009);
}

TEST_CASE("a WebSocket that may not be is refused with a status") {
  const served_run run;
  const auto status = [&](const std::string& headers) {
    return run.get("/api/v1/live", headers).status;
  };
  const auto upgrade = live_client::headers();
  const std::string protocol = "Sec-WebSocket-Protocol: troupe.v1\r\n";
  const auto origin = "Origin: http://" + run.host() + "\r\n";
  const auto cookie = run.view_cookie();
  CHECK(status(upgrade + protocol + origin) == 401);
  CHECK(status(upgrade + protocol + cookie) == 403);
  CHECK(status(upgrade + protocol + cookie + "Origin: http://a.example\r\n")
        == 403);
  CHECK(status(upgrade + origin + cookie) == 400);
  CHECK(status(protocol + origin + cookie) == 426);
  const auto old = troupe::test::replaced(upgrade, "Version: 13", "Version: 8");
  CHECK(status(old + protocol + origin + cookie) == 426);
  const auto no_key = troupe::test::replaced(upgrade, "-Key", "-Lock");
  CHECK(status(no_key + protocol + origin + cookie) == 400);
  CHECK(run.server.watchers() == 0);
}

TEST_CASE("more watchers than allowed get 503") {
  const served_run run{{.watchers = 2, .patience = client_patience}};
  std::vector<std::unique_ptr<live_client>> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(std::make_unique<live_client>(run));
    CHECK(clients.back()->begin.status == 101);
    CHECK(becomes_watched_by(run, i + 1));
  }
  CHECK(live_client{run}.begin.status == 503);
  clients.pop_back();
  CHECK(becomes_watched_by(run, 1));
  CHECK(live_client{run}.begin.status == 101);
}

TEST_CASE("a server ends while watchers receive a frame") {
  const auto files = open_files();
  std::vector<std::unique_ptr<live_client>> clients;
  {
    served_run run;
    for (int i = 0; i < 10; ++i)
      clients.push_back(std::make_unique<live_client>(run, 4096));
    CHECK(becomes_watched_by(run, 10));
    run.server.publish(frame_of(std::string(20'000'000, 'x')));
    CHECK(run.get("/healthz", "").status == 200);
  }
  for (auto& client : clients)
    CHECK(client->gets_closed());
  clients.clear();
  CHECK(open_files() == files);
}
} // TEST_SUITE("dashboard.live")
