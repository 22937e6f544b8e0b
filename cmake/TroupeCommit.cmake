# Writes a C++ file that says which commit the sources are of, if that has changed.
#   cmake -DOUT=commit.cpp -DSOURCE_DIR=... [-DGIT=git] -P TroupeCommit.cmake
set(commit "")
# Of archives that git has made of a commit.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/commit.txt packed LIMIT_COUNT 1)
if(packed MATCHES "^[0-9a-f]+$")
  string(SUBSTRING ${packed} 0 12 commit)
elseif(GIT AND EXISTS ${SOURCE_DIR}/.git) # a folder above may have one of its own
  execute_process(
    COMMAND ${GIT} -C ${SOURCE_DIR} describe --always --dirty --exclude * --abbrev=12
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    set(commit "")
  endif()
endif()
file(WRITE ${OUT}.new "// Written by cmake/TroupeCommit.cmake.
#include <troupe/apps/commit.hpp>

namespace troupe::apps {

const std::string_view source_commit = \"${commit}\";

} // namespace troupe::apps
")
file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)
file(REMOVE ${OUT}.new)
