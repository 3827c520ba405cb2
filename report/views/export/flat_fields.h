// The fields of a payload for a format without lists: those become texts, "[1 2 3]".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "report/output/field_sinks.h"

namespace tacho::report {

class FlatFields : public FieldSink {
 public:
  // `to` must outlive it.
  explicit FlatFields(FieldSink& to) : to_(to) {}
  // The name of a field there.
  virtual std::string key(std::string_view name) const { return std::string(name); }

  void number(std::string_view name, std::uint64_t value) override {
    depth_ > 0 ? list_.number("", value) : to_.number(key(name), value);
  }
  void signed_number(std::string_view name, std::int64_t value) override {
    depth_ > 0 ? list_.signed_number("", value) : to_.signed_number(key(name), value);
  }
  void real(std::string_view name, double value) override {
    depth_ > 0 ? list_.real("", value) : to_.real(key(name), value);
  }
  void hex(std::string_view name, std::uint64_t value) override {
    depth_ > 0 ? list_.hex("", value) : to_.hex(key(name), value);
  }
  void text(std::string_view name, std::string_view value) override {
    depth_ > 0 ? list_.text("", value) : to_.text(key(name), value);
  }
  void bytes(std::string_view name, format::Bytes value) override {
    depth_ > 0 ? list_.bytes("", value) : to_.bytes(key(name), value);
  }
  void flag(std::string_view name, bool value) override {
    depth_ > 0 ? list_.flag("", value) : to_.text(key(name), value ? "true" : "false");
  }
  void begin_list(std::string_view name) override {
    if (depth_++ == 0) name_ = key(name);
    list_.begin_list("");
  }
  void end_list() override {
    list_.end_list();
    if (--depth_ > 0) return;
    to_.text(name_, text_.view());
    text_.clear();
  }
  void begin_object(std::string_view /*name*/) override {}  // payloads have none
  void end_object() override {}

 private:
  FieldSink& to_;
  TextBuffer text_;
  TextFields list_{text_};
  std::string name_;
  int depth_ = 0;
};

}  // namespace tacho::report
