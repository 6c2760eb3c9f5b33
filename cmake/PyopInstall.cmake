# What the wheel has for code of others: headers with the declarations for Cython beside them, which `cimport pyop` also finds in
# the package, and the files of find_package(pyop).
include(CMakePackageConfigHelpers)

install(DIRECTORY csrc/include/ DESTINATION pyop/include)
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/__init__.pxd" CONTENT "include \"include/pyop/__init__.pxd\"\n" @ONLY)
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/pyopConfigVersion.cmake" COMPATIBILITY SameMajorVersion ARCH_INDEPENDENT)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/__init__.pxd" DESTINATION pyop)
install(FILES "${CMAKE_CURRENT_SOURCE_DIR}/cmake/pyopConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/pyopConfigVersion.cmake"
        DESTINATION pyop/cmake)
