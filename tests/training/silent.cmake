# Fails if a library calls what ends the process, prints, or takes signals:
#   cmake -DNM=nm "-DARCHIVES=a.a|b.a" -P silent.cmake
string(JOIN "|" forbidden
  exit _exit _Exit quick_exit abort raise kill signal sigaction system
  puts putchar printf fprintf vprintf vfprintf perror fputs fputc
  stdout stderr _ZSt4cout _ZSt4cerr _ZSt4clog)
string(REPLACE "|" ";" archives "${ARCHIVES}")
if(NOT archives)
  message(FATAL_ERROR "no archives")
endif()
foreach(archive IN LISTS archives)
  execute_process(COMMAND ${NM} -u ${archive}
    OUTPUT_VARIABLE names COMMAND_ERROR_IS_FATAL ANY)
  if(NOT names MATCHES "memcpy")
    message(FATAL_ERROR "${archive}: ${NM} shows no names")
  endif()
  string(REGEX MATCHALL "[ \t]U (${forbidden})(@[^\n]*)?\n" found "${names}")
  list(REMOVE_DUPLICATES found)
  if(found)
    string(REPLACE "\n" "" found "${found}")
    message(FATAL_ERROR "${archive} uses${found}")
  endif()
endforeach()
