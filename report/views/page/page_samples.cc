#include "report/views/page/page_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "report/output/text_output.h"
#include "report/query/field_choice.h"
#include "report/samples/filter.h"

namespace tacho::report {

namespace {

namespace abi = format::abi;
using format::FieldKind;

constexpr std::size_t kMostText = std::size_t{256} << 20;  // bytes of all texts of a page
constexpr std::size_t kMostLines = 2000;                   // functions whose source lines are looked up
constexpr std::string_view kTooMuch = "[left out: too much text]";

FrameNames page_names(Session& session, PageParts& parts, const PageNames& names, FrameAddresses& addresses,
                      ModuleBuilds& builds) {
  const auto make = [&](const symbolize::Frame& frame, const FrameAddress& address,
                        std::vector<std::uint32_t>& numbers) {
    numbers.push_back(number_of_frame(frame, parts, names));
    if (frame.module != nullptr) {
      const PageFrame& shown = parts.tree.frames()[numbers.back()];
      builds[std::string(parts.texts[shown.module])].insert(frame.module->build_id);
    }
    addresses.keep(numbers.back(), address);
  };
  return {session, FrameNames::Of::Functions, make};
}

// Numbers that are shown by a name or in hexadecimal, and lists, are texts.
bool is_shown_as_text(const PayloadField& field) {
  const bool has_number =
      field.kind == FieldKind::Unsigned || field.kind == FieldKind::Signed || field.kind == FieldKind::Float;
  return !has_number || is_list(field) || is_shown_in_hex(field) || is_named_address(field);
}

bool reads_payloads(Session& session, EventSchemas& schemas) {
  if (session.layout().is_pipe) return true;
  for (std::size_t i = 0; i < session.events().size(); ++i) {
    const format::EventAttr& attr = session.events()[i].attr;
    if (attr.samples(abi::kSampleCgroup)) return true;
    if (attr.samples(abi::kSampleRaw) && schemas.schema_of(i) != nullptr) return true;
  }
  return false;
}

}  // namespace

bool is_of_cpu(const format::EventAttr& attr) {
  return (attr.type == abi::kSoftware && attr.config <= abi::kTaskClock) || attr.type == abi::kHardware ||
         attr.type == abi::kHwCache || attr.type == abi::kRaw;
}

std::uint32_t number_of_frame(const symbolize::Frame& frame, PageParts& parts, const PageNames& names) {
  const std::string name = name_of_frame(frame, {});
  PageFrame shown{
      .module = frame.module == nullptr ? 0 : parts.texts.number_of(names.path(frame.module->short_name)),
      .kind = kind_of_code(frame)};
  if (shown.kind == FrameKind::Unnamed) {
    shown.name = parts.texts.number_of(names.text_with_paths(name));
  } else {
    shown.name = parts.texts.number_of(printable(name));
    shown.function = parts.functions.id_of(name, linker_name_of(frame));
  }
  return parts.tree.frame_of(shown);
}

PageSamples::PageSamples(Session& session, const PageNames& names, PageParts& parts, std::uint64_t most,
                         Take take, Roots roots)
    : session_(session),
      names_(names),
      parts_(parts),
      most_(most),
      take_(take),
      roots_(roots),
      weights_(session, "", "", false),
      schemas_(session.events(), session.features()),
      periods_(schemas_),
      frames_(page_names(session, parts, names, addresses_of_frames_, builds_)),
      merge_by_(stack_merge_by(session, take == Take::Addresses)),
      reads_payloads_(weights_.reads_fields() || reads_payloads(session, schemas_)) {}

Sink::Flow PageSamples::on_sample(const ResolvedSample& sample) {
  (void)weights_.takes(sample);  // learns about the event
  periods_.see(sample);
  EventColumns& event = event_of(sample);
  if (samples_ == most_) {
    ++left_out_;
    return Flow::Continue;
  }
  ++event.samples;
  event.has_stacks |= sample.stack != nullptr;
  const std::uint64_t weight = weights_.weight_of(sample).value_or(0);
  const RowId row = row_of(sample);
  rows_.count(row, 0, {.period = weight, .samples = 1});
  if (samples_++ == 0) first_time_ = sample.fields->time;
  last_time_ = sample.fields->time;
  if (take_ != Take::Stacks) add_columns(event, sample, row, weight);
  if (merge_by_ == MergeBy::Address) name_new_rows();  // at once, while others read on
  return Flow::Continue;
}

void PageSamples::add_columns(EventColumns& event, const ResolvedSample& sample, RowId row,
                              std::uint64_t weight) {
  const format::EventAttr& attr = sample.event().attr;
  times_.add_signed(static_cast<std::int64_t>(sample.fields->time - first_time_));
  cpus_.add_number(attr.samples(abi::kSampleCpu) ? std::uint64_t{sample.fields->cpu} + 1 : 0);
  of_threads_.add_number(thread_of(sample));
  of_events_.add_number(sample.event_index);
  weights_of_samples_.add_number(weight);
  rows_of_samples_.add_number(value_of(row));
  if (!reads_payloads_) return;
  const bool has_cgroup = attr.samples(abi::kSampleCgroup);
  has_cgroups_ |= has_cgroup;
  cgroups_.add_number(
      has_cgroup ? parts_.texts.number_of(names_.name_of(Content::Containers, sample.cgroup())) : 0);
  add_payload(event, sample);
}

PageSamples::EventColumns& PageSamples::event_of(const ResolvedSample& sample) {
  if (sample.event_index >= events_.size()) events_.resize(sample.event_index + 1);
  EventColumns& event = events_[sample.event_index];
  if (event.is_known) return event;
  event.is_known = true;
  const PayloadSchema* const schema = schemas_.schema_of(sample.event_index);
  if (schema == nullptr || take_ == Take::Stacks) return event;
  for (const PayloadField& field : schema->fields) {
    const bool is_text = is_shown_as_text(field);
    const ColumnForm form = is_text                             ? ColumnForm::Numbers
                            : field.kind == FieldKind::Float    ? ColumnForm::Reals
                            : field.kind == FieldKind::Unsigned ? ColumnForm::Wide
                                                                : ColumnForm::Signed;
    const std::string number = fmt::format("{}.{}", sample.event_index, event.fields.size());
    event.fields.push_back({&field, is_text, PackedColumn("field." + number, form),
                            PackedColumn("missing." + number, ColumnForm::Byte), false});
  }
  return event;
}

std::string PageSamples::text_of(const PayloadField& field, const ResolvedSample& sample) const {
  const format::Bytes raw = sample.fields->raw;
  const bool is_hidden = is_named_address(field) && names_.how(Content::Kernel) != How::Keep;
  const auto one = [&](const FieldValue& value) {
    const auto* const text = std::get_if<std::string_view>(&value);
    return is_hidden         ? std::string(PageNames::kHidden)
           : text != nullptr ? names_.name_of(Content::Payload, *text)
                             : show_value(field, value, Names::Safe);
  };
  if (!is_list(field)) {
    const auto value = read_field(field, raw, sample.order);
    return value ? one(*value) : "";
  }
  std::string list = "[";
  const std::uint32_t count = shown_elements(field, raw, sample.order);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto value = read_field(field, raw, sample.order, i);
    if (!value) break;
    list += (i > 0 ? "," : "") + one(*value);
  }
  return list + "]";
}

