// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/tls/certificates.hpp>
#include <troupe/comm/tls/job_credentials.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::comm;
using namespace std::chrono_literals;
using namespace troupe::test;

TEST_SUITE("comm.tls.job_credentials") {

namespace {

bool same(const job_credentials& a, const job_credentials& b) {
  return a.authority == b.authority && a.certificate == b.certificate
         && a.key == b.key && a.knock == b.knock && a.answer == b.answer;
}

errc code_of(const std::string& text) {
  return caught([&] { parse_credentials(text); }).code();
}

} // namespace

TEST_CASE("processes of a job share authority and secrets, nothing else") {
  const auto all = make_job_credentials(3);
  REQUIRE(all.size() == 3);
  std::set<std::string> certificates, keys;
  for (const auto& own : all) {
    CHECK(own.authority == all[0].authority);
    CHECK(own.knock == all[0].knock);
    CHECK(own.answer == all[0].answer);
    certificates.insert(own.certificate);
    keys.insert(own.key);
  }
  CHECK(certificates.size() == 3);
  CHECK(keys.size() == 3);
  CHECK(all[0].knock != all[0].answer);
  CHECK(make_job_credentials(0).empty());
}

TEST_CASE("jobs share nothing") {
  const auto one = make_job_credentials(1), other = make_job_credentials(1);
  CHECK(one[0].authority != other[0].authority);
  CHECK(one[0].knock != other[0].knock);
  CHECK(one[0].answer != other[0].answer);
}

TEST_CASE("certificates hold from an hour ago for the lifetime") {
  const auto own = make_job_credentials(1, 5h)[0];
  for (const auto& pem : {own.authority, own.certificate}) {
    const auto made = read_certificate(pem);
    REQUIRE(made);
    const auto holds_at = [&](std::chrono::minutes from_now) {
      auto at = std::time(nullptr) + std::chrono::seconds{from_now}.count();
      return X509_cmp_time(X509_get0_notBefore(made.get()), &at) < 0
             && X509_cmp_time(X509_get0_notAfter(made.get()), &at) > 0;
    };
    CHECK(!holds_at(-61min));
    CHECK(holds_at(-59min));
    CHECK(holds_at(299min));
    CHECK(!holds_at(301min));
  }
}

TEST_CASE("a lifetime beyond a hundred years is refused") {
  for (const auto lifetime :
       {std::chrono::hours{24 * 365 * 101}, std::chrono::hours::max(),
        std::chrono::hours::min()})
    CHECK(caught([&] { make_job_credentials(1, lifetime); }).code()
          == errc::invalid_argument);
  CHECK(make_job_credentials(1, std::chrono::hours{24 * 365 * 100}).size()
        == 1);
}

TEST_CASE("the text form has everything") {
  for (const auto& own : make_job_credentials(2))
    CHECK(same(parse_credentials(to_text(own)), own));
}

TEST_CASE("a text that is cut short is refused") {
  const auto text = to_text(make_job_credentials(1)[0]);
  for (std::size_t size = 0; size < text.size(); ++size)
    REQUIRE(code_of(text.substr(0, size)) == errc::bad_file);
}

TEST_CASE("a text in which one character is another is refused") {
  const auto text = to_text(make_job_credentials(1)[0]);
  for (std::size_t at = 0; at < text.size(); ++at)
    for (const char other : {'A', 'B', '\n', '\0', '\xff'}) {
      auto changed = text;
      changed[at] = other;
      if (changed != text)
        REQUIRE(code_of(changed) == errc::bad_file);
    }
}

TEST_CASE("a text with more in it is refused") {
  const auto all = make_job_credentials(2);
  const auto text = to_text(all[0]);
  CHECK(code_of(text + "\n") == errc::bad_file);
  CHECK(code_of("\n" + text) == errc::bad_file);
  CHECK(code_of(text + text) == errc::bad_file);
  CHECK(code_of(all[0].authority + text) == errc::bad_file);
  CHECK(code_of(std::string(1 << 20, 'x')) == errc::bad_file);
  // The parts of two processes do not make a whole.
  auto mixed = text;
  mixed.replace(all[0].authority.size(), all[0].certificate.size(),
                all[1].certificate);
  CHECK(code_of(mixed) == errc::bad_file);
}

TEST_CASE("a file can be read by its owner alone") {
  const temporary_folder folder;
  const auto path = folder / "mine";
  const auto all = make_job_credentials(3);
  const auto before = ::umask(0);
  write_credentials(path, all[2]);
  ::umask(before);
  struct stat found {};
  REQUIRE(::stat(path.c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
  CHECK(same(read_credentials(path, 2), all[2]));
}

TEST_CASE("a file is never replaced") {
  const temporary_folder folder;
  const auto path = folder / "mine";
  const auto all = make_job_credentials(2);
  write_credentials(path, all[0]);
  const auto e = caught([&] { write_credentials(path, all[1]); });
  CHECK(e.code() == errc::io_failure);
  CHECK(says(e, path.string()));
  CHECK(same(read_credentials(path, 0), all[0]));
  // Nor does a link lead elsewhere.
  const auto link = folder / "link";
  std::filesystem::create_symlink(folder / "elsewhere", link);
  CHECK(caught([&] { write_credentials(link, all[1]); }).code()
        == errc::io_failure);
  CHECK(!std::filesystem::exists(folder / "elsewhere"));
}

TEST_CASE("a file that cannot be written in full is removed") {
  const temporary_folder folder;
  const auto path = folder / "mine";
  const auto own = make_job_credentials(1)[0];
  {
    const file_size_limit limit{100};
    CHECK(caught([&] { write_credentials(path, own); }).code()
          == errc::io_failure);
  }
  CHECK(!std::filesystem::exists(path));
}

TEST_CASE("a folder has a file for each process") {
  const temporary_folder folder;
  const auto all = make_job_credentials(2);
  for (std::size_t p = 0; p < all.size(); ++p)
    write_credentials(folder / ("rank-" + std::to_string(p) + ".credentials"),
                      all[p]);
  for (std::size_t p = 0; p < all.size(); ++p)
    CHECK(same(read_credentials(folder.path(), p), all[p]));
  const auto e = caught([&] { read_credentials(folder.path(), 2); });
  CHECK(e.code() == errc::io_failure);
  CHECK(says(e, "rank-2.credentials: No such file or directory"));
}

TEST_CASE("a file that others may read is refused") {
  const temporary_folder folder;
  const auto path = folder / "mine";
  write_credentials(path, make_job_credentials(1)[0]);
  for (const mode_t mode : {0640, 0604, 0601, 0620}) {
    ::chmod(path.c_str(), mode);
    const auto e = caught([&] { read_credentials(path, 0); });
    CHECK(e.code() == errc::invalid_argument);
    CHECK(says(e, "nobody else may read"));
  }
  ::chmod(path.c_str(), 0400);
  CHECK_NOTHROW(read_credentials(path, 0));
}

TEST_CASE("a file of another user is refused") {
  const temporary_folder folder;
  const auto path = folder / "mine";
  write_credentials(path, make_job_credentials(1)[0]);
  if (::chown(path.c_str(), 12345, static_cast<gid_t>(-1)) != 0)
    return; // not root
  CHECK(caught([&] { read_credentials(path, 0); }).code()
        == errc::invalid_argument);
}

TEST_CASE("a file of another process is refused") {
  const temporary_folder folder;
  write_credentials(folder / "mine", make_job_credentials(2)[1]);
  const auto e = caught([&] { read_credentials(folder / "mine", 0); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "the credentials of process 1, and this is process 0"));
}

TEST_CASE("a file with something else is refused, with its path") {
  const temporary_folder folder;
  const auto path = folder / "mine";
  write_credentials(path, make_job_credentials(1)[0]);
  const auto text = read_bytes(path);
  for (const auto& other :
       {std::string{}, text.substr(0, 1000), std::string(1 << 20, '-')}) {
    write_bytes(path, other);
    const auto e = caught([&] { read_credentials(path, 0); });
    CHECK(e.code() == errc::bad_file);
    CHECK(says(e, path.string() + ": "));
  }
}

TEST_CASE("what is no file is refused, and nobody waits for it") {
  const temporary_folder folder;
  const auto pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(caught([&] { read_credentials(pipe, 0); }).code() == errc::bad_file);
  const auto missing = caught([&] { read_credentials(folder / "no", 0); });
  CHECK(missing.code() == errc::io_failure);
  const auto nowhere = folder / "no" / "file";
  const auto own = make_job_credentials(1)[0];
  CHECK(caught([&] { write_credentials(nowhere, own); }).code()
        == errc::io_failure);
}

} // TEST_SUITE("comm.tls.job_credentials")
