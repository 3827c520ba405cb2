#include "record/events/condition.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cli/message_text.h"
#include "cli/nearest.h"
#include "format/base/units.h"

namespace tacho::record {
namespace {

using bpf::FilterStep;
using bpf::FilterTest;
using bpf::FilterValue;
using cli::ExpressionNode;
using cli::Operation;
using format::FieldKind;
using format::PayloadField;

constexpr std::string_view kSamplePrefix = "sample.";
constexpr std::size_t kNameBytes = 16;  // of a thread's name, with its NUL

struct OwnName {
  std::string_view name;
  FilterValue value;
};
constexpr OwnName kNumbers[] = {
    {"pid", FilterValue::Process}, {"tid", FilterValue::Thread}, {"uid", FilterValue::User},
    {"gid", FilterValue::Group},   {"cpu", FilterValue::Cpu},    {"cgroup_id", FilterValue::Cgroup},
};
constexpr std::string_view kAllNames = "pid, tid, comm, cgroup, cgroup_id, uid, gid, cpu";

Operation mirrored(Operation operation) {
  switch (operation) {
    case Operation::Less:
      return Operation::Greater;
    case Operation::LessOrEqual:
      return Operation::GreaterOrEqual;
    case Operation::Greater:
      return Operation::Less;
    case Operation::GreaterOrEqual:
      return Operation::LessOrEqual;
    default:
      return operation;
  }
}
bool is_comparison(Operation operation) {
  return operation >= Operation::Equal && operation <= Operation::GreaterOrEqual;
}

// A constant: the value of a 64-bit member, signed or not, and sums of those.
__extension__ using Wide = __int128;

// The target of a jump, while steps are made in reverse order: the number of a step, or an exit.
enum : int { kTakes = -1, kLeaves = -2 };

class Compiler {
 public:
  Compiler(std::string_view option, const cli::Expression& expression, const ConditionNames& names)
      : option_(option), source_(expression), names_(names) {}

  Result<Condition> compile() {
    const auto first = add_steps(source_.nodes.size() - 1, kTakes, kLeaves);
    if (!first) return first.error();
    if (made_.size() > bpf::kMostFilterSteps)
      return use_error(std::string(option_) + ": '" + source_.source + "' takes " +
                       std::to_string(made_.size()) + " comparisons in the kernel, whose limit is " +
                       std::to_string(bpf::kMostFilterSteps));
    Condition out{{}, has_members_};
    const auto target = [&](int to) {
      if (to == kTakes) return bpf::kFilterPasses;
      if (to == kLeaves) return bpf::kFilterRejects;
      return static_cast<std::uint8_t>(made_.size() - 1 - static_cast<std::size_t>(to));
    };
    for (auto step = made_.rbegin(); step != made_.rend(); ++step) {
      FilterStep done = step->step;
      done.yes = target(step->yes);
      done.no = target(step->no);
      out.steps.push_back(done);
    }
    return out;
  }

 private:
  struct Made {
    FilterStep step;
    int yes = kTakes, no = kLeaves;
  };
  // One side of a comparison.
  struct Subject {
    FilterStep step;
    std::string name;
    const PayloadField* field = nullptr;
    bool is_text = false, is_cgroup = false;
    std::size_t text_bytes = 0;  // size of the member, of a text
  };

  const ExpressionNode& node(std::size_t i) const { return source_.nodes[i]; }
  Error wrong(std::size_t i, std::string_view what) const {
    return cli::error_at(option_, source_.source, node(i).at, what);
  }
  int add(FilterStep step, int yes, int no) {
    made_.push_back({step, yes, no});
    return static_cast<int>(made_.size()) - 1;
  }

  // The first step of node `i`; `yes` and `no` are the next steps. The depth of the tree is bounded by the
  // parser.
  Result<int> add_steps(std::size_t i, int yes, int no) {
    const ExpressionNode& at = node(i);
    if (at.operation == Operation::Not) return add_steps(at.left, no, yes);
    if (at.operation == Operation::And || at.operation == Operation::Or) {
      const auto right = add_steps(at.right, yes, no);
      if (!right) return right;
      return at.operation == Operation::And ? add_steps(at.left, *right, no)
                                            : add_steps(at.left, yes, *right);
    }
    if (is_comparison(at.operation)) return add_comparison(i, yes, no);
    return add_number(i, i, yes, no);
  }

