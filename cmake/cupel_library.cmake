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

# cupel_library(NAME SOURCES file... LINK target...): the library cupel_NAME.
function(cupel_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(cupel_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(cupel_${name} PUBLIC cupel_options ${ARG_LINK})
endfunction()

# cupel_test(NAME SOURCES file... LINK target... [LABELS label...]): the gtest program NAME_test.
# Tests find their data under CUPEL_SOURCE_DIR.
function(cupel_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name}_test ${ARG_SOURCES})
  target_link_libraries(${name}_test PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest_main)
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name}_test PRIVATE CUPEL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT 600 LABELS "${ARG_LABELS}")
endfunction()
