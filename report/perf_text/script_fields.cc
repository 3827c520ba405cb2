#include "report/perf_text/script_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace tacho::report {
namespace {

namespace abi = format::abi;

struct TypeRow {
  std::string_view option;  // before the colon of -F; empty: the type has no name there
  std::string_view name;    // in messages
  Fields shown;
  Fields invalid;
};

constexpr Fields kStart{Field::Comm, Field::Tid, Field::Cpu, Field::Time, Field::Event};
constexpr Fields kPlace = kStart | Fields{Field::Ip, Field::Sym, Field::Dso, Field::Symoff};
constexpr Fields kUsual = kPlace | Fields{Field::Period};
constexpr Fields kSoftwareFields = kUsual | Fields{Field::BpfOutput, Field::Payload};
constexpr Fields kTraceFields = kStart | Fields{Field::Trace};
constexpr Fields kRawFields =
    kUsual | Fields{Field::Addr,   Field::Weight,       Field::PhysAddr,    Field::DataSrc,
                    Field::InsLat, Field::DataPageSize, Field::CodePageSize};
constexpr Fields kSynthFields = kPlace | Fields{Field::Synth};
constexpr Fields kNoTrace{Field::Trace};
constexpr Fields kNoTraceNoBpf{Field::Trace, Field::BpfOutput, Field::Payload};

// By the kernel's type number; the last row is for all others.
constexpr std::array<TypeRow, 8> kTypeRows{{
    {"hw", "hardware", kUsual, kNoTraceNoBpf},
    {"sw", "software", kSoftwareFields, kNoTrace},
    {"trace", "tracepoint", kTraceFields, Fields{}},
    {"", "hw-cache", kUsual, kNoTraceNoBpf},
    {"raw", "raw", kRawFields, kNoTraceNoBpf},
    {"break", "breakpoint", kUsual, kNoTraceNoBpf},
    {"synth", "synth", kSynthFields, kNoTraceNoBpf},
    {"", "other", kUsual, kNoTraceNoBpf},
}};
constexpr std::size_t kSynth = 6, kOther = 7;

struct FieldRow {
  std::string_view name;
  std::optional<Field> field;    // nullopt: perf has the field, tacho does not
  std::string_view remark = {};  // the reason, or a hint
};

constexpr std::string_view kFlags = "flags";  // for all types of events at once
constexpr std::string_view kOfTraces =
    "has a value in processor traces (AUX) alone, which tacho does not decode";

constexpr FieldRow kFieldRows[] = {
    {"comm", Field::Comm},
    {"tid", Field::Tid},
    {"pid", Field::Pid},
    {"time", Field::Time},
    {"cpu", Field::Cpu},
    {"event", Field::Event},
    {"trace", Field::Trace},
    {"ip", Field::Ip},
    {"sym", Field::Sym},
    {"dso", Field::Dso},
    {"addr", Field::Addr},
    {"symoff", Field::Symoff},
    {"period", Field::Period},
    {"weight", Field::Weight},
    {"bpf-output", Field::BpfOutput},
    {"misc", Field::Misc},
    {"phys_addr", Field::PhysAddr},
    {"payload", Field::Payload},
    {"srcline", Field::Srcline},
    {"iregs", Field::Iregs},
    {"uregs", Field::Uregs},
    {"brstack", Field::Brstack},
    {"brstacksym", Field::Brstacksym},
    {"brstackoff", Field::Brstackoff},
    {"brstackinsn", Field::Brstackinsn},
    {"brstackinsnlen", Field::Brstackinsnlen},
    {"data_src", Field::DataSrc},
    {"ins_lat", Field::InsLat},
    {"data_page_size", Field::DataPageSize},
    {"code_page_size", Field::CodePageSize},
    {"insn", Field::Insn},
    {"insnlen", Field::Insnlen},
    {"srccode", Field::Srccode},
    {"tod", Field::Tod},
    {"synth", Field::Synth},
    {"machine_pid", Field::MachinePid},
    {"vcpu", Field::Vcpu},
    {"cgroup", Field::Cgroup},
    {"callindent", Field::Callindent, kOfTraces},
    {"ipc", Field::Ipc, kOfTraces},
    {"metric", {}, "is not computed here: print the counters with -F event,period and divide them"},
};

std::string known_fields() {
  std::string names;
  for (const FieldRow& row : kFieldRows) {
    if (row.field) names += std::string(row.name) + ',';
  }
  return names.append(kFlags);
}

Result<const FieldRow*> find_field(std::string_view name) {
  const auto row = std::ranges::find(kFieldRows, name, &FieldRow::name);
  if (row == std::end(kFieldRows)) {
    return use_error("-F: there is no field '" + std::string(name) + "'; known fields: " + known_fields());
  }
  if (!row->field) {
    return use_error("-F: '" + std::string(name) + "' " + std::string(row->remark));
  }
  return row;
}

struct Requirement {  // a field and what an event must have sampled for it
  Field field;
  std::uint64_t sample_type;
  std::string_view sample_name;
};

constexpr Requirement kRequirements[] = {
    {Field::Ip, abi::kSampleIp, "IP"},
    {Field::Addr, abi::kSampleAddr, "ADDR"},
    {Field::DataSrc, abi::kSampleDataSrc, "DATA_SRC"},
    {Field::Weight, abi::kSampleWeight | abi::kSampleWeightStruct, "WEIGHT"},
    {Field::Sym, abi::kSampleIp | abi::kSampleAddr, "IP or ADDR"},
    {Field::Dso, abi::kSampleIp | abi::kSampleAddr, "IP or ADDR"},
    {Field::Pid, abi::kSampleTid, "TID"},
    {Field::Tid, abi::kSampleTid, "TID"},
    {Field::Time, abi::kSampleTime, "TIME"},
    {Field::Cpu, abi::kSampleCpu, "CPU"},
    {Field::Iregs, abi::kSampleRegsIntr, "IREGS"},
    {Field::Uregs, abi::kSampleRegsUser, "UREGS"},
    {Field::PhysAddr, abi::kSamplePhysAddr, "PHYS_ADDR"},
    {Field::DataPageSize, abi::kSampleDataPageSize, "DATA_PAGE_SIZE"},
    {Field::CodePageSize, abi::kSampleCodePageSize, "CODE_PAGE_SIZE"},
    {Field::InsLat, abi::kSampleWeightStruct, "WEIGHT_STRUCT"},
    {Field::Cgroup, abi::kSampleCgroup, "CGROUP"},
};

std::string_view name_of(Field field) {
  const auto row = std::ranges::find(kFieldRows, std::optional(field), &FieldRow::field);
  return row->name;
}

}  // namespace

