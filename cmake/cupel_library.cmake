# One static library per layer of src/cupel: what a layer may include is what it links.

add_library(cupel_options INTERFACE)
target_include_directories(cupel_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(cupel_options INTERFACE
  -march=${CUPEL_MARCH}
  # Part of the determinism contract: a fused multiply-add happens only where one is written.
  -ffp-contract=off
  -Wall -Wextra -Wpedantic
  # g++ 12 reports it for plain std::string concatenation (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<BOOL:${CUPEL_WERROR}>:-Werror>)
if(CUPEL_SANITIZE)
  target_compile_options(cupel_options INTERFACE -fsanitize=${CUPEL_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(cupel_options INTERFACE -fsanitize=${CUPEL_SANITIZE})
endif()

if(CUPEL_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "The fuzzers need clang: CUPEL_BUILD_FUZZERS with ${CMAKE_CXX_COMPILER}")
  endif()
  # Coverage feedback in the code under test; the fuzzer's own main comes with the fuzzers.
  target_compile_options(cupel_options INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(cupel_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# What the sanitizer build consists of.
add_custom_target(fast_tests)
add_custom_target(fuzzers)

# cupel_library(NAME SOURCES file... LINK target...): the library cupel_NAME.
function(cupel_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(cupel_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(cupel_${name} PUBLIC cupel_options ${ARG_LINK})
endfunction()

# Minutes long: built and run by `make check-long` alone.
add_custom_target(long_tests)

# cupel_test(NAME SOURCES file... LINK target... [LABELS label...]): the gtest program NAME_test.
# Tests find their data under CUPEL_SOURCE_DIR. Those labelled fast are the ones of the sanitizer build.
function(cupel_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;LABELS" ${ARGN})
  if(CUPEL_FAST_TESTS_ONLY AND NOT "fast" IN_LIST ARG_LABELS)
    return()
  endif()
  add_executable(${name}_test ${ARG_SOURCES})
  target_link_libraries(${name}_test PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest_main)
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name}_test PRIVATE CUPEL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT 600 LABELS "${ARG_LABELS}")
  if("fast" IN_LIST ARG_LABELS)
    add_dependencies(fast_tests ${name}_test)
  endif()
endfunction()

# cupel_long_test(NAME SOURCES file... LINK target...): the gtest program NAME, one test labelled long.
function(cupel_long_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE CUPEL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS long TIMEOUT 3600 PROCESSORS 2)
  add_dependencies(long_tests ${name})
endfunction()
