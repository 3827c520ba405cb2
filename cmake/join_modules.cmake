# ES modules and a style sheet as constants of C++, with their SHA-256. The modules become one script, in the order in
# which they are given: each is a function that returns what it exports (export const NAME), and an import takes that.
#   cmake -DFROM="a.js;b.js" -DSTYLE=a.css -DTO=a.cc -P join_modules.cmake
set(script "'use strict';\n")
foreach(module IN LISTS FROM)
  get_filename_component(name ${module} NAME_WE)
  file(READ ${module} text)
  string(REGEX MATCHALL "(^|\n)export const [A-Za-z0-9_]+" exports "${text}")
  string(REGEX REPLACE "\n?export const " "" exports "${exports}")
  string(REPLACE ";" ", " exports "${exports}")
  string(REGEX REPLACE "(^|\n)import ([^;]*) from '[./a-z]*/([a-z_]+)\\.js';" "\\1const \\2 = module_\\3;" text "${text}")
  string(REGEX REPLACE "(^|\n)export const " "\\1const " text "${text}")
  string(APPEND script "const module_${name} = (() => {\n${text}return {${exports}};\n})();\n")
endforeach()
file(READ ${STYLE} style)
foreach(text IN ITEMS script style)
  foreach(end "</s" "<!--" ")embedded_text\"")
    string(FIND "${${text}}" "${end}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${end} would end the ${text} of a page where it is put in")
    endif()
  endforeach()
  string(SHA256 ${text}_hash "${${text}}")
endforeach()
file(WRITE ${TO} "#include <string_view>

namespace tacho::report {

extern const std::string_view kPageScript, kPageScriptHash, kPageStyle, kPageStyleHash;
constinit const std::string_view kPageScript = R\"embedded_text(${script})embedded_text\";
constinit const std::string_view kPageScriptHash = \"${script_hash}\";
constinit const std::string_view kPageStyle = R\"embedded_text(${style})embedded_text\";
constinit const std::string_view kPageStyleHash = \"${style_hash}\";

}  // namespace tacho::report
")
