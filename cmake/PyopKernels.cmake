# pyop_kernels(target folder): the sources of csrc/kernels are exact (no fused multiply-add) and, on x86-64, those that
# include loops.h are compiled again for newer processors; kernels/level.h says how one is chosen.
include(CheckCXXCompilerFlag)

function(pyop_kernels target folder)
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp" "${folder}/exact/*.cpp")
  # A wheel has all levels. Those for processors without AVX2, before 2013 for the most part, are small; in newer ones what is
  # left over behind the vectors is not unrolled where that would be most of the code, or the level gains little.
  set(loops -O3)
  set(short -O2 -ftree-vectorize -fvect-cost-model=dynamic)
  set_source_files_properties(
    ${sources} PROPERTIES COMPILE_OPTIONS "$<TARGET_PROPERTY:PYOP_LOOPS>;-ffp-contract=off;-fno-math-errno"
                          SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  set(simple ${sources})
  list(FILTER simple INCLUDE REGEX "/(bits|cast|comparison|fast)[.]cpp$")
  set_property(SOURCE ${simple} PROPERTY COMPILE_OPTIONS "$<TARGET_PROPERTY:PYOP_SIMPLE_LOOPS>;-ffp-contract=off;-fno-math-errno")
  # Its vectors are written by hand where there is AVX2: nothing is left for the compiler but size.
  set_property(SOURCE "${folder}/sum.cpp" PROPERTY COMPILE_OPTIONS "$<TARGET_PROPERTY:PYOP_SUMS>;-ffp-contract=off;-fno-math-errno")
  set_target_properties(${target} PROPERTIES PYOP_LOOPS "${loops}" PYOP_SIMPLE_LOOPS "${loops}" PYOP_SUMS "${loops}")
  set_property(SOURCE "${folder}/rounding.cpp" "${folder}/fast.cpp" APPEND PROPERTY COMPILE_OPTIONS "-fno-trapping-math")
  target_link_libraries(${target} PUBLIC ${CMAKE_DL_LIBS})  # fast.cpp asks for libmvec at run time
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" OR CMAKE_OSX_ARCHITECTURES)
    return()
  endif()
  check_cxx_compiler_flag("-march=x86-64-v4" PYOP_HAS_X86_LEVELS)
  if(NOT PYOP_HAS_X86_LEVELS)
    return()
  endif()
  target_compile_definitions(${target} PRIVATE PYOP_KERNEL_X86)
  set_target_properties(${target} PROPERTIES PYOP_LOOPS -O2 PYOP_SIMPLE_LOOPS -O2 PYOP_SUMS -O2)
  list(REMOVE_ITEM sources "${folder}/kernel.cpp")
  # Vectors of 256 bits also where there are wider ones: as fast on blocks in the first cache, and short blocks have
  # less left over at their end.
  file(GLOB exact CONFIGURE_DEPENDS "${folder}/exact/*.cpp")
  foreach(level v3 v4)
    # As fast as at v3, within 2 percent; products and moves become the same instructions, as does what arithmetic.cpp and
    # extremum.cpp leave to the level below.
    if(level STREQUAL v4)
      list(REMOVE_ITEM sources "${folder}/fused.cpp" "${folder}/move.cpp" "${folder}/product.cpp" "${folder}/rounding.cpp"
                       "${folder}/sum.cpp" ${exact})
    endif()
    add_library(${target}_${level} OBJECT ${sources})
    target_include_directories(${target}_${level} PRIVATE csrc)
    target_compile_definitions(${target}_${level} PRIVATE PYOP_KERNEL_LEVEL=${level})
    if(level STREQUAL v4)
      target_compile_definitions(${target}_${level} PRIVATE PYOP_KERNEL_BELOW=v3)
      set(loops ${short})
    endif()
    set_target_properties(${target}_${level} PROPERTIES PYOP_LOOPS "${loops}" PYOP_SIMPLE_LOOPS "${short}" PYOP_SUMS -Os)
    target_compile_options(${target}_${level} PRIVATE -march=x86-64-${level} -mprefer-vector-width=256)
    pyop_warnings(${target}_${level})
    pyop_sanitize(${target}_${level})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_${level}>)
  endforeach()
endfunction()