  // A value without comparison: whether it is not 0.
  Result<int> add_number(std::size_t i, std::size_t value, int yes, int no) {
    auto subject = subject_of(value);
    if (!subject) return std::move(subject.error());
    if (subject->is_text || subject->is_cgroup) return wrong(i, "this is a text; compare it with one");
    subject->step.test = FilterTest::Equal;
    return add(subject->step, no, yes);
  }

  Result<int> add_comparison(std::size_t i, int yes, int no) {
    const ExpressionNode& at = node(i);
    const bool is_left_constant = is_constant(at.left);
    if (!is_left_constant && !is_constant(at.right))
      return wrong(i, "in the kernel one side of a comparison must be a constant");
    if (is_left_constant && is_constant(at.right)) return wrong(i, "two constants need no comparison");
    const std::size_t value = is_left_constant ? at.right : at.left;
    const std::size_t constant = is_left_constant ? at.left : at.right;
    const Operation operation = is_left_constant ? mirrored(at.operation) : at.operation;
    auto subject = subject_of(value);
    if (!subject) return std::move(subject.error());
    if (subject->is_cgroup) return place_cgroup(*subject, operation, constant, yes, no);
    if (subject->is_text) return place_text(*subject, operation, constant, yes, no);
    return place_ordered(std::move(*subject), operation, constant, yes, no);
  }

  // Texts, and names of an enum beside its member, are constants too.
  bool is_constant(std::size_t i) const {
    const ExpressionNode& at = node(i);
    switch (at.operation) {
      case Operation::Whole:
      case Operation::Real:
      case Operation::Text:
        return true;
      case Operation::Name:
        return at.text == "true" || at.text == "false" || is_enumerator(at.text);
      case Operation::Minus:
        return is_constant(at.left);
      case Operation::BitOr:
      case Operation::BitAnd:
      case Operation::Plus:
      case Operation::Difference:
      case Operation::Times:
        return is_constant(at.left) && is_constant(at.right);
      default:
        return false;
    }
  }
  bool is_enumerator(std::string_view name) const {
    if (names_.payload == nullptr || field_of(name) != nullptr) return false;
    return std::ranges::any_of(names_.payload->fields, [&](const PayloadField& field) {
      return enumerator(field, name).has_value();
    });
  }
  static std::optional<std::int64_t> enumerator(const PayloadField& field, std::string_view name) {
    const auto row = std::ranges::find(field.enumerators, name,
                                       [](const auto& one) { return std::string_view(one.second); });
    return row == field.enumerators.end() ? std::nullopt : std::optional(row->first);
  }
  const PayloadField* field_of(std::string_view name) const {
    if (names_.payload == nullptr || name.starts_with(kSamplePrefix)) return nullptr;
    const auto field = std::ranges::find(names_.payload->fields, name, &PayloadField::name);
    return field == names_.payload->fields.end() ? nullptr : &*field;
  }

  // NAME, or NAME & BITS.
  Result<Subject> subject_of(std::size_t i) {
    const ExpressionNode& at = node(i);
    if (at.operation == Operation::Name) return subject_named(i);
    if (at.operation != Operation::BitAnd)
      return wrong(i, "in the kernel only a value, or bits of it (flags & 4), can be compared");
    const bool is_left_constant = is_constant(at.left);
    const std::size_t value = is_left_constant ? at.right : at.left;
    const std::size_t bits = is_left_constant ? at.left : at.right;
    if (!is_constant(bits) || node(value).operation != Operation::Name)
      return wrong(i, "in the kernel & needs a value and a constant");
    auto subject = subject_named(value);
    if (!subject) return subject;
    if (subject->is_text || subject->is_cgroup) return wrong(value, "this is a text, and has no bits");
    const auto mask = number(bits, *subject);
    if (!mask) return mask.error();
    subject->step.mask = static_cast<std::uint64_t>(*mask);
    subject->step.is_signed = 0;
    return subject;
  }

  // The parser keeps no flag for "[0]": the source text shows it.
  bool has_index(const ExpressionNode& at) const {
    const std::size_t after = at.at + at.text.size();
    return after < source_.source.size() && source_.source[after] == '[';
  }

