# What scikit-build-core does for a wheel, for a plain `cmake --preset …`:
# finds the build tools of the active Python environment, and makes `install` lay out an importable package.
if(SKBUILD)
  return()
endif()

# python_dir(out module expression): a folder that an installed Python build tool tells about itself.
function(pyop_python_dir out module expression)
  execute_process(COMMAND "${Python_EXECUTABLE}" -c "import ${module}; print(${expression})"
                  OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(failed)
    message(FATAL_ERROR "${Python_EXECUTABLE} cannot import ${module}. Build without pip needs the build tools in the "
                        "active environment: pip install --group build")
  endif()
  set(${out} "${answer}" PARENT_SCOPE)
endfunction()

pyop_python_dir(pybind11_ROOT pybind11 "pybind11.get_cmake_dir()")
pyop_python_dir(PYOP_CYTHON_CMAKE cython_cmake "cython_cmake.__path__[0]")
list(APPEND CMAKE_MODULE_PATH "${PYOP_CYTHON_CMAKE}/cmake")

install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/python/pyop" DESTINATION .
        PATTERN "__pycache__" EXCLUDE)
