# Firmware: one target per program and experiment, from the flags and sources that cmake/board.cmake has read.

# Warnings are errors with the compilers that the tests run with. Later ones warn falsely of right code, as GCC 14 does of
# texts put together at compile time: that ends nobody's build.
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
   OR (CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 20))
  list(REMOVE_ITEM RLT_FLAGS -Werror)
endif()
# For other computers than this one (host/wheel/build.py): the least processor of theirs.
set(RLT_LEAST_PROCESSOR "" CACHE STRING "Flag in place of -march=native, for programs of other computers")
if(RLT_LEAST_PROCESSOR)
  list(TRANSFORM RLT_FLAGS REPLACE "^-march=native$" "${RLT_LEAST_PROCESSOR}")
endif()

# Zig's C++ compiler in place of GNU's for Arm: its target says what flags of the processor say. It has the headers and
# functions that firmware uses of the C and C++ libraries (lib/freestanding, Zig's own), and no map of what it links.
if(RLT_STAND_IN AND RLT_PROCESSOR STREQUAL "arm")
  set(rlt_abi eabi)
  set(rlt_cpu)
  set(rlt_features)
  set(rlt_kept)
  foreach(rlt_flag IN LISTS RLT_FLAGS)
    if(rlt_flag MATCHES "^-mcpu=([^-]+)-?(.*)$")
      set(rlt_cpu "-mcpu=${CMAKE_MATCH_1}_${CMAKE_MATCH_2}")  # cortex_m7, as Zig calls cortex-m7
    elseif(rlt_flag STREQUAL "-mfloat-abi=hard")
      set(rlt_abi eabihf)
    elseif(rlt_flag STREQUAL "-mfpu=fpv5-d16")
      set(rlt_features +fp_armv8d16+fp64)
    elseif(rlt_flag STREQUAL "-mfpu=fpv5-sp-d16")
      set(rlt_features +fp_armv8d16sp)
    elseif(rlt_flag STREQUAL "-mfpu=fpv4-sp-d16")
      set(rlt_features +vfp4d16sp)
    elseif(rlt_flag MATCHES "^-mfpu=")
      message(FATAL_ERROR "${rlt_flag} of ${RLT_BOARD} is unknown: state the features of Zig's for it here.")
    elseif(NOT rlt_flag STREQUAL "-mthumb")
      list(APPEND rlt_kept "${rlt_flag}")
    endif()
  endforeach()
  set(RLT_FLAGS -target thumb-freestanding-${rlt_abi} "${rlt_cpu}${rlt_features}" -fhosted -g0 -Wno-main
    -DMAVLINK_NO_CONVERSION_HELPERS -fno-stack-protector -fno-unwind-tables ${rlt_kept})
  list(APPEND RLT_SYSTEM_INCLUDE_DIRECTORIES
    "${CMAKE_CURRENT_SOURCE_DIR}/lib/freestanding" "${CMAKE_CURRENT_SOURCE_DIR}/lib/freestanding/c_library")
  list(FILTER RLT_LINK_FLAGS EXCLUDE REGEX "^--specs=")  # a library of GNU's
  list(APPEND RLT_LINK_FLAGS -Wl,-e,reset_handler)
endif()
if(WIN32 AND RLT_NATIVE)
  list(REMOVE_ITEM RLT_FLAGS -Werror)  # its headers warn
  list(APPEND RLT_LINK_LIBRARIES ws2_32)
  set(RLT_PROGRAM_SUFFIX .exe)
endif()