  Result<Subject> subject_named(std::size_t i) {
    const ExpressionNode& at = node(i);
    if (const PayloadField* field = field_of(at.text)) return member(i, *field);
    std::string_view name = at.text;
    if (name.starts_with(kSamplePrefix)) name.remove_prefix(kSamplePrefix.size());
    if (has_index(at)) return wrong(i, "this is not a list");
    Subject subject;
    subject.name = name;
    const auto row = std::ranges::find(kNumbers, name, &OwnName::name);
    if (row != std::end(kNumbers)) {
      subject.step.value = row->value;
      return subject;
    }
    subject.is_cgroup = name == "cgroup";
    subject.is_text = name == "comm";
    subject.step.value = subject.is_cgroup ? FilterValue::Cgroup : FilterValue::Name;
    subject.text_bytes = kNameBytes;
    if (subject.is_cgroup || subject.is_text) return subject;
    return wrong(i, unknown(at.text));
  }

  std::string unknown(const std::string& name) const {
    std::string known(kAllNames);
    std::vector<std::string> fields;
    if (names_.payload != nullptr)
      for (const PayloadField& field : names_.payload->fields) fields.push_back(field.name);
    for (const std::string& field : fields) known += ", " + field;
    return "there is no '" + name + "' that the kernel can test; there are: " + known +
           cli::suggestion(name, fields);
  }

  Result<Subject> member(std::size_t i, const PayloadField& field) {
    const ExpressionNode& at = node(i);
    Subject subject;
    subject.name = field.name;
    subject.field = &field;
    subject.step.value = FilterValue::Member;
    has_members_ = true;
    if (field.kind == FieldKind::Float) return wrong(i, "the kernel does not compute with fractions");
    const bool is_list = field.kind != FieldKind::Text && (field.is_array || field.count != 1);
    if (is_list != has_index(at))
      return wrong(i, is_list ? "this field is a list; choose an element: " + field.name + "[0]"
                              : std::string("this field is not a list"));
    std::uint64_t byte = field.bit_offset / 8;
    if (field.kind == FieldKind::Text) {
      subject.is_text = true;
      subject.text_bytes = field.count;
    } else {
      const std::uint32_t bits = field.bit_size;
      if (field.bit_offset % 8 != 0 || (bits != 8 && bits != 16 && bits != 32 && bits != 64))
        return wrong(i, "this is a bit field; the kernel compares whole numbers");
      if (is_list && field.count != 0 && at.index >= field.count)
        return wrong(i, "it has " + std::to_string(field.count) + " elements");
      byte += std::uint64_t{at.index} * (bits / 8);
      subject.step.size = static_cast<std::uint8_t>(bits / 8);
      subject.step.is_signed =
          field.kind == FieldKind::Signed || (field.kind == FieldKind::Enum && field.is_signed) ? 1 : 0;
    }
    const std::uint64_t end = byte + (subject.is_text ? subject.text_bytes : subject.step.size);
    if (end > names_.payload->size || end > std::numeric_limits<std::uint16_t>::max())
      return wrong(i, "this field ends after the payload's fixed size, and cannot be tested in the kernel");
    subject.step.at = static_cast<std::uint16_t>(byte);
    return subject;
  }

