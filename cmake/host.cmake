# What only the host has: descriptions of experiments, shared libraries for Python, C++ tests.

# describe-<experiment> prints the experiment's description as JSON, simulate-<experiment> runs a policy image.
function(rlt_add_description header)
  rlt_experiment_names(${header} name type)
  foreach(program IN ITEMS describe simulate)
    add_executable(${program}-${name} host/native/${program}.cpp)
    rlt_use_board(${program}-${name})
    rlt_use_subject(${program}-${name} experiment ${header})
    rlt_use_generated_headers(${program}-${name})
  endforeach()
  # It computes nothing that a board computes too, and training waits for it.
  target_compile_options(describe-${name} PRIVATE -O0)
endfunction()

# host/native/<name>_library.cpp becomes lib<name>.so.
function(rlt_add_host_libraries)
  rlt_glob(sources "host/native/*_library.cpp")
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "_library$" "" name ${name})
    add_library(${name} SHARED ${source})
    rlt_use_board(${name})
    rlt_use_generated_headers(${name})
    set_target_properties(${name} PROPERTIES SUFFIX .so)
  endforeach()
endfunction()

# Each file that matches becomes a program of its name, built when something asks for it: examples, what `rlt bench`
# runs, and the programs beside the tests (not test_<name>.cpp, which rlt_add_cpp_tests takes). A line
# "// One program for each RLT_WIDTH: 16 32" makes <name>_16 and <name>_32 of it, where RLT_WIDTH is 16 and 32: what
# takes the compiler long is built as far as it is used.
function(rlt_add_programs pattern)
  rlt_glob(sources "${pattern}")
  list(FILTER sources EXCLUDE REGEX "/test_[^/]*$")
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    file(STRINGS ${source} line REGEX "^// One program for each [A-Z_]+: [0-9 ]+$")
    if(line)
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
      string(REGEX REPLACE "^.* each ([A-Z_]+): .*$" "\\1" macro "${line}")
      string(REGEX REPLACE "^.*: ([0-9 ]+)$" "\\1" values "${line}")
      string(REPLACE " " ";" values "${values}")
      foreach(value IN LISTS values)
        rlt_add_program(${name}_${value} ${source})
        target_compile_definitions(${name}_${value} PRIVATE ${macro}=${value})
      endforeach()
    else()
      rlt_add_program(${name} ${source})
    endif()
  endforeach()
endfunction()

function(rlt_add_program name source)
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  rlt_use_board(${name})
  target_link_options(${name} PRIVATE -pthread)
  rlt_use_generated_headers(${name})
  if(source MATCHES "/tests/firmware/")
    rlt_use_test_headers(${name})
    target_compile_options(${name} PRIVATE -fexceptions -Wno-double-promotion)
  endif()
endfunction()

