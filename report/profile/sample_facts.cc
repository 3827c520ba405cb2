#include "report/profile/sample_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/profile/record_facts.h"
#include "report/samples/resolver.h"

namespace tacho::report {

namespace {

namespace abi = format::abi;

// The bytes of a field in a record; of a __data_loc text, the bytes that it points to.
std::string_view bytes_of(const PayloadField& field, Bytes record, std::endian order) {
  if (field.kind == format::FieldKind::Text) {
    const auto value = read_field(field, record, order);
    const auto* const text = value ? std::get_if<std::string_view>(&*value) : nullptr;
    return text != nullptr ? *text : std::string_view();
  }
  const std::uint64_t start = field.bit_offset / 8;
  const std::uint64_t bits =
      std::uint64_t{field.bit_size} * elements_of(field, record) + field.bit_offset % 8;
  if (start >= record.size()) return {};
  const std::uint64_t size = std::min<std::uint64_t>((bits + 7) / 8, record.size() - start);
  return {reinterpret_cast<const char*>(record.data()) + start, static_cast<std::size_t>(size)};
}

// The word after "NAME=" in a tracepoint's text, up to the next blank: perf's text of a field.
std::optional<std::string_view> named_value(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (text.substr(at, end - at).starts_with(name)) {
      return text.substr(std::min(at + name.size() + 1, end), end - std::min(at + name.size() + 1, end));
    }
    at = end + 1;
  }
  return std::nullopt;
}

// Values without names, as libtraceevent prints a single field.
std::string plain_value(const PayloadField& field, Bytes record, std::endian order, bool has_hex_longs) {
  std::string all;
  const bool is_array = is_list(field);
  const std::uint32_t count = is_array ? elements_of(field, record) : 1;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto value = read_field(field, record, order, i);
    if (!value) break;
    if (i > 0) all += ", ";
    if (const auto* const text = std::get_if<std::string_view>(&*value)) {
      all += *text;
    } else if (const auto* const bits = std::get_if<std::uint64_t>(&*value);
               bits != nullptr && has_hex_longs && !is_array && field.format == kLong) {
      all += fmt::format("{:#x}", *bits);
    } else {
      all += show_value(field, *value, Names::Raw);
    }
  }
  return is_array ? "[" + all + "]" : all;
}

}  // namespace

SampleFacts::SampleFacts(Session& session, FactOptions options, RecordFacts records)
    : session_(&session),
      options_(options),
      schemas_(session.events(), session.features()),
      records_(std::move(records)) {
  records_.parallelism_.limit(session.features().environment.cpus_available);
  items_.push_back({});
}

template <class MakeText>
std::uint64_t SampleFacts::number_of(std::string key, std::size_t bytes_at, MakeText&& make_text) {
  const auto [entry, is_new] =
      numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(items_.size()));
  if (is_new) items_.push_back({std::string_view(entry->first).substr(bytes_at), make_text()});
  return entry->second;
}

std::uint64_t SampleFacts::number_of_text(char kind, const std::string& text) {
  return number_of(kind + text, 1, [&text] { return text; });
}

// --raw-trace: each field by itself, with a blank before its name.
std::string SampleFacts::raw_trace_text(const ResolvedSample& sample) {
  std::string text;
  const PayloadSchema* const schema = schemas_.schema_of(sample.event_index);
  if (schema == nullptr) return text;
  for (const PayloadField& field : schema->fields)
    text +=
        " " + field.name + "=" + plain_value(field, sample.fields->raw, sample.order, options_.has_hex_longs);
  return text;
}

std::string SampleFacts::trace_text(const ResolvedSample& sample) {
  if (!traces_) traces_.emplace(session_->features().tracing, TracepointText::FindFunction());
  if (const auto text = traces_->text_of(sample.event().attr.config, sample.fields->raw, sample.fields->cpu,
                                         sample.order)) {
    return std::string(*text);
  }
  const PayloadSchema* const schema = schemas_.schema_of(sample.event_index);
  return schema == nullptr ? std::string()
                           : show_payload(*schema, sample.fields->raw, sample.order, Names::Raw);
}

namespace {

// "ARRAY[01, 00]"
std::string byte_list(std::string_view bytes) {
  std::string text = "ARRAY[";
  for (std::size_t i = 0; i < bytes.size(); ++i)
    text += fmt::format("{}{:02x}", i == 0 ? "" : ", ", static_cast<unsigned char>(bytes[i]));
  return text + ']';
}

}  // namespace

std::uint64_t SampleFacts::trace(const ResolvedSample& sample) {
  const bool is_tracepoint = sample.event().attr.type == abi::kTracepoint;
  std::string text = "N/A";
  if (is_tracepoint) text = options_.is_raw_trace ? raw_trace_text(sample) : trace_text(sample);
  return number_of_text('t', text);
}

std::uint64_t SampleFacts::field(const ResolvedSample& sample, const PayloadField& field, bool is_raw) {
  // Addresses of code and data become their symbols; these are equal in all processes.
  if (!is_raw && is_named_address(field) && !is_list(field)) {
    const auto value = read_field(field, sample.fields->raw, sample.order);
    std::string name = value ? address_name(session_->resolver(), sample, bits_of(*value)) : std::string();
    if (!name.empty()) return number_of_text('a', name);
  }
  const std::string_view bytes = bytes_of(field, sample.fields->raw, sample.order);
  std::string key = "f" + std::to_string(sample.event_index) + (is_raw ? "r" : "v") + field.name + '\0';
  const std::size_t at = key.size();
  key += bytes;
  return number_of(std::move(key), at, [&] { return field_text(sample, field, is_raw); });
}

std::uint64_t SampleFacts::cgroup(const ResolvedSample& sample) {
  const std::uint64_t id = sample.fields->cgroup;
  const auto known = records_.cgroups_.find(id);
  if (known == records_.cgroups_.end()) return number_of_text('c', id == 0 ? "N/A" : "unknown");
  // Paths can be as long as a record: each is copied once, not with each sample.
  auto& [path, number] = known->second;
  if (number == 0) number = number_of_text('c', path);
  return number;
}

std::uint64_t SampleFacts::cgroup_space(const ResolvedSample& sample) {
  const auto space = records_.cgroup_spaces_.find(sample.tid());
  return number_of_text('n', space != records_.cgroup_spaces_.end() ? space->second : "0/0x0");
}

std::string SampleFacts::field_text(const ResolvedSample& sample, const PayloadField& field, bool is_raw) {
  const bool is_tracepoint = sample.event().attr.type == abi::kTracepoint;
  if (is_tracepoint && !is_raw && !options_.is_raw_trace) {
    const std::string text = trace_text(sample);
    if (const auto value = named_value(text, field.name)) return std::string(*value);
  }
  // As perf, which prints arrays of tracepoints byte by byte.
  if (is_tracepoint && options_.has_hex_longs && is_list(field))
    return byte_list(bytes_of(field, sample.fields->raw, sample.order));
  return plain_value(field, sample.fields->raw, sample.order, options_.has_hex_longs);
}

std::optional<std::uint32_t> SampleFacts::socket_of(std::uint32_t cpu) const {
  const auto& topology = session_->features().environment.cpu_topology;
  if (!topology || cpu >= topology->cpus.size()) return std::nullopt;
  return topology->cpus[cpu].socket;
}

}  // namespace tacho::report
