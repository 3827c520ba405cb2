#include "report/query/gather.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "format/base/diagnostics.h"
#include "format/records/perf_abi.h"
#include "report/decode/payload.h"
#include "symbolize/pack_maker.h"
#include "symbolize/packed_names.h"
#include "symbolize/symbol_source.h"
#include "symbolize/symbolizer.h"

namespace tacho::report {

void AddressHits::hit(LocationId location, std::uint64_t times) {
  const std::size_t at = index_of(location);
  if (at >= hits_.size()) hits_.resize(std::max(at + 1, 2 * hits_.size()));
  hits_[at] += times;
}

void AddressHits::add_sample(const ResolvedSample& sample) {
  sample.stack == nullptr ? add_location(*sample.location, 1) : add_stack(*sample.stack, 1);
}

void AddressHits::add_stack(const Stack& stack, std::uint64_t times) {
  for (const LocationId location : stack.frames) hit(location, times);
}

// Samples without a stack and an address (as of some recorders) have no frame.
void AddressHits::add_location(const Location& location, std::uint64_t times) {
  const bool has_address = location.ip.value != 0 || location.cpumode != format::abi::kCpumodeUnknown;
  if (has_address) hit(location.id, times);
}

NamedFrames AddressHits::count_named(Resolver& resolver, const AtEach& at_each) const {
  NamedFrames counts;
  for (std::uint32_t number = 0; number < hits_.size(); ++number) {
    if (hits_[number] == 0) continue;
    const Location& location = resolver.location(LocationId{number});
    const symbolize::Frame& frame = resolver.frame(location);
    const bool is_named = !frame.function.empty() && !frame.is_unnamed;
    ++counts.addresses;
    counts.frames += hits_[number];
    counts.named_addresses += is_named ? 1 : 0;
    counts.named_frames += is_named ? hits_[number] : 0;
    if (at_each) at_each(location, hits_[number], is_named);
  }
  return counts;
}

std::uint64_t all_lost_samples(Session& session) {
  std::uint64_t lost = session.lost_samples();
  for (const format::Finding& finding : session.diagnostics().findings())
    if (finding.kind == format::Damage::Lost) lost = std::max(lost, finding.count);
  return lost;
}

namespace {

namespace abi = format::abi;

// Looks up every address of a sample once, which gives it an index in the session. All are resolved at the
// end.
class Gatherer : public Sink {
 public:
  explicit Gatherer(Session& session) : resolver_(session.resolver()) {
    for (const format::Event& event : session.events()) {
      const auto& attr = event.attr;
      const auto schema =
          std::ranges::find(session.features().schemas, event.name, &format::PayloadSchema::event);
      EventFacts facts;
      facts.has_address = attr.samples(abi::kSampleAddr);
      facts.has_branches = attr.samples(abi::kSampleBranchStack);
      if (schema != session.features().schemas.end() && has_named_addresses(*schema)) facts.schema = &*schema;
      facts_.push_back(facts);
      needs_all_ = needs_all_ || facts.has_address || facts.has_branches || facts.schema != nullptr;
    }
  }

  bool takes_non_samples() const override { return false; }
  Flow on_sample(const ResolvedSample& sample) override {
    if (!needs_all_) return Flow::Continue;
    const EventFacts& facts = facts_[sample.record_event];
    const format::Sample& fields = *sample.fields;
    if (facts.has_address) look_up_data(sample, sample.fields->addr);
    if (facts.has_branches) {
      constexpr std::size_t kWords = 3;  // from, to, flags
      for (std::size_t i = 0; i + kWords <= fields.branches.size(); i += kWords) {
        look_up(sample, fields.branches[i]);
        look_up(sample, fields.branches[i + 1]);
      }
    }
    if (facts.schema != nullptr) look_up_payload(sample, *facts.schema);
    if (sample.has_payload_stack) look_up_chain(sample);
    return Flow::Continue;
  }
  // Whether the location was met as an address of data first: no frame, of which a name is expected.
  bool is_data(LocationId location) const {
    return index_of(location) < data_.size() && data_[index_of(location)];
  }

