# find_package(pyop CONFIG): the headers of an installed pyop, wherever it lies. `pyop-config --cmakedir` is this folder.
#
#   pyop::headers      target to link: the folder of <pyop/…>, as system headers
#   pyop_INCLUDE_DIR   that folder; also what Cython needs for `cimport pyop`: CYTHON_ARGS -I "${pyop_INCLUDE_DIR}"
#   pyop_VERSION
get_filename_component(pyop_INCLUDE_DIR "${CMAKE_CURRENT_LIST_DIR}/../include" ABSOLUTE)
if(NOT EXISTS "${pyop_INCLUDE_DIR}/pyop/version.h")
  set(pyop_FOUND FALSE)
  set(pyop_NOT_FOUND_MESSAGE "${CMAKE_CURRENT_LIST_DIR} is no longer part of an installed pyop: there is no "
                             "${pyop_INCLUDE_DIR}/pyop/version.h")
  return()
endif()
if(NOT TARGET pyop::headers)
  add_library(pyop::headers INTERFACE IMPORTED)
  set_target_properties(pyop::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${pyop_INCLUDE_DIR}")
endif()