void PageSamples::add_payload(EventColumns& event, const ResolvedSample& sample) {
  for (FieldColumn& column : event.fields) {
    const PayloadField& field = *column.field;
    const auto value = read_field(field, sample.fields->raw, sample.order);
    const bool is_there = value.has_value() || (is_list(field) && field.count == 0);
    column.missing.add_byte(is_there ? '\0' : '\1');
    column.has_missing |= !is_there;
    if (column.is_text) {
      const bool is_too_much = parts_.texts.bytes() > kMostText;
      const std::string text = !is_there ? "" : is_too_much ? std::string(kTooMuch) : text_of(field, sample);
      column.values.add_number(parts_.texts.number_of(text));
    } else if (column.values.form() == ColumnForm::Reals) {
      const auto* const real = value ? std::get_if<double>(&*value) : nullptr;
      column.values.add_real(real == nullptr ? 0 : *real);
    } else if (column.values.form() == ColumnForm::Wide) {
      const auto* const number = value ? std::get_if<std::uint64_t>(&*value) : nullptr;
      column.values.add_number(number == nullptr ? 0 : *number);
    } else {
      const auto* const number = value ? std::get_if<std::int64_t>(&*value) : nullptr;
      column.values.add_signed(number == nullptr ? 0 : *number);
    }
  }
}

