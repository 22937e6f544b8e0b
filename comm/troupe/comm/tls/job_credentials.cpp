// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/tls/job_credentials.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/descriptor.hpp>
#include <troupe/comm/tls/certificates.hpp>

#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace troupe::comm {

namespace {

using namespace std::chrono_literals;

/// Clocks of hosts may differ by that.
constexpr std::chrono::seconds head_start = 1h;
constexpr std::chrono::hours longest_lifetime{24 * 365 * 100};
constexpr std::size_t most_bytes = 64 * 1024; // of a file; it has some 2 KiB

constexpr const char* label_of_certificate = "CERTIFICATE";
constexpr const char* label_of_key = "PRIVATE KEY";
constexpr const char* label_of_secrets = "TROUPE SECRETS";

std::string reason(int number) {
  return std::system_category().message(number);
}

// -- OpenSSL ------------------------------------------------------------------

/// Throws unless OpenSSL did what it should.
void require(bool done) {
  if (!done)
    throw error(errc::io_failure,
                "cannot make the credentials of a job: " + openssl_reason());
}

template <class Handle>
Handle made(Handle handle) {
  require(handle != nullptr);
  return handle;
}

/// Overwrites a text that holds a secret when its scope ends.
class wiped_at_end {
public:
  explicit wiped_at_end(std::string& text) : text_(text) {}
  ~wiped_at_end() { OPENSSL_cleanse(text_.data(), text_.size()); }
  wiped_at_end(const wiped_at_end&) = delete;
  wiped_at_end& operator=(const wiped_at_end&) = delete;

private:
  std::string& text_;
};

/// What `write` writes to a memory buffer, which OpenSSL wipes afterwards.
template <class Write>
std::string text_of(Write write) {
  const auto to = made(bio_handle{BIO_new(BIO_s_mem())});
  require(write(to.get()) == 1);
  char* text = nullptr;
  const auto size = BIO_get_mem_data(to.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

// -- making certificates ------------------------------------------------------

/// A certificate and the key that belongs to it.
struct identity {
  certificate_handle certificate;
  key_handle key;
};

key_handle make_key() {
  return made(key_handle{EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256")});
}

void set_name(X509_NAME* name, const std::string& text) {
  require(X509_NAME_add_entry_by_txt(
            name, "CN", MBSTRING_ASC,
            reinterpret_cast<const unsigned char*>(text.data()),
            static_cast<int>(text.size()), -1, 0)
          == 1);
}

void set_serial(X509* to) {
  constexpr int bits = 127;
  const std::unique_ptr<BIGNUM, freed_by<BN_free>> number{BN_new()};
  require(number != nullptr);
  require(BN_rand(number.get(), bits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY)
          == 1);
  require(BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(to))
          != nullptr);
}

/// @param issuer may be `to`
void add_extension(X509* to, X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, freed_by<X509_EXTENSION_free>>
    extension{X509V3_EXT_conf_nid(nullptr, &context, kind, value)};
  require(extension && X509_add_ext(to, extension.get(), -1) == 1);
}

/// A key, and its certificate without extensions and signature.
identity begin_identity(const std::string& name, std::chrono::hours lifetime) {
  identity begun{made(certificate_handle{X509_new()}), make_key()};
  auto* const to = begun.certificate.get();
  require(X509_set_version(to, X509_VERSION_3) == 1);
  set_serial(to);
  set_name(X509_get_subject_name(to), name);
  require(X509_gmtime_adj(X509_getm_notBefore(to), -head_start.count())
          != nullptr);
  require(X509_gmtime_adj(X509_getm_notAfter(to),
                          std::chrono::seconds{lifetime}.count())
          != nullptr);
  require(X509_set_pubkey(to, begun.key.get()) == 1);
  return begun;
}

void sign(X509* certificate, const identity& issuer) {
  require(X509_set_issuer_name(certificate,
                               X509_get_subject_name(issuer.certificate.get()))
          == 1);
  require(X509_sign(certificate, issuer.key.get(), EVP_sha256()) > 0);
}

identity make_authority(std::chrono::hours lifetime) {
  auto all = begin_identity("Troupe job", lifetime);
  auto* const own = all.certificate.get();
  add_extension(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(own, own, NID_key_usage, "critical,keyCertSign");
  add_extension(own, own, NID_subject_key_identifier, "hash");
  sign(own, all);
  return all;
}

identity make_process(std::size_t process, const identity& authority,
                      std::chrono::hours lifetime) {
  auto all = begin_identity(name_of_process(process), lifetime);
  auto* const own = all.certificate.get();
  auto* const issuer = authority.certificate.get();
  add_extension(own, issuer, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(own, issuer, NID_key_usage, "critical,digitalSignature");
  add_extension(own, issuer, NID_authority_key_identifier, "keyid:always");
  sign(own, authority);
  return all;
}

std::string text_of(const certificate_handle& certificate) {
  return text_of(
    [&](BIO* to) { return PEM_write_bio_X509(to, certificate.get()); });
}

std::string text_of(const key_handle& key) {
  return text_of([&](BIO* to) {
    return PEM_write_bio_PKCS8PrivateKey(to, key.get(), nullptr, nullptr, 0,
                                         nullptr, nullptr);
  });
}

// -- text ---------------------------------------------------------------------

/// The last block of the text: both secrets, and a checksum of everything.
struct last_block {
  using checksum = std::array<std::byte, SHA256_DIGEST_LENGTH>;
  job_credentials::secret knock{}, answer{};
  checksum sum{};

  ~last_block() { OPENSSL_cleanse(this, sizeof *this); }
};

last_block::checksum checksum_of(const job_credentials& credentials) {
  const std::unique_ptr<EVP_MD_CTX, freed_by<EVP_MD_CTX_free>> hash{
    EVP_MD_CTX_new()};
  last_block::checksum sum{};
  const auto add = [&](const auto& part) {
    require(EVP_DigestUpdate(hash.get(), part.data(), part.size()) == 1);
  };
  require(hash && EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) == 1);
  add(credentials.authority);
  add(credentials.certificate);
  add(credentials.key);
  add(credentials.knock);
  add(credentials.answer);
  require(EVP_DigestFinal_ex(
            hash.get(), reinterpret_cast<unsigned char*>(sum.data()), nullptr)
          == 1);
  return sum;
}

[[noreturn]] void refuse_text() {
  throw error(errc::bad_file,
              "not the credentials of a process, or not all of them");
}

/// Takes a block of PEM from the beginning of a text.
std::string take_block(std::string_view& text, const std::string& label) {
  const auto end_line = "-----END " + label + "-----\n";
  const auto end = text.find(end_line);
  if (!text.starts_with("-----BEGIN " + label + "-----\n") || end == text.npos)
    refuse_text();
  const auto size = end + end_line.size();
  const auto block = text.substr(0, size);
  text.remove_prefix(size);
  return std::string{block};
}

/// Reads the secrets of the block. Its checksum is for others to compare.
void read_secrets(std::string_view text, job_credentials& into) {
  const bio_handle from{
    BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))};
  char *label = nullptr, *header = nullptr;
  unsigned char* bytes = nullptr;
  long size = 0;
  const auto is_read =
    from && PEM_read_bio(from.get(), &label, &header, &bytes, &size) == 1;
  const auto fits = is_read && size == long{sizeof(last_block)};
  if (fits) {
    const auto* at = reinterpret_cast<const std::byte*>(bytes);
    std::copy_n(at, into.knock.size(), into.knock.begin());
    std::copy_n(at + into.knock.size(), into.answer.size(),
                into.answer.begin());
  }
  OPENSSL_free(label);
  OPENSSL_free(header);
  OPENSSL_clear_free(bytes, static_cast<std::size_t>(size));
  ERR_clear_error();
  if (!fits)
    refuse_text();
}

// -- files --------------------------------------------------------------------

std::string path_of(const std::string& path, std::size_t process) {
  std::error_code failed;
  return std::filesystem::is_directory(path, failed)
           ? path + "/rank-" + std::to_string(process) + ".credentials"
           : path;
}

/// Throws if the file is not one of this user alone.
void require_own_file(int file, const std::string& path) {
  struct stat found {};
  if (::fstat(file, &found) != 0)
    throw error(errc::io_failure, path + ": " + reason(errno));
  if (!S_ISREG(found.st_mode))
    throw error(errc::bad_file, path + " is no file");
  if (found.st_uid != ::geteuid() || (found.st_mode & 077) != 0)
    throw error(errc::invalid_argument,
                path
                  + " must be a file of this user that nobody else may read "
                    "(mode 0600): it holds the credentials of a process");
}

/// Reads a file up to the limit and one byte more.
std::string read_file(int file, const std::string& path) {
  std::string text(most_bytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto got = ::read(file, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throw error(errc::io_failure, path + ": " + reason(errno));
    if (got == 0)
      break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

/// Returns 0, or the number of the error.
int write_file(int file, std::string_view text) {
  while (!text.empty()) {
    const auto done = ::write(file, text.data(), text.size());
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return errno;
    text.remove_prefix(static_cast<std::size_t>(done));
  }
  return 0;
}

job_credentials parse_file(const std::string& text, const std::string& path) {
  try {
    return parse_credentials(text);
  } catch (const error& e) {
    throw error(e.code(), path + ": " + e.message());
  }
}

/// Throws if these are the credentials of another process.
void require_process(const job_credentials& read, std::size_t process,
                     const std::string& path) {
  const auto certificate = read_certificate(read.certificate);
  const auto number =
    certificate ? process_in(certificate.get()) : std::nullopt;
  if (!number)
    throw error(errc::bad_file, path + ": its certificate names no process");
  if (*number != process)
    throw error(errc::invalid_argument,
                path + " has the credentials of process "
                  + std::to_string(*number) + ", and this is process "
                  + std::to_string(process));
}

} // namespace

std::vector<job_credentials> make_job_credentials(std::size_t processes,
                                                  std::chrono::hours lifetime) {
  if (lifetime > longest_lifetime || lifetime < -longest_lifetime)
    throw error(errc::invalid_argument,
                "credentials of a job hold for at most a hundred years");
  const auto authority = make_authority(lifetime);
  job_credentials common;
  common.authority = text_of(authority.certificate);
  common.knock = random_secret();
  common.answer = random_secret();
  std::vector<job_credentials> all(processes, common);
  for (std::size_t p = 0; p < processes; ++p) {
    const auto own = make_process(p, authority, lifetime);
    all[p].certificate = text_of(own.certificate);
    all[p].key = text_of(own.key);
  }
  return all;
}

std::string to_text(const job_credentials& credentials) {
  const last_block last{credentials.knock, credentials.answer,
                        checksum_of(credentials)};
  auto secrets = text_of([&](BIO* to) {
    return PEM_write_bio(to, label_of_secrets, "",
                         reinterpret_cast<const unsigned char*>(&last),
                         sizeof last)
               > 0
             ? 1
             : 0;
  });
  const wiped_at_end wiped{secrets};
  std::string text; // in one piece of memory: no copies of the key stay
  text.reserve(credentials.authority.size() + credentials.certificate.size()
               + credentials.key.size() + secrets.size());
  text += credentials.authority;
  text += credentials.certificate;
  text += credentials.key;
  text += secrets;
  return text;
}

job_credentials parse_credentials(const std::string& text) {
  if (text.size() > most_bytes)
    refuse_text();
  std::string_view left = text;
  job_credentials read;
  read.authority = take_block(left, label_of_certificate);
  read.certificate = take_block(left, label_of_certificate);
  read.key = take_block(left, label_of_key);
  read_secrets(left, read);
  // There is one text for these credentials. Its checksum finds all changes.
  auto only = to_text(read);
  const wiped_at_end wiped{only};
  if (only != text)
    refuse_text();
  return read;
}

job_credentials read_credentials(const std::string& path, std::size_t process) {
  const auto at = path_of(path, process);
  // Does not wait for whoever writes to a pipe.
  const descriptor file{::open(at.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  if (!file)
    throw error(errc::io_failure, "no credentials of process "
                                    + std::to_string(process) + ": " + at + ": "
                                    + reason(errno));
  require_own_file(file.get(), at);
  auto text = read_file(file.get(), at);
  const wiped_at_end wiped{text};
  auto read = parse_file(text, at);
  require_process(read, process, at);
  return read;
}

void write_credentials(const std::string& path,
                       const job_credentials& credentials) {
  auto text = to_text(credentials);
  const wiped_at_end wiped{text};
  const descriptor file{::open(
    path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  const auto failed = file ? write_file(file.get(), text) : errno;
  if (file && failed != 0)
    ::unlink(path.c_str()); // a part is of no use
  if (failed != 0)
    throw error(errc::io_failure, "cannot write the credentials of a process: "
                                    + path + ": " + reason(failed));
}

} // namespace troupe::comm
