# Generates the wire format's C headers and Python module at build time, and the header with the source revision.

set(RLT_PROTOCOL_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/protocol" CACHE PATH
  "Where the protocol's generated files go; several build trees may share it")
set(RLT_REVISION_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/revision")

if(NOT RLT_PYTHON)
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/.venv/bin/python")
    set(RLT_PYTHON "${CMAKE_CURRENT_SOURCE_DIR}/.venv/bin/python")
  else()
    find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
    set(RLT_PYTHON "${Python3_EXECUTABLE}")
  endif()
endif()
set(RLT_PYTHON "${RLT_PYTHON}" CACHE FILEPATH "Python >= 3.11 with pymavlink, for code generation")

set(rlt_protocol_stamp "${RLT_PROTOCOL_DIRECTORY}/stamp")
add_custom_command(
  OUTPUT "${rlt_protocol_stamp}"
  COMMAND "${RLT_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/lib/protocol/generate.py" "${RLT_PROTOCOL_DIRECTORY}"
  DEPENDS lib/protocol/generate.py lib/protocol/rltools.xml
  COMMENT "Generating the wire format from lib/protocol/rltools.xml"
  VERBATIM)
add_custom_target(rlt_protocol DEPENDS "${rlt_protocol_stamp}")

# Runs at every build, and changes the header only when the revision changes: one source file includes it.
add_custom_target(rlt_revision
  COMMAND "${CMAKE_COMMAND}" -D "HEADER=${RLT_REVISION_DIRECTORY}/rlt_revision.h"
    -P "${CMAKE_CURRENT_SOURCE_DIR}/cmake/write_revision.cmake"
  BYPRODUCTS "${RLT_REVISION_DIRECTORY}/rlt_revision.h"
  COMMENT ""
  VERBATIM)

# Lets a target's sources include <rltools/mavlink.h> (as system headers: they warn) and "rlt_revision.h".
function(rlt_use_generated_headers target)
  target_include_directories(${target} PRIVATE "${RLT_REVISION_DIRECTORY}")
  target_include_directories(${target} SYSTEM PRIVATE "${RLT_PROTOCOL_DIRECTORY}/c")
  add_dependencies(${target} rlt_protocol rlt_revision)
  get_target_property(sources ${target} SOURCES)
  set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS "${rlt_protocol_stamp}")
endfunction()
