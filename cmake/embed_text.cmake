# Texts as constants of C++: cmake -DTO=file.cc "-DTEXTS=kName|path;kName|path" -P embed_text.cmake
set(constants "")
foreach(pair IN LISTS TEXTS)
  string(REPLACE "|" ";" pair "${pair}")
  list(GET pair 0 name)
  list(GET pair 1 path)
  file(READ "${path}" text)
  string(APPEND constants "extern const std::string_view ${name};
constinit const std::string_view ${name} = R\"embedded_text(${text})embedded_text\";
")
endforeach()
file(WRITE ${TO} "#include <string_view>

namespace tacho::report {

${constants}
}  // namespace tacho::report
")
