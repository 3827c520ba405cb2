# ES modules, and a style sheet if one is given, as constants of C++. The modules become one script, in the order in which
# they are given: each is a function that returns what it exports (export const NAME), and an import takes that. Lines
# that are comments, what lines begin with, and blanks around operators (which no text of a module may have) are left out.
# With a style sheet the constants' SHA-256 are constants too.
#   cmake -DFROM="a.js;b.js" -DTO=a.cc -DNAME=kPage [-DSTYLE=a.css] -P join_modules.cmake
set(script "'use strict';\n")
foreach(module IN LISTS FROM)
  get_filename_component(name ${module} NAME_WE)
  file(READ ${module} text)
  string(REGEX MATCHALL "(^|\n)export const [A-Za-z0-9_]+" exports "${text}")
  string(REGEX REPLACE "\n?export const " "" exports "${exports}")
  string(REPLACE ";" ", " exports "${exports}")
  string(REGEX REPLACE "(^|\n)import ([^;]*) from '[./a-z]*/([a-z_]+)\\.js';" "\\1const \\2 = module_\\3;" text "${text}")
  string(REGEX REPLACE "(^|\n)export const " "\\1const " text "${text}")
  string(REGEX REPLACE "(^|\n)( *//[^\n]*\n)+" "\\1" text "${text}")
  string(REGEX REPLACE "\n[\n ]+" "\n" text "${text}")
  string(REGEX REPLACE " +// [^\n'`]*\n" "\n" text "${text}")
  string(REGEX REPLACE " (=>|=|===|!==|&&|[|][|]) " "\\1" text "${text}")
  string(APPEND script "const module_${name} = (() => {\n${text}return {${exports}};\n})();\n")
endforeach()
set(constants "extern const std::string_view ${NAME}Script;
constinit const std::string_view ${NAME}Script = R\"embedded_text(${script})embedded_text\";
")
set(texts script)
if(STYLE)
  file(READ ${STYLE} style)
  list(APPEND texts style)
endif()
foreach(text IN LISTS texts)
  foreach(end IN ITEMS "</s" "<!--" "]]>" ")embedded_text\"")
    string(FIND "${${text}}" "${end}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${end} would end the ${text} of a page or picture where it is put in")
    endif()
  endforeach()
  string(SHA256 ${text}_hash "${${text}}")
endforeach()
if(STYLE)
  string(APPEND constants "
extern const std::string_view ${NAME}ScriptHash, ${NAME}Style, ${NAME}StyleHash;
constinit const std::string_view ${NAME}ScriptHash = \"${script_hash}\";
constinit const std::string_view ${NAME}Style = R\"embedded_text(${style})embedded_text\";
constinit const std::string_view ${NAME}StyleHash = \"${style_hash}\";
")
endif()
file(WRITE ${TO} "#include <string_view>

namespace tacho::report {

${constants}
}  // namespace tacho::report
")