# tests/fuzz/<name>.cpp becomes fuzz_<name>, with the sanitizers: libFuzzer's program (RLT_LIBFUZZER=ON, Clang), or one
# that runs the files that it is given. Built when something asks for it (tests/fuzz/test_fuzz.py).
function(rlt_add_fuzz_targets)
  rlt_glob(sources "tests/fuzz/*.cpp")
  list(FILTER sources EXCLUDE REGEX "/run_inputs.cpp$")
  set(sanitizers address,undefined,float-cast-overflow)
  set(main_source tests/fuzz/run_inputs.cpp)
  if(RLT_LIBFUZZER)
    set(sanitizers fuzzer,${sanitizers})
    set(main_source)
  endif()
  set(flags -O1 -g1 -fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    add_executable(fuzz_${name} EXCLUDE_FROM_ALL ${source} ${main_source})
    rlt_use_board(fuzz_${name})
    rlt_use_generated_headers(fuzz_${name})
    rlt_use_test_headers(fuzz_${name})
    target_compile_options(fuzz_${name} PRIVATE ${flags})
    target_link_options(fuzz_${name} PRIVATE ${flags})
  endforeach()
endfunction()

# Lets a target include the headers of the tests, by their names.
function(rlt_use_test_headers target)
  file(GLOB folders LIST_DIRECTORIES true "${CMAKE_CURRENT_SOURCE_DIR}/tests/lib/*")
  target_include_directories(${target} PRIVATE ${folders} "${CMAKE_CURRENT_SOURCE_DIR}/tests/firmware"
    "${CMAKE_CURRENT_SOURCE_DIR}/integrations/crazyflie/src/policy")
endfunction()

# What every object of a test is compiled with: each flag that concerns numbers, but it may throw, as doctest does.
# Kernels are tested as firmware is compiled, the rest with less optimization, which changes no bit and takes the
# compiler half as long. doctest's fast assertions do not catch what an expression throws: the test case ends there.
function(rlt_use_test_flags target)
  rlt_use_board(${target})
  rlt_use_generated_headers(${target})
  rlt_use_test_headers(${target})
  # GCC 12 sees array bounds exceeded where a short literal is read up to its zero.
  target_compile_options(${target} PRIVATE -fexceptions -frtti -Wno-double-promotion -Wno-array-bounds)
  if(NOT target MATCHES "^(kernel_agreement|test_kernels_|test_dense_|test_nonzero_)")
    target_compile_options(${target} PRIVATE -O1)
    if(NOT rlt_sanitizer_flags)  # a null pointer where there must be none, even for no bytes, ends the program
      target_compile_options(${target} PRIVATE -fsanitize=nonnull-attribute -fsanitize-undefined-trap-on-error)
    endif()
  endif()
  target_compile_options(${target} PRIVATE ${RLT_TEST_OPTIMIZATION})
  target_include_directories(${target} SYSTEM PRIVATE "${RLT_DOCTEST_INCLUDE_DIRECTORY}")
  target_compile_definitions(${target} PRIVATE DOCTEST_CONFIG_SUPER_FAST_ASSERTS "RLT_REPOSITORY=\"${CMAKE_CURRENT_SOURCE_DIR}\"")
endfunction()

function(rlt_add_test_objects name pattern)
  rlt_glob(sources "${pattern}")
  add_library(${name} OBJECT ${sources})
  rlt_use_test_flags(${name})
endfunction()

function(rlt_link_where_included target source objects headers)
  file(STRINGS ${source} lines REGEX "#include \"(${headers})\\.h\"")
  if(lines)
    target_link_libraries(${target} PRIVATE ${objects})
  endif()
endfunction()

# tests/lib/<folder>/test_<name>.cpp, and test_<name>.cpp of tests/firmware and tests/integrations, become the test
# <name>, with doctest's own main. The target cpp_tests is all of them.
# What several of them need is compiled once: one that includes "kernel_agreement.h" or "dense_at_run_time_agreement.h"
# links tests/lib/kernels/agreement, one that includes "scripted_board.h" or a header over it tests/firmware/scripted.
# test_<name>_blas.cpp links OpenBLAS; where that is not installed, ctest skips it and says so.
function(rlt_add_cpp_tests)
  rlt_glob(sources "tests/lib/*/test_*.cpp" "tests/firmware/test_*.cpp" "tests/integrations/test_*.cpp")
  find_path(RLT_DOCTEST_INCLUDE_DIRECTORY doctest/doctest.h)
  if(NOT RLT_DOCTEST_INCLUDE_DIRECTORY)
    message(FATAL_ERROR "The C++ tests need doctest: install doctest-dev.")
  endif()
  set(main_source "${CMAKE_CURRENT_BINARY_DIR}/doctest_main.cpp")
  file(CONFIGURE OUTPUT "${main_source}" CONTENT
    "#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN\n#include <doctest/doctest.h>\n")
  add_library(doctest_main OBJECT "${main_source}")
  target_include_directories(doctest_main SYSTEM PRIVATE "${RLT_DOCTEST_INCLUDE_DIRECTORY}")
  target_compile_options(doctest_main PRIVATE -std=c++17 ${rlt_sanitizer_flags})
  rlt_add_test_objects(kernel_agreement "tests/lib/kernels/agreement/*.cpp")
  rlt_add_test_objects(scripted_board "tests/firmware/scripted/*.cpp")
  add_custom_target(cpp_tests)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    if(name MATCHES "_blas$" AND NOT RLT_OPENBLAS)
      add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: OpenBLAS is not installed (./rlt doctor)")
      set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: ")
      continue()
    endif()
    add_executable(${name} ${source})
    add_dependencies(cpp_tests ${name})
    rlt_use_test_flags(${name})
    target_link_libraries(${name} PRIVATE doctest_main)
    if(name MATCHES "_blas$")
      target_link_libraries(${name} PRIVATE openblas)
    endif()
    target_link_options(${name} PRIVATE -pthread)
    rlt_link_where_included(${name} ${source} kernel_agreement "kernel_agreement|dense_at_run_time_agreement")
    rlt_link_where_included(${name} ${source} scripted_board "scripted_board|file_client|training_result")
    add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    set_tests_properties(${name} PROPERTIES TIMEOUT 300)
  endforeach()
endfunction()