set(rlt_sanitizer_flags)
if(RLT_SANITIZE)
  set(rlt_sanitizer_flags -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
elseif(RLT_SANITIZE_THREADS)
  set(rlt_sanitizer_flags -O1 -fsanitize=thread -fno-omit-frame-pointer -g)
endif()

# Flags, include directories and libraries of the board, for any target.
function(rlt_use_board target)
  target_compile_options(${target} PRIVATE ${RLT_FLAGS} ${rlt_sanitizer_flags})
  target_link_options(${target} PRIVATE ${RLT_FLAGS} ${rlt_sanitizer_flags})
  target_link_libraries(${target} PRIVATE ${RLT_LINK_LIBRARIES})
  target_include_directories(${target} PRIVATE ${RLT_INCLUDE_DIRECTORIES})
  target_include_directories(${target} SYSTEM PRIVATE ${RLT_SYSTEM_INCLUDE_DIRECTORIES})
  target_compile_definitions(${target} PRIVATE ${RLT_DEFINITIONS})
endfunction()

# Programs of this machine whose bits are compared with a board's: cmake/forbid_contraction.sh. `source` is named in the error.
function(rlt_forbid_contraction target source)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" AND CMAKE_OBJDUMP
     AND NOT rlt_sanitizer_flags)
    add_custom_command(TARGET ${target} POST_BUILD VERBATIM COMMAND sh
      "${CMAKE_CURRENT_SOURCE_DIR}/cmake/forbid_contraction.sh" "${CMAKE_OBJDUMP}" $<TARGET_FILE:${target}> "${source}")
  endif()
endfunction()

# The name by which a target includes a header of the project: relative to its folder, so that ccache knows what it has
# compiled in another.
function(rlt_include_of_project result target header)
  file(RELATIVE_PATH name "${RLT_PROJECT_DIRECTORY}" "${header}")
  target_compile_options(${target} PRIVATE "-iquote${RLT_PROJECT_DIRECTORY}")
  set(${result} "${name}" PARENT_SCOPE)
endfunction()

# What a target is for: an experiment, or a contract (firmware/build.json, "subjects").
function(rlt_use_subject target subject header)
  rlt_experiment_names(${header} name type)
  get_filename_component(name_of_file "${header}" NAME)
  string(TOUPPER ${subject} define)
  set(file_name "${RLT_SUBJECT_INCLUDE_${subject}}${name_of_file}")
  if(NOT header STREQUAL "${CMAKE_CURRENT_SOURCE_DIR}/${RLT_SUBJECT_FOLDER_${subject}}/${name_of_file}")
    rlt_include_of_project(file_name ${target} "${header}")
  endif()
  if(header MATCHES "/build/gymnasium_tasks/[a-z]+/[^/]*$")
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_compile_definitions(${target} PRIVATE "RLT_${define}_HEADER=\"${file_name}\"" "RLT_${define}=${type}")
endfunction()

# Writes what a link map says of the memories, for a linker that writes no map: their numbers in a linker script.
function(rlt_write_memories file linker_script)
  set(table "Memory Configuration\n\n")
  file(STRINGS "${linker_script}" lines REGEX "ORIGIN *=.*LENGTH *=")
  foreach(line IN LISTS lines)
    if(line MATCHES "^ *([A-Za-z_0-9]+)[^:]*: *ORIGIN *= *(0x[0-9A-Fa-f]+), *LENGTH *= *([0-9]+)([KM]?) *$")
      set(name "${CMAKE_MATCH_1}")
      set(length "${CMAKE_MATCH_3}${CMAKE_MATCH_4}")
      math(EXPR origin "${CMAKE_MATCH_2}" OUTPUT_FORMAT HEXADECIMAL)
      string(REPLACE "K" "*1024" length "${length}")
      string(REPLACE "M" "*1048576" length "${length}")
      math(EXPR length "${length}" OUTPUT_FORMAT HEXADECIMAL)
      string(APPEND table "${name} ${origin} ${length}\n")
    else()
      message(FATAL_ERROR "${linker_script}: Zig's linker needs each memory's ORIGIN and LENGTH as a number: ${line}")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT "${file}" CONTENT "${table}\nLinker script and memory map\n" @ONLY)
endfunction()

