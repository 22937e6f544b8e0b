// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/board.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/base/threads.hpp>
#include <troupe/dashboard/page/page_files.hpp>
#include <troupe/dashboard/picture/answers.hpp>
#include <troupe/dashboard/picture/live_picture.hpp>
#include <troupe/dashboard/server/web_server.hpp>
#include <troupe/dashboard/source/attention.hpp>
#include <troupe/dashboard/source/live_source.hpp>
#include <troupe/dashboard/source/recorded_source.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <random>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <time.h>

namespace troupe::dashboard {

using nlohmann::json;

namespace {

using steady = std::chrono::steady_clock;

constexpr std::chrono::milliseconds between_frames{100};
constexpr std::size_t most_holders = 20;
constexpr std::int64_t most_op_delay_ms = 10'000;

double cpu_seconds_of_thread() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

/// No two runs that a page can see have the same one.
std::string new_run_id() {
  std::random_device random;
  std::array<char, 32> text{};
  const auto value = std::uint64_t{random()} << 32 | random();
  const auto end =
    std::to_chars(text.data(), text.data() + text.size(), value, 16).ptr;
  return {text.data(), end};
}

/// Names in it come from program files, which can hold any bytes.
std::string text_of(const json& answer) {
  return answer.dump(-1, ' ', false, json::error_handler_t::replace);
}

web_response json_response(const json& answer) {
  return {200, "application/json", text_of(answer)};
}

web_response refusal(unsigned status, const std::string& why) {
  return {status, "application/json", text_of({{"error", why}})};
}

unsigned status_of(errc failure) {
  return failure == errc::not_found    ? 404
         : failure == errc::io_failure ? 500
                                       : 400;
}

/// The handle of "?handle=ID". Throws error(invalid_argument).
std::optional<handle_id> handle_of(const web_request& request) {
  const auto found = request.query.find("handle");
  if (found == request.query.end())
    return {};
  handle_id id = 0;
  const auto& text = found->second;
  const auto [end, ok] =
    std::from_chars(text.data(), text.data() + text.size(), id);
  if (ok != std::errc{} || end != text.data() + text.size())
    throw error(errc::invalid_argument, "handle must be a number");
  return id;
}

/// Takes "HOST:PORT", "[::1]:PORT", ":PORT" or "PORT" apart.
void set_address(web_server_options& options, std::string_view text) {
  const auto colon = text.rfind(':');
  auto host = colon == text.npos ? std::string_view{} : text.substr(0, colon);
  const auto port = colon == text.npos ? text : text.substr(colon + 1);
  const auto* const end = port.data() + port.size();
  const auto read = std::from_chars(port.data(), end, options.port);
  if (read.ec == std::errc::result_out_of_range && read.ptr == end)
    throw error(errc::invalid_argument,
                "the port must be from 0 to 65535, not " + std::string{port});
  if (port.empty() || read.ec != std::errc{} || read.ptr != end)
    throw error(errc::invalid_argument,
                "an address is HOST:PORT, not " + quoted_name(text));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  if (!host.empty())
    options.address = host;
}

web_server_options server_options_of(const board_options& options) {
  web_server_options made;
  set_address(made, options.address);
  made.certificate = options.certificate.string();
  made.key = options.key.string();
  return made;
}

web_access access_of(const board_options& options) {
  return options.token_file.empty() ? web_access{}
                                    : web_access{options.token_file.string()};
}

} // namespace

/// All state of a board. A thread of its own follows the run; questions are
/// answered on the server's thread.
class board::hub {
public:
  explicit hub(const board_options& options)
    : server_(server_options_of(options), access_of(options),
              [this](const web_request& r) { return answer(r); }),
      follower_(start_thread("troupe-board", [this] { follow(); })) {}

  ~hub() {
    {
      std::lock_guard guard{mutex_};
      is_over_ = true;
    }
    ended_.notify_all();
    follower_.join();
  }

  /// Returns the number of what is shown now.
  std::uint64_t show(std::unique_ptr<event_source> source,
                     const std::string& command) {
    std::lock_guard guard{mutex_};
    source_ = std::move(source);
    run_ = source_->head().run;
    if (!command.empty())
      run_.command = command;
    file_ = !source_->is_recorded()       ? recording::none
            : source_->head().is_complete ? recording::whole
                                          : recording::cut;
    begin_picture();
    return ++shown_;
  }

  /// The run has ended; its picture stays.
  void end_run(std::uint64_t number) {
    std::lock_guard guard{mutex_};
    if (!source_ || number != shown_)
      return;
    take_events();
    state_.state =
      state_.failure.empty() ? run_state::ended : run_state::failed;
    state_.busy.assign(state_.busy.size(), 0);
    state_.delayed.clear();
    source_.reset();
    publish();
  }

  void tell(const step_report& step) {
    std::lock_guard guard{mutex_};
    if (picture_)
      picture_->add(step_record{.step = static_cast<std::uint32_t>(step.step),
                                .ms = {},
                                .loss = step.loss,
                                .own_samples_per_s = step.samples_per_s,
                                .learning_rate = step.learning_rate});
  }

