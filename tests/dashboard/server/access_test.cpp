// SPDX-License-Identifier: Apache-2.0
#include <support/caught.hpp>
#include <support/files.hpp>
#include <troupe/dashboard/server/access.hpp>

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::dashboard;

TEST_SUITE("dashboard.access") {

namespace {

const std::string good_secret = "0123456789abcdef0123456789ABCDEF";

/// A token file with these contents, for its owner alone.
std::string write_token_file(const test::temporary_folder& folder,
                             const std::string& text, mode_t mode = 0600) {
  const auto path = (folder / "token").string();
  test::write_bytes(path, text);
  ::chmod(path.c_str(), mode);
  return path;
}

errc code_for(const std::string& path) {
  const auto thrown = test::caught([&] { web_access{path}; });
  CHECK(test::says(thrown, "token file"));
  return thrown.code();
}

} // namespace

TEST_CASE("a link opens the dashboard once") {
  web_access access;
  const auto view = access.view_token(), control = access.control_token();
  CHECK(view.size() == 32);
  CHECK(control.size() == 32);
  CHECK(access.redeem(view) == right::view);
  CHECK(access.redeem(view) == right::none);
  CHECK(access.redeem(control) == right::control);
  CHECK(access.redeem(control) == right::none);
  CHECK(access.redeem("") == right::none);
}

TEST_CASE("what is no link's token opens nothing and uses nothing up") {
  web_access access;
  auto almost = access.view_token();
  almost.back() = almost.back() == '0' ? '1' : '0';
  CHECK(access.redeem(almost) == right::none);
  CHECK(access.redeem(access.view_token().substr(0, 31)) == right::none);
  CHECK(access.redeem("") == right::none);
  CHECK(access.redeem(access.cookie_of(right::view)) == right::none);
  CHECK(access.redeem(access.view_token()) == right::view);
}

TEST_CASE("a cookie proves the right for which it was given") {
  const web_access access;
  const auto view = access.cookie_of(right::view);
  CHECK(access.right_of_cookie(view) == right::view);
  CHECK(access.right_of_cookie(access.cookie_of(right::control))
        == right::control);
  CHECK(access.right_of_cookie("") == right::none);
  CHECK(access.right_of_cookie(view.substr(1)) == right::none);
  const auto control = access.cookie_of(right::control);
  CHECK(access.right_of_cookie(std::string(control.size(), '0'))
        == right::none);
  CHECK(access.right_of_cookie(control.substr(view.size())) == right::none);
  CHECK(access.right_of_cookie(access.view_token()) == right::none);
}

TEST_CASE("no two secrets of any two runs are the same") {
  std::set<std::string> all;
  for (int run = 0; run < 100; ++run) {
    const web_access access;
    all.insert({access.view_token(), access.control_token(),
                access.cookie_of(right::view),
                access.cookie_of(right::control)});
  }
  CHECK(all.size() == 400);
}

TEST_CASE("without a token file no secret of a program is right") {
  const web_access access;
  CHECK_FALSE(access.has_token_file());
  CHECK(access.right_of_bearer("") == right::none);
  CHECK(access.right_of_bearer(access.control_token()) == right::none);
  CHECK(access.right_of_bearer(access.cookie_of(right::control))
        == right::none);
}

TEST_CASE("the secret of a token file proves the right to view, and no more") {
  const test::temporary_folder folder;
  const web_access access{write_token_file(folder, good_secret + "\n")};
  CHECK(access.has_token_file());
  CHECK(access.right_of_bearer(good_secret) == right::view);
  CHECK(access.right_of_bearer(good_secret + "0") == right::none);
  CHECK(access.right_of_bearer("") == right::none);
}

TEST_CASE("cookies of one token file let look at its next run, links do not") {
  const test::temporary_folder folder;
  const auto path = write_token_file(folder, good_secret);
  web_access first{path}, second{path};
  CHECK(second.right_of_cookie(first.cookie_of(right::view)) == right::view);
  CHECK(second.right_of_cookie(first.cookie_of(right::control)) == right::view);
  // Otherwise it would follow from the file's secret.
  CHECK(second.cookie_of(right::control) != first.cookie_of(right::control));
  CHECK(second.redeem(first.view_token()) == right::none);
  CHECK(second.right_of_cookie(good_secret) == right::none);
}

TEST_CASE("a missing token file is made for its owner alone") {
  const test::temporary_folder folder;
  const auto path = (folder / "token").string();
  const web_access made{path};
  CHECK(test::permissions_of(path) == 0600);
  auto secret = test::read_bytes(path);
  REQUIRE(secret.size() == 33);
  secret.pop_back();
  CHECK(made.right_of_bearer(secret) == right::view);
  CHECK(web_access{path}.right_of_bearer(secret) == right::view);
  CHECK(test::read_bytes(path) == secret + "\n");
}

TEST_CASE("those that make a token file at once have the same secret") {
  const test::temporary_folder folder;
  for (int file = 0; file < 20; ++file) {
    const auto path = (folder / std::to_string(file)).string();
    std::vector<std::string> cookies(8);
    std::vector<std::thread> threads;
    for (auto& cookie : cookies)
      threads.emplace_back(
        [&] { cookie = web_access{path}.cookie_of(right::view); });
    for (auto& thread : threads)
      thread.join();
    CHECK(std::ranges::count(cookies, cookies.front()) == 8);
  }
  // Nothing else is left.
  CHECK(std::distance(std::filesystem::directory_iterator{folder.path()},
                      std::filesystem::directory_iterator{})
        == 20);
}

TEST_CASE("a token file that others may read is refused") {
  const test::temporary_folder folder;
  CHECK(code_for(write_token_file(folder, good_secret, 0640))
        == errc::invalid_argument);
  CHECK(code_for(write_token_file(folder, good_secret, 0604))
        == errc::invalid_argument);
}

TEST_CASE("a token file of another user is refused"
          * doctest::skip(::geteuid() != 0)) {
  const test::temporary_folder folder;
  const auto path = write_token_file(folder, good_secret);
  REQUIRE(::chown(path.c_str(), 12345, 12345) == 0);
  CHECK(code_for(path) == errc::invalid_argument);
}

TEST_CASE("a token file with other contents is refused") {
  const test::temporary_folder folder;
  for (const auto& text :
       {std::string{}, std::string{"\n"}, std::string(31, 'a'),
        std::string(257, 'a'), good_secret + "\n\n", good_secret + " ",
        good_secret + "\nx\n", std::string(33, '\0')})
    CHECK_MESSAGE(code_for(write_token_file(folder, text)) == errc::bad_file,
                  text);
  CHECK(code_for(folder.path().string()) == errc::bad_file);
  CHECK(code_for((folder / "none/token").string()) == errc::io_failure);
  const auto pipe = (folder / "pipe").string();
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(code_for(pipe) == errc::bad_file);
}

TEST_CASE("texts are equal in constant time if they are equal") {
  CHECK(equal_in_constant_time("", ""));
  CHECK(equal_in_constant_time("abc", "abc"));
  CHECK_FALSE(equal_in_constant_time("abc", "abd"));
  CHECK_FALSE(equal_in_constant_time("abc", "ab"));
}
} // TEST_SUITE("dashboard.access")