RowId PageSamples::row_of(const ResolvedSample& sample) {
  const auto [comm, is_new] = comms_.try_emplace(sample.comm.data());
  if (is_new) {
    const std::string name = names_.name_of(Content::Comm, sample.comm);
    const std::uint32_t text = parts_.texts.number_of(name.empty() ? "[unnamed]" : name);
    comm->second = parts_.tree.frame_of({text, 0, FrameKind::Group});
  }
  return rows_.row_for({.location = sample.stack == nullptr ? sample.location_id : LocationId{},
                        .facts = id_of<FactsId>(sample.event_index),
                        .comm = sample.comm,
                        .stack = sample.stack});
}

std::uint32_t PageSamples::thread_of(const ResolvedSample& sample) {
  const std::uint64_t key = std::uint64_t{sample.pid()} << 32 | sample.tid();
  const auto [known, is_new] = thread_numbers_.try_emplace(key, static_cast<std::uint32_t>(threads_.size()));
  if (is_new) threads_.push_back({sample.pid(), sample.tid(), 0});
  ThreadName& thread = threads_[known->second];
  // The last name of the thread: that of the program after its last exec.
  const auto comm = comms_.find(sample.comm.data());
  if (comm != comms_.end())
    thread.comm = parts_.tree.frames()[comm->second].name;
  else
    thread.comm = parts_.texts.number_of(names_.name_of(Content::Comm, sample.comm));
  return known->second;
}

std::uint32_t PageSamples::thread_number(std::uint32_t pid, std::uint32_t tid, std::string_view comm) {
  const auto [known, is_new] = thread_numbers_.try_emplace(std::uint64_t{pid} << 32 | tid,
                                                           static_cast<std::uint32_t>(threads_.size()));
  if (is_new) threads_.push_back({pid, tid, parts_.texts.number_of(names_.name_of(Content::Comm, comm))});
  return known->second;
}

void PageSamples::name_new_rows() {
  while (row_nodes_.size() < rows_.rows().size()) {
    const auto row = id_of<RowId>(row_nodes_.size());
    const ProfileRow& one = rows_.rows()[row];
    const Stack* const stack = rows_.stack_of(row);
    chain_.clear();
    if (roots_ == Roots::Comm) chain_.push_back(comms_.at(one.comm_begin));
    const auto chain = stack == nullptr ? std::span(&one.location, 1) : stack->frames;
    frames_.append(chain, FrameNames::Order::RootFirst, chain_);
    row_nodes_.push_back(parts_.tree.node_of(chain_));
  }
}

std::vector<double> PageSamples::node_weights() const {
  const std::vector<PageTree::Node>& nodes = parts_.tree.nodes();
  std::vector<double> weights(nodes.size());
  for (const RowId row : row_nodes_.ids())
    weights[row_nodes_[row]] +=
        static_cast<double>(std::max<std::uint64_t>(rows_.rows()[row].only.samples, 1));
  for (std::size_t node = nodes.size(); node-- > 1;) weights[nodes[node].parent] += weights[node];
  return weights;
}

void PageSamples::look_up_lines() {
  const std::vector<PageTree::Node>& nodes = parts_.tree.nodes();
  std::vector<std::uint64_t> weights(nodes.size());
  for (const RowId row : row_nodes_.ids()) weights[row_nodes_[row]] += rows_.rows()[row].only.period;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> heaviest(addresses_of_frames_.size());
  for (std::uint32_t frame = 0; frame < heaviest.size(); ++frame) heaviest[frame].second = frame;
  for (std::size_t node = nodes.size(); node-- > 1;) {  // a node is after its caller
    weights[nodes[node].parent] += weights[node];
    if (nodes[node].frame >= heaviest.size()) continue;
    std::uint64_t& most = heaviest[nodes[node].frame].first;
    most = std::max(most, weights[node]);
  }
  const std::size_t count = std::min(kMostLines, heaviest.size());
  std::ranges::partial_sort(heaviest, heaviest.begin() + static_cast<std::ptrdiff_t>(count), std::greater());
  lines_.resize(parts_.tree.frames().size());
  if (names_.how(Content::Paths) == How::Hash) return;
  for (const auto& [weight, frame] : std::span(heaviest).first(count))
    lines_[frame] =
        parts_.texts.number_of(source_line(session_.resolver(), addresses_of_frames_.address_of(frame)));
}

