# pyop_warnings(target): the warnings the core is kept clean of. Nobody reads those of a build that is made once, and looking for
# them takes a twentieth of its time.
function(pyop_warnings target)
  if(PYOP_UNITY AND NOT PYOP_WERROR)
    target_compile_options(${target} PRIVATE -w)
    return()
  endif()
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
                                           -Wno-missing-field-initializers -Wno-cast-function-type
                                           # false alarms of g++ 12 on std::string and on arrays filled by count
                                           -Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow)
  if(PYOP_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
