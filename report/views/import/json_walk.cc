#include "report/views/import/json_walk.h"

#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace tacho::report {
namespace {

constexpr int kNoPlace = -1;  // below a place that no step leads from

class WalkedJson {
 public:
  WalkedJson(std::span<const JsonStep> steps, const JsonTaker& taker) : steps_(steps), taker_(taker) {}

  bool Null() { return true; }
  bool Bool(bool /*value*/) { return true; }
  bool Int(int value) { return Int64(value); }
  bool Uint(unsigned value) { return Uint64(value); }
  bool Int64(std::int64_t value) {
    return value < 0 ? number({.real = static_cast<double>(value), .whole = 0, .is_whole = false})
                     : Uint64(static_cast<std::uint64_t>(value));
  }
  bool Uint64(std::uint64_t value) {
    return number({.real = static_cast<double>(value), .whole = value, .is_whole = true});
  }
  bool Double(double value) { return number({.real = value, .whole = 0, .is_whole = false}); }
  bool RawNumber(const char* /*text*/, rapidjson::SizeType /*size*/, bool /*copy*/) { return true; }
  bool String(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    if (const int place = value_place(); place > 0) taker_.text(place, {text, size});
    return true;
  }
  bool Key(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    next_ = step(stack_.back().place, {text, size});
    return true;
  }
  bool StartObject() { return start(false); }
  bool StartArray() { return start(true); }
  bool EndObject(rapidjson::SizeType /*members*/) { return end(); }
  bool EndArray(rapidjson::SizeType /*items*/) { return end(); }

 private:
  struct Level {
    int place;
    bool is_array;
    int item;  // the place of the array's items
  };
  int step(int from, std::string_view key) const {
    if (from == kNoPlace) return kNoPlace;
    const auto known = std::ranges::find_if(
        steps_, [&](const JsonStep& step) { return step.from == from && step.key == key; });
    return known == steps_.end() ? kNoPlace : known->to;
  }
  int value_place() const {
    if (stack_.empty()) return 0;
    return stack_.back().is_array ? stack_.back().item : next_;
  }
  bool number(const JsonNumber& value) {
    if (const int place = value_place(); place > 0) taker_.number(place, value);
    return true;
  }
  bool start(bool is_array) {
    const int place = value_place();
    stack_.push_back({place, is_array, is_array ? step(place, {}) : kNoPlace});
    if (place > 0) taker_.begin(place);
    return true;
  }
  bool end() {
    const int place = stack_.back().place;
    stack_.pop_back();
    if (place > 0) taker_.end(place);
    return true;
  }

  std::span<const JsonStep> steps_;
  const JsonTaker& taker_;
  std::vector<Level> stack_;
  int next_ = kNoPlace;  // the place of the value after a key
};

}  // namespace

std::uint64_t JsonNumber::clamped(std::uint64_t most) const {
  if (is_whole) return std::min(whole, most);
  if (!(real > 0)) return 0;
  return real >= static_cast<double>(most) ? most : static_cast<std::uint64_t>(std::round(real));
}

Result<> walk_json(format::Bytes bytes, std::span<const JsonStep> steps, const JsonTaker& taker) {
  const std::string_view text = format::as_text(bytes);
  rapidjson::MemoryStream in(text.data(), text.size());
  rapidjson::Reader reader;
  WalkedJson walked(steps, taker);
  const auto parsed = reader.Parse<rapidjson::kParseIterativeFlag>(in, walked);
  if (parsed.IsError())
    return Error{"no JSON at byte " + std::to_string(parsed.Offset()) + ": " +
                 rapidjson::GetParseError_En(parsed.Code())};
  return Done{};
}

}  // namespace tacho::report
