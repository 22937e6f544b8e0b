# Runs the smallest example where its data is not: one line, exit code 1.
execute_process(COMMAND ${EXAMPLE} WORKING_DIRECTORY /
  RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
if(NOT code EQUAL 1 OR NOT err MATCHES "^data/digits[^\n]*\n$")
  message(FATAL_ERROR "exit ${code}, out: ${out}, err: ${err}")
endif()
