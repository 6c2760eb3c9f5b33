# Whether pyop can be built for this interpreter and this system: said before anything is compiled.
option(PYOP_ANY_PLATFORM "Build where nobody has run the tests: musl, macOS, Windows" OFF)

if(Python_INTERPRETER_ID STREQUAL "PyPy")
  message(FATAL_ERROR "pyop runs on CPython 3.11 or newer, not on PyPy: its core keeps CPython's objects")
endif()
if(NOT PYOP_ANY_PLATFORM AND (WIN32 OR APPLE OR Python_SOABI MATCHES "musl"))
  message(FATAL_ERROR "pyop runs on Linux with glibc; on ${CMAKE_SYSTEM_NAME} with ${Python_SOABI} nobody has run its tests. To "
                      "try: pip install -Ccmake.define.PYOP_ANY_PLATFORM=ON")
endif()