  void fail(const std::string& why) {
    std::lock_guard guard{mutex_};
    if (source_)
      failure_ = why;
  }

  void warn(const std::string& what) {
    std::lock_guard guard{mutex_};
    if (!source_)
      return;
    state_.warning = what;
    state_.warning_ns = source_->now_ns();
    ++state_.warnings;
  }

  const web_server& server() const noexcept { return server_; }

private:
  // Called with the mutex held.

  void begin_picture() {
    const auto& head = source_->head();
    ranks_ = source_->ranks();
    std::vector<std::size_t> processes;
    for (const auto& rank : ranks_)
      processes.push_back(rank.process);
    picture_ =
      std::make_unique<live_picture>(head.graph, processes, head.run.workers);
    picture_->expect(head.events);
    frames_ = {};
    graph_text_.clear();
    generation_ = source_->generation();
    failure_.clear();
    const auto cpu_seconds = state_.cpu_seconds; // of the board, not of the run
    state_ = {};
    state_.run = new_run_id();
    state_.cpu_seconds = cpu_seconds;
    rates_since_ = steady::now();
    messages_before_ = steps_before_ = 0;
    busy_before_.clear();
    is_watched_ = false;
  }

  /// Ops that are under way when nobody looks any more end unseen.
  void watch(bool by_somebody) {
    source_->watch(by_somebody);
    if (std::exchange(is_watched_, by_somebody) && !by_somebody) {
      take_events();
      picture_->slices().forget_open(state_.now_ns);
      picture_->collectives().forget_open();
    }
  }

  void take_events() {
    if (source_->generation() != generation_)
      begin_picture();
    picture_->add(source_->take());
    picture_->add(source_->take_actors());
    // After the events: what is delayed has not begun in any of them.
    state_.delayed = source_->delayed_ops();
    for (const auto& op : state_.delayed)
      picture_->take_delayed(op.handle, static_cast<std::uint32_t>(op.step));
    state_.now_ns = source_->now_ns();
    state_.lost = source_->lost();
    state_.level = source_->level();
    state_.op_delay_ms = source_->op_delay().count();
    state_.state = state_now();
    state_.failure = !failure_.empty() ? failure_
                     : picture_->failure().empty()
                       ? std::string{}
                       : picture_->failure() + " failed";
  }

  run_state state_now() const {
    if (const auto known = source_->state(); known != run_state::idle)
      return known;
    return picture_->newest_step() ? run_state::running : run_state::idle;
  }

  void measure() {
    constexpr std::chrono::milliseconds least{500};
    const auto now = steady::now();
    const auto seconds =
      std::chrono::duration<double>(now - rates_since_).count();
    if (now - rates_since_ < least)
      return;
    rates_since_ = now;
    const auto per_s = [&](std::uint64_t total, std::uint64_t& before) {
      return static_cast<double>(total - std::exchange(before, total))
             / seconds;
    };
    state_.messages_per_s = per_s(picture_->messages(), messages_before_);
    state_.steps_per_s = per_s(picture_->steps_ended(), steps_before_);
    state_.busy.resize(picture_->workers());
    busy_before_.resize(state_.busy.size());
    for (std::size_t w = 0; w < state_.busy.size(); ++w) {
      const auto busy = picture_->slices().busy_ns(w, state_.now_ns);
      const auto ns = busy - std::exchange(busy_before_[w], busy);
      state_.busy[w] = std::min(1.0, static_cast<double>(ns) / (seconds * 1e9));
    }
    const auto before = std::exchange(
      state_.cpu_seconds, cpu_seconds_of_thread() + server_.cpu_seconds());
    state_.overhead = (state_.cpu_seconds - before) / seconds;
  }

  void publish() {
    state_.watchers = server_.watchers();
    ++state_.frame;
    if (state_.watchers > 0)
      server_.publish(
        std::make_shared<const std::string>(frames_.next(*picture_, state_)));
  }

  web_response answer_of_picture(const web_request& request);
  json why(std::optional<handle_id> id);
  web_response obey(const web_request& request);
  const std::string& graph_text();

  // Take the mutex.

  void follow() {
    std::unique_lock lock{mutex_};
    while (!ended_.wait_for(lock, between_frames, [this] { return is_over_; }))
      if (source_) {
        watch(server_.watchers() > 0 || scripts_.is_there(steady::now()));
        take_events();
        measure();
        publish();
      }
  }

  web_response answer(const web_request& request);

  std::mutex mutex_; // guards all up to the server
  std::condition_variable ended_;
  bool is_over_ = false;
  std::unique_ptr<event_source> source_; // null: none, or its run has ended
  std::uint64_t shown_ = 0;              // number of what is or was shown
  std::unique_ptr<live_picture> picture_;
  trace::run_info run_;
  std::vector<trace::run_info> ranks_; // that are shown
  recording file_ = recording::none;
  std::uint64_t generation_ = 0;
  frame_maker frames_;
  board_state state_;
  std::string failure_;    // that was told; empty: none
  std::string graph_text_; // empty: not asked for yet
  steady::time_point rates_since_;
  attention scripts_;
  bool is_watched_ = false;
  std::uint64_t messages_before_ = 0, steps_before_ = 0;
  std::vector<std::uint64_t> busy_before_; // by worker

