# The header {{ table.study }}.hpp as a target. Written by launchwise export {{ table.version }}.
#   find_package({{ table.study }} CONFIG REQUIRED PATHS ${CMAKE_CURRENT_SOURCE_DIR}/{{ table.study }}.cmake)
#   target_link_libraries(program PRIVATE launchwise::{{ table.study | name }})
if(NOT TARGET launchwise::{{ table.study | name }})
  add_library(launchwise::{{ table.study | name }} INTERFACE IMPORTED)
  target_include_directories(launchwise::{{ table.study | name }} INTERFACE "${CMAKE_CURRENT_LIST_DIR}")
  target_compile_features(launchwise::{{ table.study | name }} INTERFACE cxx_std_17)
endif()