  // A constant, in the unit of the other side.
  Result<Wide> number(std::size_t i, const Subject& beside) const {
    const ExpressionNode& at = node(i);
    switch (at.operation) {
      case Operation::Whole:
        return in_unit(i, beside);
      case Operation::Real:
        return at.unit == cli::NumberUnit::None
                   ? Result<Wide>(wrong(i, "the kernel does not compute with fractions"))
                   : in_unit(i, beside);
      case Operation::Text:
      case Operation::Name:
        return named_number(i, beside);
      default:
        return computed(i, beside);
    }
  }
  Result<Wide> in_unit(std::size_t i, const Subject& beside) const {
    const ExpressionNode& at = node(i);
    double whole_part = 0;
    if (at.operation == Operation::Real && std::modf(at.real, &whole_part) != 0)
      return wrong(i, "the kernel does not compute with fractions");
    constexpr double kBeyond = 18446744073709551616.0;  // 2^64
    if (at.operation == Operation::Real && !(at.real < kBeyond)) return wrong(i, "the number is too large");
    const auto value = at.operation == Operation::Real ? static_cast<std::uint64_t>(whole_part) : at.whole;
    if (at.unit == cli::NumberUnit::None || beside.field == nullptr) return static_cast<Wide>(value);
    const format::Unit* const unit = format::find_unit(beside.field->unit, at.unit);
    if (unit == nullptr) return static_cast<Wide>(value);
    if (value % unit->size == 0) return static_cast<Wide>(value / unit->size);
    return wrong(i, "'" + beside.name + "' is in whole " + beside.field->unit);
  }
  Result<Wide> named_number(std::size_t i, const Subject& beside) const {
    const ExpressionNode& at = node(i);
    if (at.operation == Operation::Name && (at.text == "true" || at.text == "false"))
      return Wide{at.text == "true" ? 1 : 0};
    if (beside.field == nullptr || beside.field->enumerators.empty())
      return wrong(i, "'" + beside.name + "' is a number; compare it with one");
    if (const auto value = enumerator(*beside.field, at.text)) return Wide{*value};
    std::vector<std::string> known;
    for (const auto& row : beside.field->enumerators) known.push_back(row.second);
    return wrong(i, "'" + beside.name + "' has no such name" + cli::suggestion_or_all(at.text, known));
  }
  Result<Wide> computed(std::size_t i, const Subject& beside) const {
    const ExpressionNode& at = node(i);
    const auto left = number(at.left, beside);
    if (!left) return left;
    if (at.operation == Operation::Minus) return in_range(i, -*left);
    const auto right = number(at.right, beside);
    if (!right) return right;
    switch (at.operation) {
      case Operation::BitOr:
        return *left | *right;
      case Operation::BitAnd:
        return *left & *right;
      case Operation::Plus:
        return in_range(i, *left + *right);
      case Operation::Difference:
        return in_range(i, *left - *right);
      default:
        // Both have at most 65 bits; the product may overflow.
        Wide product = 0;
        if (__builtin_mul_overflow(*left, *right, &product)) return wrong(i, "the number is too large");
        return in_range(i, product);
    }
  }
  Result<Wide> in_range(std::size_t i, Wide value) const {
    if (value >= -(Wide{1} << 63) && value < (Wide{1} << 64)) return value;
    return wrong(i, "it is too large");
  }

  Result<int> place_ordered(Subject subject, Operation operation, std::size_t constant, int yes, int no) {
    if (operation == Operation::Like || operation == Operation::Unlike)
      return wrong(constant, "only texts can look like a pattern");
    const auto value = number(constant, subject);
    if (!value) return value.error();
    const bool is_signed = subject.step.is_signed != 0;
    if (!is_signed && *value < 0) return wrong(constant, "'" + subject.name + "' is never less than 0");
    if (is_signed && *value >= Wide{1} << 63)
      return wrong(constant, "'" + subject.name + "' is never that large");
    subject.step.than = static_cast<std::uint64_t>(*value);
    switch (operation) {
      case Operation::Unequal:
      case Operation::Equal:
        subject.step.test = FilterTest::Equal;
        break;
      case Operation::Less:
      case Operation::GreaterOrEqual:
        subject.step.test = is_signed ? FilterTest::SignedLess : FilterTest::Less;
        break;
      default:
        subject.step.test = is_signed ? FilterTest::SignedLessOrEqual : FilterTest::LessOrEqual;
        break;
    }
    const bool is_opposite = operation == Operation::Unequal || operation == Operation::GreaterOrEqual ||
                             operation == Operation::Greater;
    return is_opposite ? add(subject.step, no, yes) : add(subject.step, yes, no);
  }

  // The prefix that a text must have, and whether the text ends there.
  struct Wanted {
    std::string letters;
    bool is_whole = true;
    bool is_opposite = false;
  };
  Result<Wanted> wanted_text(Operation operation, std::size_t constant) const {
    const ExpressionNode& at = node(constant);
    if (at.operation != Operation::Text) return wrong(constant, "a text and a number cannot be compared");
    Wanted wanted{at.text};
    wanted.is_opposite = operation == Operation::Unequal || operation == Operation::Unlike;
    if (operation == Operation::Equal || operation == Operation::Unequal) return wanted;
    if (operation != Operation::Like && operation != Operation::Unlike)
      return wrong(constant, "texts are equal or not; the kernel does not order them");
    if (wanted.letters.ends_with('*')) {
      wanted.letters.pop_back();
      wanted.is_whole = false;
    }
    if (wanted.letters.find_first_of("*?") != std::string::npos)
      return wrong(constant, "in the kernel a pattern must be a prefix with one * at the end");
    return wanted;
  }