# A program for the board: the target, built as <build tree>/<folder>/<name>. Linking fails where it allocates or throws:
# RLT_LINK_FLAGS renames such references to __wrap_malloc and so on, which nobody defines.
function(rlt_add_board_program target folder name header)
  set(patterns)
  foreach(pattern IN LISTS RLT_SOURCE_PATTERNS)
    get_filename_component(place "${pattern}" DIRECTORY)
    rlt_place(place "${place}")
    string(REGEX REPLACE "^.*/" "" pattern "${pattern}")
    list(APPEND patterns "${place}/${pattern}")
  endforeach()
  rlt_glob(sources ${ARGN} ${patterns})
  if(NOT sources)
    message(FATAL_ERROR "No source matches ${ARGN} ${RLT_SOURCE_PATTERNS}.")
  endif()
  set(directory "${CMAKE_CURRENT_BINARY_DIR}/${folder}")
  add_executable(${target} ${sources})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name} SUFFIX "${RLT_PROGRAM_SUFFIX}" RUNTIME_OUTPUT_DIRECTORY "${directory}")
  target_compile_definitions(${target} PRIVATE "RLT_PROGRAM_HEADER=\"${header}\"")
  rlt_use_board(${target})
  rlt_use_generated_headers(${target})
  if(APPLE OR rlt_sanitizer_flags OR (RLT_NATIVE AND RLT_STAND_IN))
    return()  # no --wrap in Apple's linker; the sanitizers allocate, and so does the C++ library that Zig links
  endif()
  target_link_options(${target} PRIVATE ${RLT_LINK_FLAGS})
  if(RLT_LINKER_SCRIPT)
    rlt_place(linker_script "${RLT_LINKER_SCRIPT}")
  endif()
  if(RLT_LINK_MAP)
    if(RLT_STAND_IN)
      rlt_write_memories("${directory}/${name}.map" "${linker_script}")
    else()
      target_link_options(${target} PRIVATE -Wl,--print-memory-usage "-Wl,-Map=${directory}/${name}.map")
    endif()
    set_property(TARGET ${target} APPEND PROPERTY ADDITIONAL_CLEAN_FILES "${directory}/${name}.map")
  endif()
  if(RLT_LINKER_SCRIPT)
    target_link_options(${target} PRIVATE "-T${linker_script}")
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${linker_script}")
  endif()
endfunction()

# The target <program>-<experiment>, built as <build tree>/<program>/<experiment>, or for a contract in its place.
function(rlt_add_firmware program header)
  rlt_experiment_names(${header} name type)
  rlt_missing_requirement(sentence ${header})
  if(sentence)
    rlt_add_refusal(${program}-${name} "${sentence}")
    return()
  endif()
  rlt_add_board_program(${program}-${name} ${program} ${name} ${RLT_PROGRAM_HEADER_${program}}
    ${RLT_PROGRAM_SOURCES_${program}})
  rlt_forbid_contraction(${program}-${name} "${header}")
  rlt_use_subject(${program}-${name} ${RLT_PROGRAM_SUBJECT_${program}} ${header})
  rlt_use_requirements(${program}-${name} ${header})
endfunction()

# benchmarks/programs/board_<name>.h, a program for the board that prints what it measures: the target bench-<name>,
# built as <build tree>/bench/<name> when something asks for it. RLT_CMSIS_DSP is the folder of CMSIS-DSP's sources, to compare
# with: compiled as its users compile it, with products and sums fused.
set(RLT_CMSIS_DSP "" CACHE PATH "Sources of CMSIS-DSP for the boards' benchmarks, or empty")
function(rlt_add_board_benchmark header)
  get_filename_component(name ${header} NAME_WE)
  string(REGEX REPLACE "^board_" "" name ${name})
  set(target bench-${name})
  rlt_add_board_program(${target} bench ${name} ${header} "firmware/app/link/*.cpp")
  set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  if(RLT_CMSIS_DSP)
    foreach(product IN ITEMS arm_mat_vec_mult_f32 arm_mat_mult_f32)
      set(source "${RLT_CMSIS_DSP}/Source/MatrixFunctions/${product}.c")
      set_source_files_properties("${source}" PROPERTIES
        LANGUAGE CXX COMPILE_OPTIONS "-w;-ffp-contract=fast;-DARM_MATH_LOOPUNROLL")
      target_sources(${target} PRIVATE "${source}")
    endforeach()
    # The headers stand by themselves where they take this for a build without the processor's own.
    target_compile_definitions(${target} PRIVATE RLT_CMSIS_DSP __GNUC_PYTHON__)
    target_include_directories(${target} SYSTEM PRIVATE "${RLT_CMSIS_DSP}/Include" "${RLT_CMSIS_DSP}/PrivateInclude")
  endif()
endfunction()
