// SPDX-License-Identifier: Apache-2.0
#include <support/files.hpp>
#include <troupe/dashboard/server/front_door.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <string_view>

using namespace troupe;
using namespace troupe::dashboard;
using namespace std::chrono_literals;

TEST_SUITE("dashboard.front_door") {

namespace {

using way = verdict::way;

const rate_limit::time_point start{1h};

std::string header_of(const verdict& made, std::string_view name) {
  for (const auto& [header, value] : made.headers)
    if (header == name)
      return value;
  return "";
}

/// A door with its secrets, and requests as a browser sends them.
struct doorway {
  explicit doorway(web_access access = {}, bool tls = false)
    : view_cookie("a=b; troupe_8000=" + access.cookie_of(right::view)),
      control_cookie("troupe_8000=" + access.cookie_of(right::control)),
      door(std::move(access),
           own_hosts{{.host = "127.0.0.1", .port = 8000, .has_tls = tls}}) {}

  request_head get(std::string_view target, std::string_view cookie = {}) {
    return {.method = "GET",
            .target = target,
            .host_headers = 1,
            .host = "127.0.0.1:8000",
            .cookie = cookie};
  }
  request_head post(std::string_view cookie) {
    auto head = get("/api/v1/control", cookie);
    head.method = "POST";
    head.content_type = "application/json";
    return head;
  }
  request_head live(std::string_view cookie) {
    auto head = get("/api/v1/live", cookie);
    head.is_upgrade = true;
    head.protocols = "troupe.v1";
    return from_own_page(head);
  }
  static request_head from_own_page(request_head head) {
    head.origin_headers = 1;
    head.origin = "http://127.0.0.1:8000";
    return head;
  }

  verdict judge(const request_head& head) { return door.judge(head, start); }
  unsigned status(const request_head& head) {
    const auto made = judge(head);
    CHECK(made.next == way::answer);
    return made.answer.status;
  }
  /// The path of the link.
  static std::string path_of(const std::string& link) {
    return link.substr(link.find("/?"));
  }

  std::string view_cookie, control_cookie;
  front_door door;
};

} // namespace

TEST_CASE("health needs no session") {
  doorway at;
  const auto made = at.judge(at.get("/healthz"));
  CHECK(made.next == way::answer);
  CHECK(made.answer.status == 200);
  CHECK(made.answer.body == "ok\n");
}

TEST_CASE("a link gives a cookie and leads to the page, once") {
  doorway at;
  const auto link = at.door.view_link();
  CHECK(link.starts_with("http://127.0.0.1:8000/?token="));
  const auto path = at.path_of(link);
  const auto in = at.judge(at.get(path));
  CHECK(in.answer.status == 303);
  CHECK(header_of(in, "Location") == "/");
  const auto cookie = header_of(in, "Set-Cookie");
  CHECK(cookie
        == at.view_cookie.substr(5) + "; Path=/; HttpOnly; SameSite=Strict");
  const auto again = at.judge(at.get(path));
  CHECK(again.answer.status == 401);
  CHECK(header_of(again, "WWW-Authenticate") == "Bearer");
  CHECK(again.answer.type == "text/html; charset=utf-8");
  CHECK(header_of(again, "Set-Cookie").empty());
}

TEST_CASE("a used link leads on who may look already, and gives no rights") {
  doorway at;
  const auto path = at.path_of(at.door.control_link());
  CHECK(at.status(at.get(path)) == 303);
  const auto again = at.judge(at.get(path, at.view_cookie));
  CHECK(again.answer.status == 303);
  CHECK(header_of(again, "Location") == "/");
  CHECK(header_of(again, "Set-Cookie").empty());
  CHECK(at.status(at.get(path, "troupe_8000=wrong")) == 401);
}

TEST_CASE("under TLS the cookie is not for other connections") {
  doorway at{{}, true};
  const auto link = at.door.control_link();
  CHECK(link.starts_with("https://127.0.0.1:8000/?token="));
  const auto cookie =
    header_of(at.judge(at.get(at.path_of(link))), "Set-Cookie");
  CHECK(cookie.starts_with(at.control_cookie));
  CHECK(cookie.ends_with("; Secure"));
}

TEST_CASE("a HEAD of a link does not use it up") {
  doorway at;
  const auto path = at.path_of(at.door.view_link());
  auto head = at.get(path);
  head.method = "HEAD";
  CHECK(at.status(head) == 401);
  CHECK(at.status(at.get(path)) == 303);
}

TEST_CASE("without a session people get a page that says how to get one, and "
          "programs a line") {
  doorway at;
  const auto refused = [&](const char* path, std::string_view type) {
    CAPTURE(path);
    const auto made = at.judge(at.get(path));
    CHECK(made.answer.status == 401);
    CHECK(header_of(made, "WWW-Authenticate") == "Bearer");
    CHECK(made.answer.type == type);
    CHECK(test::contains(made.answer.body, "the link that the run printed"));
  };
  for (const auto* path : {"/", "/app.js", "/none"})
    refused(path, "text/html; charset=utf-8");
  for (const auto* path : {"/api/v1/run", "/metrics", "/api/v1/live"})
    refused(path, web_response{}.type);
  CHECK(at.status(at.post("")) == 401);
}

TEST_CASE("the cookie of another port, run or form opens nothing") {
  doorway at;
  const doorway other;
  CHECK(at.status(at.get("/", other.view_cookie)) == 401);
  CHECK(at.status(at.get("/", "troupe_8001=" + at.view_cookie.substr(17)))
        == 401);
  CHECK(at.status(at.get("/", at.view_cookie.substr(0, 60))) == 401);
}

TEST_CASE("with a session the handler is asked") {
  doorway at;
  const auto asked = at.judge(at.get("/api/v1/why?handle=7", at.view_cookie));
  CHECK(asked.next == way::ask);
  CHECK(asked.request.method == "GET");
  CHECK(asked.request.path == "/api/v1/why");
  CHECK(asked.request.query.at("handle") == "7");
  CHECK_FALSE(asked.request.may_control);
  CHECK(at.judge(at.get("/", at.control_cookie)).request.may_control);
  auto head = at.get("/", at.view_cookie);
  head.method = "HEAD";
  CHECK(at.judge(head).request.method == "GET");
}

TEST_CASE(
  "a program that shows the secret of the token file looks, and no more") {
  const test::temporary_folder folder;
  const auto path = (folder / "token").string();
  doorway at{web_access{path}};
  auto secret = "Bearer " + test::read_bytes(path);
  secret.pop_back();
  auto head = at.get("/metrics");
  head.authorization = secret;
  CHECK(at.judge(head).next == way::ask);
  CHECK_FALSE(at.judge(head).request.may_control);
  auto command = at.post("");
  command.authorization = secret;
  CHECK(at.status(command) == 403);
  head.authorization = "Bearer wrong";
  const auto wrong = at.judge(head);
  CHECK(wrong.answer.status == 401);
  CHECK(test::contains(wrong.answer.body, "not the secret of the token file"));
  const auto none = at.judge(at.get("/metrics"));
  CHECK(test::contains(none.answer.body, "show the secret of its token file"));
  auto live = at.live("");
  live.authorization = secret;
  live.origin_headers = 0;
  CHECK(at.judge(live).next == way::watch);
}

TEST_CASE("only a session to control sends commands") {
  doorway at;
  CHECK(at.status(at.post(at.view_cookie)) == 403);
  const auto asked = at.judge(at.post(at.control_cookie));
  CHECK(asked.next == way::ask);
  CHECK(asked.request.method == "POST");
  CHECK(asked.request.may_control);
  auto form = at.post(at.control_cookie);
  form.content_type = "application/x-www-form-urlencoded";
  CHECK(at.status(form) == 415);
  form.content_type = "application/jsonx";
  CHECK(at.status(form) == 415);
  form.content_type = "application/json; charset=utf-8";
  CHECK(at.judge(form).next == way::ask);
}

TEST_CASE("other methods are refused, with those that there are") {
  doorway at;
  for (const auto* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", ""}) {
    auto head = at.get("/api/v1/run", at.control_cookie);
    head.method = method;
    const auto made = at.judge(head);
    CHECK(made.answer.status == 405);
    CHECK(header_of(made, "Allow") == "GET, HEAD");
  }
  const auto control = at.judge(at.get("/api/v1/control", at.control_cookie));
  CHECK(control.answer.status == 405);
  CHECK(header_of(control, "Allow") == "POST");
}

TEST_CASE("another Host is refused, even with a session") {
  doorway at;
  auto head = at.get("/", at.control_cookie);
  head.host = "rebound.example:8000";
  CHECK(at.status(head) == 403);
  head = at.get("/healthz");
  head.host = "127.0.0.1";
  CHECK(at.status(head) == 403);
  head.host_headers = 0;
  CHECK(at.status(head) == 400);
  head.host_headers = 2;
  CHECK(at.status(head) == 400);
}

TEST_CASE("a request from another Origin is refused, even with a session") {
  doorway at;
  auto head = at.from_own_page(at.post(at.control_cookie));
  CHECK(at.judge(head).next == way::ask);
  for (const auto* origin :
       {"http://127.0.0.1:8001", "https://127.0.0.1:8000", "null", ""}) {
    head.origin = origin;
    CHECK(at.status(head) == 403);
  }
  head.origin = "http://127.0.0.1:8000";
  head.origin_headers = 2;
  CHECK(at.status(head) == 400);
}

TEST_CASE("a wrong link of a foreign page does not reach the secrets") {
  doorway at;
  const auto path = at.path_of(at.door.view_link());
  auto head = at.from_own_page(at.get(path));
  head.origin = "http://other.example";
  CHECK(at.status(head) == 403);
  CHECK(at.status(at.get(path)) == 303);
}

TEST_CASE("a WebSocket needs a session, an Origin and the protocol") {
  doorway at;
  CHECK(at.judge(at.live(at.view_cookie)).next == way::watch);
  CHECK(at.status(at.live("")) == 401);
  auto head = at.live(at.view_cookie);
  head.origin_headers = 0;
  CHECK(at.status(head) == 403);
  head = at.live(at.view_cookie);
  head.protocols = "other";
  CHECK(at.status(head) == 400);
  head = at.live(at.view_cookie);
  head.is_upgrade = false;
  CHECK(at.status(head) == 426);
}

TEST_CASE("targets that are none are refused") {
  doorway at;
  CHECK(at.status(at.get("http://127.0.0.1:8000/", at.view_cookie)) == 400);
  CHECK(at.status(at.get("/?handle=%0a", at.view_cookie)) == 400);
}

TEST_CASE("after ten wrong tokens in a second others get 429, right ones not") {
  doorway at;
  for (int i = 0; i < 10; ++i)
    CHECK(at.status(at.get("/?token=0")) == 401);
  const auto limited = at.judge(at.get("/?token=0"));
  CHECK(limited.answer.status == 429);
  CHECK(limited.ends_connection);
  CHECK(at.status(at.get("/", "troupe_8000=wrong")) == 429);
  CHECK(at.status(at.get("/")) == 401); // shows none
  CHECK(at.judge(at.get("/", at.view_cookie)).next == way::ask);
  CHECK(at.status(at.get(at.path_of(at.door.view_link()))) == 303);
  CHECK(at.door.judge(at.get("/?token=0"), start + 1s).answer.status == 401);
}
} // TEST_SUITE("dashboard.front_door")