  web_server server_;    // asks for all above
  std::thread follower_; // uses all above
};

/// Laid out when somebody asks for the first time.
const std::string& board::hub::graph_text() {
  if (graph_text_.empty())
    graph_text_ = text_of(graph_answer(*picture_, state_));
  return graph_text_;
}

web_response board::hub::answer_of_picture(const web_request& request) {
  const auto& path = request.path;
  if (path == "/metrics")
    return {200, "text/plain; version=0.0.4",
            prometheus_text(*picture_, run_, state_, ranks_)};
  if (path == "/api/v1/run")
    return json_response(
      run_answer(run_, ranks_, state_, file_, request.may_control));
  if (path == "/api/v1/graph")
    return {200, "application/json", graph_text()};
  if (path == "/api/v1/state")
    return json_response(head_answer(*picture_, state_));
  if (path == "/api/v1/series")
    return json_response(series_answer(*picture_));
  if (path == "/api/v1/collectives")
    return json_response(
      collectives_answer(*picture_, state_.now_ns,
                         {source_ ? source_->collectives()
                                  : std::vector<actors::collective_wait>{},
                          now_ns()}));
  if (path == "/api/v1/memory")
    return json_response(memory_answer(*picture_, most_holders));
  if (path == "/api/v1/actors")
    return json_response(actors_answer(*picture_, ranks_, state_));
  if (path == "/api/v1/timeline")
    return json_response(timeline_answer(*picture_));
  if (path == "/api/v1/why")
    return json_response(why(handle_of(request)));
  if (path == "/api/v1/control")
    return obey(request);
  return refusal(404, "no such path");
}

json board::hub::why(std::optional<handle_id> id) {
  using actors::progress;
  if (!source_)
    return why_answer({});
  const auto is_paused = source_->state() == run_state::paused;
  auto chain = source_->why(*picture_, id);
  const auto is_over = chain.links.empty()
                       || chain.links.back().how_far == progress::is_done
                       || chain.links.back().how_far == progress::no_step;
  if (!is_paused || !is_over)
    return why_answer(chain);
  take_events(); // the picture may not know of the newest step yet
  return paused_answer(*picture_, std::move(chain));
}

/// The body is {"command":"slow","op_delay_ms":50}.
web_response board::hub::obey(const web_request& request) {
  const auto body = json::parse(request.body, nullptr, false);
  if (!body.is_object() || !body.contains("command")
      || !body["command"].is_string())
    throw error(errc::invalid_argument,
                R"(the body must be like {"command":"pause"})");
  if (!source_)
    throw error(errc::invalid_argument, "the run has ended");
  const auto what = parse_command(body["command"].get<std::string>());
  std::int64_t delay_ms = 0;
  if (what == command::slow) {
    const auto given = body.find("op_delay_ms");
    if (given == body.end() || !given->is_number_integer()
        || (delay_ms = given->get<std::int64_t>()) < 0
        || delay_ms > most_op_delay_ms)
      throw error(errc::invalid_argument,
                  "op_delay_ms must be a number from 0 to "
                    + std::to_string(most_op_delay_ms));
  }
  const auto written = source_->obey(what, std::chrono::milliseconds{delay_ms});
  take_events();
  return json_response(
    {{"state", to_string(state_.state)},
     {"op_delay_ms", state_.op_delay_ms},
     {"file", written ? json(std::filesystem::absolute(*written).string())
                      : json(nullptr)}});
}

web_response board::hub::answer(const web_request& request) {
  const auto is_schema = request.path == "/api/v1/schema";
  if (const auto* file =
        find_page_file(is_schema ? "/schema.json" : request.path))
    return {200, std::string{file->type}, std::string{file->content}};
  std::lock_guard guard{mutex_};
  scripts_.note(request.path, steady::now());
  if (!picture_)
    return refusal(503, "no run is shown yet");
  try {
    return answer_of_picture(request);
  } catch (const error& e) {
    return refusal(status_of(e.code()), e.message());
  }
}

void require_safe(const board_options& options) {
  require_safe(server_options_of(options), !options.token_file.empty());
}

board::board(const board_options& options)
  : hub_(std::make_unique<hub>(options)) {}

board::~board() = default;

board::shown_run::~shown_run() {
  on_.hub_->end_run(number_);
}

std::unique_ptr<board::shown_run> board::show(executor& run,
                                              const std::string& command) {
  const auto number = hub_->show(std::make_unique<live_source>(run), command);
  return std::make_unique<shown_run>(*this, number);
}

void board::show(std::vector<trace::process_trace> recorded) {
  hub_->show(std::make_unique<recorded_source>(std::move(recorded)), {});
}

void board::tell(const step_report& step) {
  hub_->tell(step);
}

void board::fail(const std::string& why) {
  hub_->fail(why);
}

void board::warn(const std::string& what) {
  hub_->warn(what);
}

const std::string& board::view_link() const noexcept {
  return hub_->server().view_link();
}

const std::string& board::control_link() const noexcept {
  return hub_->server().control_link();
}

} // namespace troupe::dashboard