  // Word by word, the last one first, as steps are made from the last to the first.
  Result<int> place_text(const Subject& subject, Operation operation, std::size_t constant, int yes, int no) {
    auto wanted = wanted_text(operation, constant);
    if (!wanted) return std::move(wanted.error());
    if (wanted->is_opposite) std::swap(yes, no);
    std::string bytes = wanted->letters;
    const std::size_t most = subject.text_bytes - (subject.step.value == FilterValue::Name ? 1 : 0);
    if (bytes.size() > most)
      return wrong(constant,
                   "it is too long: '" + subject.name + "' holds " + std::to_string(most) + " letters");
    if (bytes.empty() && !wanted->is_whole) return wrong(constant, "every text matches this pattern");
    if (wanted->is_whole && bytes.size() < subject.text_bytes) bytes.push_back('\0');
    std::vector<FilterStep> words;
    for (std::size_t at = 0; at < bytes.size();) {
      FilterStep step = subject.step;
      std::size_t size = 8;
      while (at + size > subject.text_bytes) size /= 2;
      const std::size_t used = std::min(size, bytes.size() - at);
      step.mask = step.than = 0;
      put(step, std::string_view(bytes).substr(at, used), size);
      step.size = static_cast<std::uint8_t>(size);
      step.at =
          static_cast<std::uint16_t>(subject.step.value == FilterValue::Name ? at / 8 : subject.step.at + at);
      words.push_back(step);
      at += size;
    }
    int next = yes;
    for (auto word = words.rbegin(); word != words.rend(); ++word) next = add(*word, next, no);
    return next;
  }
  // The letters as a number in memory order, and the mask of its used bits.
  static void put(FilterStep& step, std::string_view letters, std::size_t size) {
    std::string text(letters), bits(letters.size(), '\xFF');
    text.resize(size);
    bits.resize(size);
    const auto as_number = [size](const std::string& bytes) -> std::uint64_t {
      std::uint8_t one = 0;
      std::uint16_t two = 0;
      std::uint32_t four = 0;
      std::uint64_t eight = 0;
      if (size == 1) return std::memcpy(&one, bytes.data(), size), one;
      if (size == 2) return std::memcpy(&two, bytes.data(), size), two;
      if (size == 4) return std::memcpy(&four, bytes.data(), size), four;
      return std::memcpy(&eight, bytes.data(), size), eight;
    };
    step.than = as_number(text);
    step.mask = as_number(bits);
  }

  // "/a/b": that cgroup; "/a/b/*": those below it. "/*": every cgroup, the root included.
  Result<int> place_cgroup(const Subject& subject, Operation operation, std::size_t constant, int yes,
                           int no) {
    auto wanted = wanted_text(operation, constant);
    if (!wanted) return wanted.error();
    if (!wanted->is_whole && !wanted->letters.ends_with('/'))
      return wrong(constant,
                   "in the kernel a cgroup's pattern must be a path with /* at the end: all cgroups below");
    const auto found = names_.cgroup(wanted->letters);
    if (!found) return wrong(constant, found.error().what);
    if (wanted->is_opposite) std::swap(yes, no);
    FilterStep itself = subject.step;
    itself.than = found->id;
    if (wanted->is_whole) return add(itself, yes, no);
    const int not_itself = wanted->letters == "/" ? yes : add(itself, no, yes);
    FilterStep above = subject.step;
    above.value = FilterValue::CgroupAbove;
    above.at = found->level;
    above.than = found->id;
    return add(above, not_itself, no);
  }

  std::string_view option_;
  const cli::Expression& source_;
  const ConditionNames& names_;
  std::vector<Made> made_;  // the last one first
  bool has_members_ = false;
};

}  // namespace

Result<Condition> compile_condition(std::string_view option, const cli::Expression& expression,
                                    const ConditionNames& names) {
  return Compiler(option, expression, names).compile();
}

}  // namespace tacho::record
