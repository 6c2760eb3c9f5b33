# pyop_warnings(target): the warnings the core is kept clean of.
function(pyop_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
                                           -Wno-missing-field-initializers -Wno-cast-function-type)
  if(PYOP_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
