# Text files, one after the other, as a constant of C++; what modules of JavaScript export is a constant of the script.
#   cmake -DFROM="a.js;b.js" -DTO=a.cc -DNAME=kScript -DNAMESPACE=a::b -P embed_text.cmake
set(text "")
foreach(file ${FROM})
  file(READ ${file} one)
  string(REGEX REPLACE "(^|\n)export const " "\\1const " one "${one}")
  string(APPEND text "${one}")
endforeach()
foreach(end "]]>" ")embedded_text\"")
  string(FIND "${text}" "${end}" at)
  if(NOT at EQUAL -1)
    message(FATAL_ERROR "${FROM}: ${end} would end the text where it is put in")
  endif()
endforeach()
file(WRITE ${TO} "#include <string_view>

namespace ${NAMESPACE} {

extern const std::string_view ${NAME};
constinit const std::string_view ${NAME} = R\"embedded_text(${text})embedded_text\";

}  // namespace ${NAMESPACE}
")