FieldChoice::FieldChoice() {
  for (std::size_t type = 0; type < kTypes; ++type) types_[type].shown = kTypeRows[type].shown;
}

void FieldChoice::dump_payloads() {
  for (Choice& choice : types_) {
    if (!choice.asked.has(Field::Payload) && !choice.named.has(Field::Payload))
      choice.shown.remove(Field::Payload);
  }
}

bool FieldChoice::asks_for(const format::EventAttr& attr, Field field) const {
  const Choice& choice = types_[type_of(attr)];
  return choice.asked.has(field) || choice.named.has(field);
}

std::size_t FieldChoice::type_of(const format::EventAttr& attr) {
  if (attr.type == abi::kSynth) return kSynth;
  return attr.type < kSynth ? attr.type : kOther;
}

bool FieldChoice::has(Field field) const {
  return std::ranges::any_of(types_, [field](const Choice& choice) { return choice.shown.has(field); });
}

Fields FieldChoice::fields_of(const format::EventAttr& attr) const { return types_[type_of(attr)].shown; }

Result<> FieldChoice::change(std::size_t type, char sign, Field field, std::string_view name,
                             bool is_named_type, std::vector<std::string>& remarks) {
  const TypeRow& row = kTypeRows[type];
  if (row.invalid.has(field)) {
    const std::string message = fmt::format("'{}' not valid for {} events.", name, row.name);
    if (is_named_type) return use_error("-F: " + message);
    // tacho's own field is for payloads only: no line about event types without payloads.
    if (field != Field::Payload) remarks.push_back(message + " Ignoring.");
    return Done{};
  }
  Choice& choice = types_[type];
  if (field != Field::Payload)
    choice.is_changed = true;  // perf's defaults are kept if only tacho's own field is added
  if (sign == '-') {
    choice.shown.remove(field);
    choice.asked.remove(field);
    choice.named.remove(field);
    choice.refused.add_field(field);
  } else {
    choice.shown.add_field(field);
    (is_named_type ? choice.named : choice.asked).add_field(field);
    choice.refused.remove(field);
  }
  return Done{};
}

Result<> FieldChoice::apply_field(std::string_view name, char sign, std::size_t first, std::size_t last,
                                  bool is_named_type, std::vector<std::string>& remarks) {
  if (name == kFlags) {
    shows_flags_ = sign != '-';
    if (shows_flags_) remarks.push_back(fmt::format("'{}' {}.", name, kOfTraces));
    return Done{};
  }
  const auto row = find_field(name);
  if (!row) return row.error();
  if (!(*row)->remark.empty() && sign != '-')
    remarks.push_back(fmt::format("'{}' {}.", name, (*row)->remark));
  for (std::size_t type = first; type < last; ++type) {
    if (auto done = change(type, sign, *(*row)->field, name, is_named_type, remarks); !done) return done;
  }
  return Done{};
}

