// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/server/front_door.hpp>

#include <troupe/dashboard/server/request_text.hpp>

#include <algorithm>

namespace troupe::dashboard {

namespace {

/// Wrong secrets that are answered at once, and then per second. They are too
/// long to be guessed: this keeps those who try from being a load.
constexpr double failures_allowed = 10;

constexpr std::string_view health_path = "/healthz";
constexpr std::string_view control_path = "/api/v1/control";
constexpr std::string_view live_path = "/api/v1/live";

/// A page of one paragraph, for people who have no session.
verdict page_answer(unsigned status, const std::string& paragraph) {
  verdict made;
  made.answer = {status, "text/html; charset=utf-8",
                 "<!doctype html>\n<html lang=\"en\"><head><meta "
                 "charset=\"utf-8\"><title>Troupe</title><link rel=\"icon\" "
                 "href=\"data:,\"></head><body><p>"
                   + paragraph + "</p></body></html>\n"};
  return made;
}

verdict to_the_page() {
  auto made = page_answer(303, "The dashboard is <a href=\"/\">here</a>.");
  made.headers.emplace_back("Location", "/");
  return made;
}

/// A refusal of who shows nothing that gives access: status 401 says how to.
verdict without_access(verdict refusal) {
  refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
  return refusal;
}

bool is_for_programs(std::string_view path) {
  return path.starts_with("/api/") || path == "/metrics";
}

bool is_json(std::string_view content_type) {
  constexpr std::string_view json = "application/json";
  return content_type.starts_with(json)
         && (content_type.size() == json.size()
             || content_type[json.size()] == ';');
}

/// Refuses methods that the path does not have.
std::optional<verdict> refuse_method(std::string_view method,
                                     std::string_view path) {
  const auto is_control = path == control_path;
  if (is_control ? method == "POST" : method == "GET" || method == "HEAD")
    return std::nullopt;
  auto refusal = plain_answer(405, "this path does not have that method");
  refusal.headers.emplace_back("Allow", is_control ? "POST" : "GET, HEAD");
  return refusal;
}

verdict judge_watcher(const request_head& head) {
  if (!head.is_upgrade) {
    auto refusal = plain_answer(426, "this path is a WebSocket");
    refusal.headers.emplace_back("Upgrade", "websocket");
    return refusal;
  }
  if (!is_in_list(head.protocols, live_protocol))
    return plain_answer(400, "the WebSocket's protocol is troupe.v1");
  // Browsers always say where a page is from.
  if (head.origin_headers == 0 && !bearer_in(head.authorization))
    return plain_answer(403, "a WebSocket without Origin");
  verdict watch;
  watch.next = verdict::way::watch;
  return watch;
}

verdict too_many_failures() {
  auto refusal = plain_answer(429, "too many wrong tokens");
  refusal.ends_connection = true;
  return refusal;
}

std::optional<verdict> refuse_control(const request_head& head, right has) {
  if (has != right::control)
    return plain_answer(403, "this session may view the run, not control it: "
                             "open the link with controls");
  if (!is_json(head.content_type))
    return plain_answer(415, "a command is application/json");
  return std::nullopt;
}

} // namespace

verdict plain_answer(unsigned status, const std::string& line) {
  verdict made;
  made.answer.status = status;
  made.answer.body = line + "\n";
  return made;
}

const std::vector<std::pair<std::string, std::string>>& common_headers() {
  static const std::vector<std::pair<std::string, std::string>> all{
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src "
     "'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
     "frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cache-Control", "no-store"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
  };
  return all;
}

front_door::front_door(web_access access, own_hosts hosts)
  : access_(std::move(access)), hosts_(std::move(hosts)),
    // Browsers keep the cookies of all ports of a host together.
    cookie_name_("troupe_" + std::to_string(hosts_.port())),
    failures_(failures_allowed, failures_allowed) {}

verdict front_door::judge(const request_head& head,
                          rate_limit::time_point now) {
  if (auto refusal = refuse_stranger(head))
    return *std::move(refusal);
  auto target = parse_target(head.target);
  if (!target)
    return plain_answer(400, "not a path of this server");
  const auto& path = target->path;
  if (auto refusal = refuse_method(head.method, path))
    return *std::move(refusal);
  if (path == health_path)
    return plain_answer(200, "ok");
  if (const auto token = target->query.find("token");
      path == "/" && head.method == "GET" && token != target->query.end())
    return let_in(token->second, right_of(head), now);
  const auto has = right_of(head);
  if (has == right::none)
    return refuse_unknown(head, path, now);
  if (path == live_path)
    return judge_watcher(head);
  if (path == control_path)
    if (auto refusal = refuse_control(head, has))
      return *std::move(refusal);
  verdict ask;
  ask.next = verdict::way::ask;
  ask.request = {.method = path == control_path ? "POST" : "GET",
                 .path = path,
                 .query = std::move(target->query),
                 .may_control = has == right::control};
  return ask;
}

/// Refuses requests to other names, and those of other servers' pages.
std::optional<verdict>
front_door::refuse_stranger(const request_head& head) const {
  if (head.host_headers != 1 || head.origin_headers > 1)
    return plain_answer(400, "a request has one Host, and at most one Origin");
  if (!hosts_.knows(head.host))
    return plain_answer(403, "this server is not known as that Host");
  if (head.origin_headers == 1 && !hosts_.is_own_origin(head.origin, head.host))
    return plain_answer(403, "the request is from another Origin");
  return std::nullopt;
}

/// A used link leads on whoever may look already, with the rights of before.
verdict front_door::let_in(const std::string& token, right has,
                           rate_limit::time_point now) {
  const auto gets = access_.redeem(token);
  if (gets == right::none && has != right::none)
    return to_the_page();
  if (gets == right::none)
    return failures_.allows(now) ? without_access(page_answer(
             401, "This link does not open the dashboard, or did so "
                  "before. A link opens it once."))
                                 : too_many_failures();
  auto in = to_the_page();
  in.headers.emplace_back("Set-Cookie",
                          cookie_name_ + "=" + access_.cookie_of(gets)
                            + "; Path=/; HttpOnly; SameSite=Strict"
                            + (hosts_.has_tls() ? "; Secure" : ""));
  return in;
}

right front_door::right_of(const request_head& head) const {
  const auto cookie = cookie_in(head.cookie, cookie_name_);
  const auto bearer = bearer_in(head.authorization);
  return std::max(cookie ? access_.right_of_cookie(*cookie) : right::none,
                  bearer ? access_.right_of_bearer(*bearer) : right::none);
}

/// Refuses who shows no secret or a wrong one. A right one is never refused, so
/// that strangers cannot lock out others.
verdict front_door::refuse_unknown(const request_head& head,
                                   const std::string& path,
                                   rate_limit::time_point now) {
  const auto shows_secret =
    cookie_in(head.cookie, cookie_name_) || bearer_in(head.authorization);
  if (shows_secret && !failures_.allows(now))
    return too_many_failures();
  if (!is_for_programs(path))
    return without_access(page_answer(
      401, "Open the dashboard with the link that the run printed when it "
           "began: it has a token. A link opens the dashboard once, in one "
           "browser. Programs show the secret of the token file instead, as "
           "<code>Authorization: Bearer SECRET</code>."));
  return without_access(plain_answer(
    401, !shows_secret
           ? "open the dashboard with the link that the run printed, or "
             "show the secret of its token file"
         : bearer_in(head.authorization)
           ? "this is not the secret of the token file"
           : "this cookie is of another run, or of an earlier one: open the "
             "link that the run printed"));
}

std::string front_door::view_link() const {
  return link(access_.view_token());
}

std::string front_door::control_link() const {
  return link(access_.control_token());
}

std::string front_door::link(const std::string& token) const {
  return hosts_.origin() + "/?token=" + token;
}

} // namespace troupe::dashboard
