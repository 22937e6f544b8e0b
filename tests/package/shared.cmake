# Builds a consumer of libtroupe.so, and checks what the library shows.
#   cmake -DWORK_DIR=... -DCXX=... [-DLAUNCHER=...] -DPREFIX=... -P shared.cmake
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

# Sets `variable` to the names that nm lists with these arguments.
function(set_names variable)
  execute_process(COMMAND nm -C ${ARGN}
    OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE ";" "," text "${text}")
  string(REPLACE "@@TROUPE_0" "" text "${text}")
  # Brackets would hide separators of the list.
  string(REGEX REPLACE "\\[abi:cxx11\\]" "" text "${text}")
  string(REPLACE "[" "<" text "${text}")
  string(REPLACE "]" ">" text "${text}")
  string(REGEX REPLACE "(^|\n)[0-9a-f ]+ [A-Za-z] " "\\1" text "${text}")
  string(REGEX REPLACE "\n+" ";" names "${text}")
  set(${variable} ${names} PARENT_SCOPE)
endfunction()

set(own "^((typeinfo|typeinfo name|vtable) for )?troupe::")
set_names(shown -D --defined-only ${PREFIX}/lib/libtroupe.so)
set(others ${shown})
list(FILTER others EXCLUDE REGEX "${own}|^TROUPE_0$|^$")
if(others)
  message(FATAL_ERROR "libtroupe.so shows names of others: ${others}")
endif()

build_consumer(${WORK_DIR}/build ${PREFIX}
  COMPONENTS base kernels graph comm actors training dashboard troupe)
execute_process(COMMAND ldd ${WORK_DIR}/build/consumer
  OUTPUT_VARIABLE libraries COMMAND_ERROR_IS_FATAL ANY)
if(NOT libraries MATCHES "libtroupe\\.so\\.[0-9]+ => ${PREFIX}")
  message(FATAL_ERROR "the program does not load libtroupe.so:\n${libraries}")
endif()

# What inline functions of the public headers call is shown.
must(${CMAKE_COMMAND} --build ${WORK_DIR}/build --target all_headers)
set_names(missing --undefined-only ${WORK_DIR}/build/liball_headers.a)
list(FILTER missing INCLUDE REGEX "${own}")
list(LENGTH missing used)
list(REMOVE_ITEM missing ${shown})
if(missing)
  message(FATAL_ERROR "public headers use names that libtroupe.so hides: ${missing}")
endif()
if(CXX MATCHES "g\\+\\+[^/]*$" AND NOT CXX MATCHES "clang" AND used LESS 10)
  message(FATAL_ERROR "only ${used} names are used: nothing was checked")
endif()
