# pyop_symbols(target): an extension module shows its PyInit function, the core also what ONNX Runtime looks for, and nothing
# else, not even the templates of the standard library that it has instantiated: another library's of another version must not
# take their place. What none of these reaches is left out.
function(pyop_symbols target)
  if(APPLE)
    target_link_options(${target} PRIVATE "LINKER:-exported_symbol,_PyInit_*" "LINKER:-exported_symbol,_RegisterCustomOp*")
  elseif(UNIX)
    set(script "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/symbols.map")
    target_link_options(${target} PRIVATE "LINKER:--version-script=${script}" "LINKER:--gc-sections")
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${script}")
  endif()
endfunction()
