// Output of named fields in two forms: `name=value` on a line, and a JSON object. Both stand beside their
// interface, since a new kind of field is a line in each.
#pragma once

#include <rapidjson/writer.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "format/base/cursor.h"
#include "report/output/text_output.h"

namespace tacho::report {

// The interface of both forms. docs/capture-format.md ("Names of fields") lists the names. Elements of a list
// have empty names.
class FieldSink {
 public:
  virtual ~FieldSink() = default;
  virtual void number(std::string_view name, std::uint64_t value) = 0;
  virtual void signed_number(std::string_view name, std::int64_t value) = 0;
  virtual void real(std::string_view name, double value) = 0;
  // An address or a mask, written in hexadecimal.
  virtual void hex(std::string_view name, std::uint64_t value) = 0;
  virtual void text(std::string_view name, std::string_view value) = 0;
  virtual void bytes(std::string_view name, format::Bytes value) = 0;
  virtual void flag(std::string_view name, bool value) = 0;
  virtual void begin_list(std::string_view name) = 0;
  virtual void end_list() = 0;
  virtual void begin_object(std::string_view name) = 0;
  virtual void end_object() = 0;
};

// `name=value`, separated by blanks; texts in quotes, lists in [], objects in {}. In a text, control bytes,
// invalid UTF-8 and direction overrides are written \xNN, and \ and " are escaped by \, so that the original
// bytes can be recovered.
class TextFields : public FieldSink {
 public:
  explicit TextFields(TextBuffer& out) : out_(out) {}

  void number(std::string_view name, std::uint64_t value) override;
  void signed_number(std::string_view name, std::int64_t value) override;
  void real(std::string_view name, double value) override;
  void hex(std::string_view name, std::uint64_t value) override;
  void text(std::string_view name, std::string_view value) override;
  void bytes(std::string_view name, format::Bytes value) override;
  void flag(std::string_view name, bool value) override { number(name, value ? 1 : 0); }
  void begin_list(std::string_view name) override { begin_bracket(name, '['); }
  void end_list() override { end_bracket(']'); }
  void begin_object(std::string_view name) override { begin_bracket(name, '{'); }
  void end_object() override { end_bracket('}'); }

 private:
  void key(std::string_view name);
  void begin_bracket(std::string_view name, char bracket);
  void end_bracket(char bracket);

  TextBuffer& out_;
  bool first_ = false;  // the next value is the first of a list or object: no blank before it
};

// One JSON object in valid UTF-8: numbers as numbers, hexadecimal ones as strings "0x...", bytes as strings
// of hex digits, infinity and NaN as null, texts as printable_json() makes them.
class JsonFields : public FieldSink {
 public:
  explicit JsonFields(TextBuffer& out) : stream_{out}, writer_(stream_) { writer_.StartObject(); }
  void finish() { writer_.EndObject(); }
  // A value that is JSON already.
  void json(std::string_view name, std::string_view value);
  // A text that printable() made.
  void printed(std::string_view name, std::string_view value);

  void number(std::string_view name, std::uint64_t value) override;
  void signed_number(std::string_view name, std::int64_t value) override;
  void real(std::string_view name, double value) override;
  void hex(std::string_view name, std::uint64_t value) override;
  void text(std::string_view name, std::string_view value) override;
  void bytes(std::string_view name, format::Bytes value) override;
  void flag(std::string_view name, bool value) override;
  void begin_list(std::string_view name) override;
  void end_list() override { writer_.EndArray(); }
  void begin_object(std::string_view name) override;
  void end_object() override { writer_.EndObject(); }

 private:
  // What RapidJSON writes to.
  struct Stream {
    using Ch = char;
    TextBuffer& out;
    void Put(char c) { out.character(c); }
    void Flush() {}
  };
  // RapidJSON's own allocator does not check whether malloc() failed.
  struct Memory {
    static constexpr bool kNeedFree = true;
    static void* Malloc(std::size_t size) { return Realloc(nullptr, 0, size); }
    static void* Realloc(void* old, std::size_t old_size, std::size_t size);
    static void Free(void* memory) { std::free(memory); }
  };
  void key(std::string_view name);
  void string(std::string_view value);

  Stream stream_;
  rapidjson::Writer<Stream, rapidjson::UTF8<>, rapidjson::UTF8<>, Memory> writer_;
};

}  // namespace tacho::report
