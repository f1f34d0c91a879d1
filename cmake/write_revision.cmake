# Writes a C header that defines RLT_REVISION: git's short hash, "-dirty" after local changes, empty without git.
# Usage: cmake -D HEADER=<file> -P write_revision.cmake. Leaves a header alone that already says so: nothing is rebuilt.
cmake_minimum_required(VERSION 3.20)
get_filename_component(tree "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(revision "")
find_program(git git)
if(git AND EXISTS "${tree}/.git")  # where it is installed, a repository around it is another's
  execute_process(COMMAND "${git}" -C "${tree}" describe --always --dirty --abbrev=9 --exclude=*
    OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    set(revision "")
  endif()
endif()
string(SUBSTRING "${revision}" 0 15 revision)
file(CONFIGURE OUTPUT "${HEADER}" CONTENT "#pragma once\n#define RLT_REVISION \"${revision}\"\n" @ONLY)
