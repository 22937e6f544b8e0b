# SPDX-License-Identifier: Apache-2.0
#
# A module shows the function by which programs enter it, and what the compiler
# gives every file that uses a class. It has no copy of a part of Troupe that
# keeps something for the whole process.
#   cmake -DNM=... -DMODULE=troupe_gloo.so -DNAME=gloo -P module.cmake
execute_process(COMMAND ${NM} -D --defined-only ${MODULE}
  OUTPUT_VARIABLE shown COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[0-9a-f]+ [BDRT] [^\n]+" strong "${shown}")
list(TRANSFORM strong REPLACE "^[0-9a-f]+ [BDRT] " "")
if(NOT strong STREQUAL "troupe_make_${NAME}_engine")
  message(FATAL_ERROR "${MODULE} shows ${strong}")
endif()

execute_process(COMMAND ${NM} -C --defined-only ${MODULE}
  OUTPUT_VARIABLE all COMMAND_ERROR_IS_FATAL ANY)
if(NOT all MATCHES "troupe::error::error")
  message(FATAL_ERROR "nm shows no names of ${MODULE}: nothing was checked")
endif()
string(REGEX MATCHALL
  "troupe::(job_queue|worker|recorder|actor_table|atomic_file|code_places)::[^\n]+"
  parts "${all}")
if(parts)
  message(FATAL_ERROR "${MODULE} has copies of ${parts}")
endif()