 private:
  struct EventFacts {
    bool has_address = false, has_branches = false;
    const format::PayloadSchema* schema = nullptr;  // of payloads with addresses; null: there are none
  };
  // In the sample's CPU mode; and as branch_location(), in user code or else in the kernel.
  static void look_up(const ResolvedSample& sample, std::uint64_t address) {
    sample.locate(address);
    if (sample.locate_in(address, abi::kCpumodeUser).mapping == nullptr)
      sample.locate_in(address, abi::kCpumodeKernel);
  }
  // An address of data, as of -d. The addresses of the sample's stack have been numbered before.
  void look_up_data(const ResolvedSample& sample, std::uint64_t address) {
    const std::size_t before = resolver_.locations();
    look_up(sample, address);
    data_.resize(before);
    data_.resize(resolver_.locations(), true);
  }
  void look_up_value(const ResolvedSample& sample, const format::PayloadField& field, std::uint64_t value) {
    if (field.format == "uaddr" && field.role != "stack")
      look_up_data(sample, value);
    else
      look_up(sample, value);
  }
  void look_up_payload(const ResolvedSample& sample, const format::PayloadSchema& schema) {
    for (const format::PayloadField& field : schema.fields) {
      if (!is_named_address(field)) continue;
      const std::uint32_t count =
          is_list(field) ? shown_elements(field, sample.fields->raw, sample.order) : 1;
      for (std::uint32_t i = 0; i < count; ++i)
        if (const auto value = read_field(field, sample.fields->raw, sample.order, i))
          look_up_value(sample, field, bits_of(*value));
    }
  }
  // The call chain that the kernel recorded, when the payload's stack replaces it.
  static void look_up_chain(const ResolvedSample& sample) {
    const format::U64Array& chain = sample.fields->callchain;
    for (std::size_t i = 0; i < chain.size(); ++i)
      if (chain[i] < abi::kContextMax) look_up(sample, chain[i]);
  }

  Resolver& resolver_;
  std::vector<EventFacts> facts_;
  std::vector<bool> data_;  // by location, up to the last one of data
  bool needs_all_ = false;
};

// Records the module that is read, and refuses modules to which there is no access.
class ModuleAccess {
 public:
  explicit ModuleAccess(const GatherRules& rules) : rules_(rules) {}

  // The source of a module that is not read, with the reason; else null.
  symbolize::SymbolSource* enter(const Location& location) {
    const symbolize::Module* const module = location.mapping != nullptr ? location.mapping->module : nullptr;
    if (rules_.access == nullptr) return nullptr;
    if (module != last_) rules_.access->set_current(module != nullptr ? module->path : std::string_view());
    last_ = module;
    if (module == nullptr) return nullptr;
    const bool is_entered = module != entered_;
    entered_ = module;
    const auto [entry, is_new] = unread_.try_emplace(module);
    if (entry->second == nullptr && is_entered)
      if (std::string missing_reason = rules_.access->refusal(module->path); !missing_reason.empty())
        entry->second = std::make_unique<symbolize::SymbolSource>(
            symbolize::without_names(Error{std::move(missing_reason)}));
    return entry->second.get();
  }
  void leave() const {
    if (rules_.access != nullptr) rules_.access->set_current({});
  }

