// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/command_runner.hpp"
#include "apps/launch/launch_runner.hpp"

#include <support/files.hpp>

#include <string>

namespace troupe::test {

/// A script that plays ssh. It drops its options and the name of the host, and
/// starts the rest as a login on a host would: in a session of its own, with
/// few variables. ON_HOST has the name of the host. The script ends when the
/// login does, and can be killed without it.
class played_ssh {
public:
  /// @param first what the script does first; $host is the host
  explicit played_ssh(const std::string& first = "") {
    write_bytes(
      folder_ / "ssh",
      "while :; do case $1 in -o) shift 2;; -*) shift;; *) break;; esac; done\n"
      "host=$1\nshift\nprintf '%s\\n' \"$host $*\" >> "
        + (folder_ / "calls").string() + "\n" + first
        + "\nexec setsid -w env -i HOME=\"$HOME\" PATH=\"$PATH\" "
          "ON_HOST=\"$host\" sh -c \"$*\"\n");
  }

  /// For --ssh.
  std::string shell() const {
    return "/bin/sh " + (folder_ / "ssh").string() + " -o BatchMode=yes";
  }
  /// The host and the command of each call, in a line.
  words calls() const { return lines_of(read_bytes(folder_ / "calls")); }

  /// Runs `troupe launch --hosts`.
  command_result
  launch_command(const std::string& hosts, const words& command,
                 const words& options = {},
                 const while_launched& while_running = {}) const {
    words all{"launch", "--hosts", hosts, "--ssh", shell()};
    return run_troupe(all + options + words{"--"} + command, while_running);
  }
  /// The same with a script of a shell as the command.
  command_result launch(const std::string& hosts, const std::string& script,
                        const words& options = {},
                        const while_launched& while_running = {}) const {
    return launch_command(hosts, {"/bin/sh", "-c", script}, options,
                          while_running);
  }

private:
  temporary_folder folder_;
};

} // namespace troupe::test