std::vector<PackedColumn> PageSamples::nodes_of_samples(const PageTree::Order& order) const {
  const auto node_of = [&](std::uint64_t row) { return order.positions[row_nodes_[id_of<RowId>(row)]]; };
  std::vector<std::uint64_t> samples(order.positions.size());
  rows_of_samples_.each([&](std::uint64_t row) { ++samples[node_of(row)]; });
  std::vector<std::uint32_t> by_samples;
  for (std::uint32_t node = 0; node < samples.size(); ++node)
    if (samples[node] > 0) by_samples.push_back(node);
  std::ranges::stable_sort(by_samples, std::greater(), [&](std::uint32_t node) { return samples[node]; });
  PackedColumn stack_node("stack.node", ColumnForm::Numbers), stack("stack", ColumnForm::Numbers);
  std::vector<std::uint32_t> numbers(samples.size());
  for (std::uint32_t i = 0; i < by_samples.size(); ++i) {
    numbers[by_samples[i]] = i;
    stack_node.add_number(by_samples[i]);
  }
  rows_of_samples_.each([&](std::uint64_t row) { stack.add_number(numbers[node_of(row)]); });
  std::vector<PackedColumn> columns;
  for (PackedColumn* column : {&stack_node, &stack}) columns.push_back(std::move(*column));
  return columns;
}

std::vector<PackedColumn> PageSamples::columns(const PageTree::Order& order) {
  std::vector<PackedColumn> columns = nodes_of_samples(order);
  for (PackedColumn* column : {&times_, &cpus_, &of_threads_, &of_events_, &weights_of_samples_})
    columns.push_back(std::move(*column));
  if (has_cgroups_) columns.push_back(std::move(cgroups_));
  PackedColumn pid("threads.pid", ColumnForm::Signed), tid("threads.tid", ColumnForm::Signed),
      comm("threads.comm", ColumnForm::Numbers);
  for (const ThreadName& one : threads_) {
    pid.add_signed(static_cast<std::int32_t>(one.pid));
    tid.add_signed(static_cast<std::int32_t>(one.tid));
    comm.add_number(one.comm);
  }
  for (PackedColumn* column : {&pid, &tid, &comm}) columns.push_back(std::move(*column));
  for (EventColumns& event : events_)
    for (FieldColumn& field : event.fields) {
      columns.push_back(std::move(field.values));
      if (field.has_missing) columns.push_back(std::move(field.missing));
    }
  PackedColumn line("frame.line", ColumnForm::Numbers);
  for (const std::uint32_t text : lines_) line.add_number(text);
  columns.push_back(std::move(line));
  return columns;
}

std::vector<PackedColumn> PageSamples::sums(const PageTree::Order& order, const std::string& prefix) const {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Weight> sums;  // by event and position
  for (const RowId row : row_nodes_.ids()) {
    const ProfileRow& one = rows_.rows()[row];
    sums[{value_of(one.facts), order.positions[row_nodes_[row]]}] += one.only;
  }
  std::vector<PackedColumn> columns;
  for (std::size_t event = 0; event < events_.size(); ++event) {
    const std::string start = fmt::format("{}{}.", prefix, event);
    PackedColumn node(start + "node", ColumnForm::Differences), weight(start + "weight", ColumnForm::Wide),
        samples(start + "samples", ColumnForm::Numbers);
    for (const auto& [key, sum] : sums) {
      if (key.first != event) continue;
      node.add_signed(key.second);
      weight.add_number(sum.period);
      samples.add_number(sum.samples);
    }
    for (PackedColumn* column : {&node, &weight, &samples}) columns.push_back(std::move(*column));
  }
  return columns;
}

std::string PageSamples::unit_of(std::size_t event) {
  const format::Event& described = session_.events()[event];
  const std::string unit = weight_unit({}, described, schemas_.schema_of(event), periods_.field_of(event));
  return unit == printable(described.name) ? names_.event(described.name) : unit;
}

void PageSamples::describe_samples(JsonFields& to) {
  const auto text = [&](std::string_view name, const std::string& value) {
    to.number(name, parts_.texts.number_of(value));
  };
  to.text("start", fmt::format("{}", first_time_));
  to.number("left_out", left_out_);
  to.begin_list("events");
  for (std::size_t i = 0; i < events_.size(); ++i) {
    to.begin_object("");
    text("name", names_.event(session_.events()[i].name));
    text("unit", unit_of(i));
    to.number("samples", events_[i].samples);
    to.flag("stacks", events_[i].has_stacks);
    to.flag("cpu", is_of_cpu(session_.events()[i].attr));
    to.begin_list("fields");
    for (const FieldColumn& column : events_[i].fields) {
      to.begin_object("");
      text("name", printable(column.field->name));
      text("unit", printable(column.field->unit));
      text("role", printable(column.field->role));
      to.flag("text", column.is_text);
      to.end_object();
    }
    to.end_list();
    to.end_object();
  }
  to.end_list();
}

}  // namespace tacho::report