 private:
  const GatherRules& rules_;
  const symbolize::Module *last_ = nullptr, *entered_ = nullptr;
  std::unordered_map<const symbolize::Module*, std::unique_ptr<symbolize::SymbolSource>>
      unread_;  // null: it is read
};

// The earlier pack's code of a module without names, and whether it needs a copy of its file, to be packed
// again. Empty: nothing was packed, or names were found elsewhere.
std::optional<symbolize::SymbolSource> packed_without_names(Resolver& resolver,
                                                            const symbolize::LocationFacts& facts) {
  symbolize::PackedSource* const packed = resolver.packed(*facts.module);
  if (packed == nullptr || packed->is(format::PackedModule::kHasNames)) return std::nullopt;
  symbolize::SymbolSource source = symbolize::from_pack(*packed, symbolize::Unnamed::Functions);
  source.table = nullptr;
  source.missing.text = packed->missing_reason();
  return source;
}

void note_nameless(const symbolize::Module* module, GatheredSymbols& gathered) {
  using symbolize::ModuleKind;
  if (module == nullptr) return;
  if (module->kind == ModuleKind::Anonymous) ++gathered.nameless[""];
  if (module->kind == ModuleKind::User && module->path.starts_with('/'))
    ++gathered.nameless[std::string(module->path)];
}

}  // namespace

void set_for_gathering(SessionOptions& options) {
  options.keeps_hooks = true;  // which --as-perf shows
  options.symbols.inlines = symbolize::Inlines::No;
  options.symbols.source_lines = symbolize::SourceLines::No;
  options.symbols.use_symbol_name = symbolize::UseSymbolName::Outermost;
  options.symbols.demangle = symbolize::Demangle::Yes;
}

GatheredSymbols gather_symbols(Session& session, const GatherRules& rules) {
  Gatherer gatherer(session);
  session.run(gatherer);
  symbolize::PackMaker maker(rules.level);
  ModuleAccess access(rules);
  GatheredSymbols gathered;
  Resolver& resolver = session.resolver();
  CodeGatherer code(resolver, maker, session.features().environment.arch.value_or(""));
  const bool wants_code = rules.level >= format::PackLevel::Code;
  std::unordered_set<std::string_view> made_files;                      // of jitdumps
  std::set<std::pair<const symbolize::Module*, std::uint64_t>> starts;  // of functions
  bool has_name = false;                                                // the last location
  bool is_data = false;
  const auto add_location = [&](symbolize::LocationFacts facts, const Location& location, bool is_call) {
    const bool is_bpf = facts.module != nullptr && facts.module->kind == symbolize::ModuleKind::Bpf;
    const bool is_shown = is_call == location.is_caller && !is_data;
    const bool is_named = is_bpf || (facts.symbol && !facts.symbol->is_unnamed());
    if (is_shown && is_named) ++gathered.named;
    if (is_shown && !is_named) note_nameless(facts.module, gathered);
    if (facts.source != nullptr && facts.source->jit != nullptr) {
      made_files.insert(facts.module->path);
      if (wants_code) code.add_made(location, facts);
      return;
    }
    std::optional<symbolize::SymbolSource> nameless;
    if (rules.only_packed && facts.source != nullptr && facts.source->packed == nullptr) {
      nameless = packed_without_names(resolver, facts);
      if (!nameless) return;
      facts.source = &*nameless;
      facts.symbol.reset();
      facts.elf_address = nameless->packed->elf_address_of(facts.shown_address);
    }
    using Keep = symbolize::PackMaker::Keep;
    maker.add_location(facts, is_call && has_name ? Keep::Always : Keep::WithFacts);
    has_name = is_named;
    if (is_call) return;
    if (wants_code) code.add_location(location, facts);
    if (is_data) return;
    // Pictures show the line where a function starts.
    const bool has_start =
        facts.lines != nullptr && facts.symbol && facts.symbol->start <= facts.shown_address;
    if (!has_start || !starts.emplace(facts.module, facts.symbol->start).second) return;
    maker.add_location(resolver.facts(
        at_address(location, location.ip.value - (facts.shown_address - facts.symbol->start))));
  };
  const std::size_t locations = resolver.locations();
  for (std::uint32_t number = 0; number < locations; ++number) {
    const Location& location = resolver.location(LocationId{number});
    is_data = gatherer.is_data(location.id);
    if (!is_data) ++gathered.addresses;
    if (symbolize::SymbolSource* const unread = access.enter(location); unread != nullptr) {
      symbolize::LocationFacts facts;
      facts.module = location.mapping->module;
      facts.source = unread;
      maker.add_location(facts);
      if (!is_data) note_nameless(facts.module, gathered);
      continue;
    }
    has_name = false;
    add_location(resolver.facts(location), location, false);
    // A caller's frame has the names of the call, or with --as-perf those of the return address.
    if (location.is_caller) add_location(resolver.facts_of_call(location), location, true);
  }
  access.leave();
  gathered.jitdumps =
      session.jit_code().reduced([&](const std::string& path) { return made_files.contains(path); });
  gathered.source_sums = maker.take_source_sums();
  gathered.pack = maker.finish();
  gathered.sources = code.take_sources();
  return gathered;
}

}  // namespace tacho::report