Result<> FieldChoice::apply(std::string_view text, std::vector<std::string>& remarks) {
  std::size_t first = 0, last = kTypes;
  bool is_named_type = false;
  if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    const auto row = std::ranges::find(kTypeRows, text.substr(0, colon), &TypeRow::option);
    if (row == kTypeRows.end() || row->option.empty()) {
      return use_error("-F: '" + std::string(text.substr(0, colon)) +
                       "' is no type of event; known types: hw, sw, trace, raw, break, synth");
    }
    first = static_cast<std::size_t>(row - kTypeRows.begin());
    last = first + 1;
    is_named_type = true;
    text.remove_prefix(colon + 1);
  }
  if (text.empty() && !is_named_type)
    return use_error("-F: no field is named; known fields: " + known_fields());
  // perf takes a list with '-' or '+' anywhere for a change, even if it only names bpf-output.
  if (text.find_first_of("+-") == std::string_view::npos) {
    Choice nothing;
    nothing.is_changed = true;
    std::fill(types_.begin() + static_cast<std::ptrdiff_t>(first),
              types_.begin() + static_cast<std::ptrdiff_t>(last), nothing);
  }
  std::optional<bool> has_signs;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::string_view name = text.substr(at, end - at);
    at = end + 1;
    if (name.empty()) continue;
    const bool has_sign = name[0] == '+' || name[0] == '-';
    if (has_signs.value_or(has_sign) != has_sign)
      return use_error("-F: give either a list of fields, or changes that all begin with + or -");
    has_signs = has_sign;
    const char sign = has_sign ? name[0] : '+';
    if (has_sign) name.remove_prefix(1);
    if (auto done = apply_field(name, sign, first, last, is_named_type, remarks); !done) return done;
  }
  return Done{};
}

// Checks fields that need other fields, or branch stacks without a filter.
Result<> FieldChoice::check_pairs(Choice& choice, bool has_all_branches) const {
  if (choice.shown.has(Field::Symoff) && !choice.shown.has(Field::Sym)) {
    if (choice.asked.has(Field::Symoff)) return use_error("-F: 'symoff' (offsets) needs 'sym'");
    choice.shown.remove(Field::Symoff);
  }
  if (choice.shown.has_any({Field::Srcline, Field::Srccode}) && !choice.shown.has(Field::Ip))
    return use_error("-F: 'srcline' and 'srccode' (lines of source) need 'ip'");
  if (choice.shown.has_any({Field::Brstackinsn, Field::Brstackinsnlen}) && !has_all_branches) {
    return use_error(
        "-F: 'brstackinsn' and 'brstackinsnlen' need stacks of all branches; record with perf record -b");
  }
  return Done{};
}

// As perf, which decides for all events of a type by the first one.
Result<> FieldChoice::check(std::size_t type, const format::Event& event, const std::string& event_name,
                            bool has_all_branches) {
  Choice& choice = types_[type];
  for (const Requirement& requirement : kRequirements) {
    if (!choice.shown.has(requirement.field) || (event.attr.sample_type & requirement.sample_type) != 0)
      continue;
    const std::string missing = fmt::format("Samples for '{}' event do not have {} attribute set.",
                                            event_name, requirement.sample_name);
    const std::string_view name = name_of(requirement.field);
    if (choice.asked.has(requirement.field))
      return use_error(fmt::format("{} Cannot print '{}' field.", missing, name));
    if (choice.named.has(requirement.field))
      dropped_.push_back(fmt::format("{} Skipping '{}' field.", missing, name));
    choice.shown.remove(requirement.field);
  }
  return check_pairs(choice, has_all_branches);
}

// As perf, which shows the call chains of each event in a pipe, whatever -F lists.
void FieldChoice::add_chains_of_pipe(const format::EventSet& events) {
  for (const auto& event : events) {
    if (!event.attr.samples(abi::kSampleCallchain)) continue;
    Choice& choice = types_[type_of(event.attr)];
    for (const Field field : {Field::Ip, Field::Sym}) {
      if (!choice.refused.has(field)) choice.shown.add_field(field);
    }
  }
}

Result<> FieldChoice::settle(const format::EventSet& events, const std::vector<std::string>& event_names,
                             CallChains chains, Origin origin) {
  if (origin == Origin::Pipe && chains == CallChains::Show) add_chains_of_pipe(events);
  const bool has_all_branches = std::ranges::any_of(events, [](const format::Event& event) {
    return (event.attr.branch_sample_type & abi::kBranchAny) != 0;
  });
  std::array<bool, kTypes> seen{};
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto& attr = events[i].attr;
    const std::size_t type = type_of(attr);
    if (seen[type]) continue;
    seen[type] = true;
    const bool is_dummy = attr.type == abi::kSoftware && attr.config == abi::kDummy;
    if (is_dummy || types_[type].shown.empty()) continue;
    if (auto done = check(type, events[i], event_names[i], has_all_branches); !done) return done;
  }
  const auto has_chain = [](const format::Event& event) { return event.attr.samples(abi::kSampleCallchain); };
  shows_callchains_ = chains == CallChains::Show && std::ranges::any_of(events, has_chain);
  const bool traces_have_chains = std::ranges::any_of(events, [&](const format::Event& event) {
    return event.attr.type == abi::kTracepoint && has_chain(event);
  });
  Choice& trace = types_[abi::kTracepoint];
  if (shows_callchains_ && !trace.is_changed && traces_have_chains) {
    for (const Field field : {Field::Ip, Field::Sym, Field::Symoff, Field::Dso}) trace.shown.add_field(field);
  }
  return Done{};
}

}  // namespace tacho::report
