#include "symbolize/names/demangle.h"

#include <algorithm>
#include <cctype>
#include <csetjmp>
#include <iterator>
#include <memory>
#include <utility>

// libiberty.h's declaration of basename() conflicts with string.h's.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

namespace tacho::symbolize {
namespace {

// Limits: a mangled name of a few hundred bytes can expand to gigabytes, if each level repeats the one below
// twice.
constexpr std::size_t kLongestText = 64 * 1024;  // bytes
constexpr std::size_t kLongestName = 64 * 1024;  // bytes

struct Collected {
  std::unique_ptr<char[]> text = std::make_unique_for_overwrite<char[]>(kLongestText);
  std::size_t size = 0;
  std::jmp_buf too_long;
};

// libiberty cannot be stopped, so a text that is too long is left by longjmp(). The skipped frames are C and
// own only stack memory (v3), or at most one small buffer (Rust's punycode).
void collect(const char* piece, std::size_t size, void* opaque) noexcept {
  auto& collected = *static_cast<Collected*>(opaque);
  if (size > kLongestText - collected.size) std::longjmp(collected.too_long, 1);
  std::copy_n(piece, size, collected.text.get() + collected.size);  // an empty piece may be null
  collected.size += size;
}

using Language = int (*)(const char*, int, demangle_callbackref, void*);

// The target of longjmp(): it has no locals with destructors.
bool collect_with(Language demangle_in, const char* name, int options, Collected& collected) {
  collected.size = 0;
  if (setjmp(collected.too_long) != 0) return false;  // NOLINT: see collect()
  return demangle_in(name, options, collect, &collected) != 0;
}

constexpr std::string_view kOcaml = "caml";

bool starts_mangled(std::string_view name) {
  return name.starts_with("_Z") || name.starts_with("_R") || name.starts_with("_GLOBAL_") ||
         name.starts_with(kOcaml);
}

// OCaml: "caml" Module "__" name, with $XX for bytes that assemblers refuse.
std::optional<std::string> demangle_ocaml(std::string_view name) {
  const auto is = [](auto test, char c) { return test(static_cast<unsigned char>(c)) != 0; };
  if (!name.starts_with(kOcaml) || name.size() == kOcaml.size() || !is(isupper, name[kOcaml.size()])) {
    return std::nullopt;
  }
  std::string text;
  for (std::string_view rest = name.substr(kOcaml.size()); !rest.empty();) {
    std::size_t used = 1;
    if (rest.starts_with("__")) {
      text += '.';
      used = 2;
    } else if (rest.size() > 2 && rest[0] == '$' && is(isxdigit, rest[1]) && is(isxdigit, rest[2])) {
      text += static_cast<char>(std::stoi(std::string(rest.substr(1, 2)), nullptr, 16));
      used = 3;
    } else {
      text += rest[0];
    }
    rest.remove_prefix(used);
  }
  return text;
}

// Java names as written by agents into perf maps: "LPACKAGE/CLASS;METHOD(TYPES)RESULT". Shown as perf does:
// without the result, and with the brackets of an array of objects after the next primitive type.
class JavaName {
 public:
  static std::optional<std::string> read(std::string_view name) {
    const auto end = name.rfind(')');
    if (end == std::string_view::npos) return std::nullopt;
    JavaName java;
    for (std::size_t i = 0; i <= end; ++i) {
      const bool is_before_letter = i < end && std::isalpha(static_cast<unsigned char>(name[i + 1])) != 0;
      if (!java.take(name[i], is_before_letter)) return std::nullopt;
    }
    return std::move(java.text_);
  }

 private:
  enum class Part : std::uint8_t { Before, Class, Method, Types, TypesClass };
  static constexpr std::pair<char, std::string_view> kTypes[] = {
      {'B', "byte"}, {'C', "char"},  {'D', "double"},  {'F', "float"}, {'I', "int"},
      {'J', "long"}, {'S', "short"}, {'Z', "boolean"}, {'V', "void"}};

  bool put(std::string_view text) {
    text_ += text;
    return true;
  }
  bool go(Part from, Part to, std::string_view text) {
    if (part_ != from) return false;
    part_ = to;
    return put(text);
  }
  void begin_argument() {
    if (arguments_++ > 0) text_ += ", ";
  }
  bool take_type(char c) {
    const auto type = std::ranges::find(kTypes, c, &std::pair<char, std::string_view>::first);
    if (type == std::end(kTypes)) return put({&c, 1});
    if (c != 'V') begin_argument();
    text_ += type->second;
    for (; arrays_ > 0; --arrays_) text_ += "[]";
    return true;
  }
  bool is_in_class() const { return part_ == Part::Class || part_ == Part::TypesClass; }

  bool take(char c, bool is_before_letter) {
    switch (c) {
      case 'L':
        if (part_ == Part::Before) return go(Part::Before, Part::Class, "");
        if (part_ != Part::Types) return put("L");
        begin_argument();
        return go(Part::Types, Part::TypesClass, "");
      case ';':
        if (part_ == Part::TypesClass) return go(Part::TypesClass, Part::Types, "");
        return go(Part::Class, Part::Method, is_before_letter ? "." : "");
      case '/':
        return is_in_class() && put(".");
      case '(':
        return go(Part::Method, Part::Types, "(");
      case ')':
        arguments_ = 0;
        return go(Part::Types, Part::Types, ")");
      case '[':
        ++arrays_;
        return part_ == Part::Types;
      default:
        return part_ == Part::Types ? take_type(c) : put({&c, 1});
    }
  }

  Part part_ = Part::Before;
  std::size_t arguments_ = 0, arrays_ = 0;
  std::string text_;
};

}  // namespace

// Java's names have a ';'.
bool may_be_mangled(std::string_view name) {
  return starts_mangled(name) || name.find(';') != std::string_view::npos;
}

std::optional<std::string> demangle(std::string_view name, NameForm form) {
  if (!may_be_mangled(name) || name.size() > kLongestName) return std::nullopt;
  if (name.starts_with(kOcaml)) return demangle_ocaml(name);
  if (!starts_mangled(name)) return JavaName::read(name);
  const std::string terminated(name);
  Collected collected;
  constexpr int kWhole = DMGL_PARAMS | DMGL_ANSI;
  const int options = form == NameForm::Short   ? DMGL_NO_OPTS
                      : form == NameForm::Whole ? kWhole
                                                : kWhole | DMGL_RET_DROP;
  for (const Language language : {rust_demangle_callback, cplus_demangle_v3_callback}) {
    if (collect_with(language, terminated.c_str(), options, collected)) {
      return std::string(collected.text.get(), collected.size);
    }
  }
  return std::nullopt;
}

std::string_view Demangler::shown(std::string_view name) {
  if (!may_be_mangled(name)) return name;
  const auto seen = seen_.find({name.data(), name.size()});
  if (seen != seen_.end()) return seen->second;
  auto text = demangle(name, form_);
  const std::string_view result = text ? std::string_view(texts_.emplace_back(std::move(*text))) : name;
  seen_.emplace(Name{name.data(), name.size()}, result);
  return result;
}

}  // namespace tacho::symbolize
