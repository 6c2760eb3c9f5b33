# pyop_sanitize(target): build a target with the sanitizers of PYOP_SANITIZE, if any.
function(pyop_sanitize target)
  if(PYOP_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${PYOP_SANITIZE} -fno-omit-frame-pointer -g)
    target_link_options(${target} PRIVATE -fsanitize=${PYOP_SANITIZE})
  endif()
endfunction()
