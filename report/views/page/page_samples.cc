#include "report/views/page/page_samples.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "report/output/text_output.h"
#include "report/query/field_choice.h"
#include "report/samples/filter.h"

namespace tacho::report {

std::uint32_t PageTexts::number_of(std::string_view text) {
  if (const auto known = numbers_.find(text); known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(texts_.size());
  texts_.push_back(store_.keep(text));
  numbers_.emplace(texts_.back(), number);
  return number;
}

std::uint32_t PageTree::frame_of(const PageFrame& frame) {
  return by_frame_.find_or_make(
      by_frame_.hash(frame.name, frame.module, static_cast<int>(frame.kind)),
      [&](std::uint32_t known) { return frames_[known] == frame; },
      [&] {
        frames_.push_back(frame);
        return static_cast<std::uint32_t>(frames_.size() - 1);
      });
}

std::uint32_t PageTree::node_of(std::span<const std::uint32_t> chain) {
  std::size_t same = 0;
  while (same < chain.size() && same < path_.size() && nodes_[path_[same]].frame == chain[same]) ++same;
  path_.resize(same);
  for (const std::uint32_t frame : chain.subspan(same)) {
    const std::uint32_t parent = path_.empty() ? 0 : path_.back();
    path_.push_back(child(parent, frame));
  }
  return path_.empty() ? 0 : path_.back();
}

std::uint32_t PageTree::child(std::uint32_t parent, std::uint32_t frame) {
  return by_node_.find_or_make(
      by_node_.hash(parent, frame),
      [&](std::uint32_t known) { return nodes_[known].parent == parent && nodes_[known].frame == frame; },
      [&] {
        nodes_.push_back({parent, frame});
        return static_cast<std::uint32_t>(nodes_.size() - 1);
      });
}

std::vector<std::uint32_t> PageTree::replace_frames(std::span<const std::uint32_t> frames) {
  const std::vector<Node> old = std::exchange(nodes_, {nodes_.front()});
  by_node_.forget();
  path_.clear();
  std::vector<std::uint32_t> moved(old.size());
  for (std::size_t node = 1; node < old.size(); ++node)  // a node is after its caller
    moved[node] = child(moved[old[node].parent], frames[old[node].frame]);
  return moved;
}

PageTree::Order PageTree::order(const PageTexts& texts) const {
  std::vector<std::uint32_t> sorted(frames_.size()), ranks(frames_.size());
  std::iota(sorted.begin(), sorted.end(), 0U);
  const auto key = [&](std::uint32_t frame) {
    const PageFrame& one = frames_[frame];
    return std::tuple(texts[one.name], texts[one.module], one.kind);
  };
  std::ranges::sort(sorted, [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  for (std::uint32_t rank = 0; rank < sorted.size(); ++rank) ranks[sorted[rank]] = rank;

  // The callees of a node start at starts[node].
  const std::size_t count = nodes_.size();
  std::vector<std::uint32_t> by_rank(count), starts(count + 1), callees(count);
  std::iota(by_rank.begin(), by_rank.end(), 0U);
  std::ranges::sort(by_rank, {}, [&](std::uint32_t node) { return ranks[nodes_[node].frame]; });
  for (std::size_t node = 1; node < count; ++node) ++starts[nodes_[node].parent + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  std::vector<std::uint32_t> next(starts.begin(), starts.end() - 1);
  for (const std::uint32_t node : by_rank)
    if (node != 0) callees[next[nodes_[node].parent]++] = node;

  Order order;
  order.nodes.reserve(count);
  order.positions.resize(count);
  std::vector<std::uint32_t> open{0};
  next.assign(starts.begin(), starts.end() - 1);
  while (!open.empty()) {
    const std::uint32_t node = open.back();
    if (next[node] < starts[node + 1]) {
      open.push_back(callees[next[node]++]);
      continue;
    }
    order.positions[node] = static_cast<std::uint32_t>(order.nodes.size());
    order.nodes.push_back(node);
    open.pop_back();
  }
  return order;
}

void PageColumn::varint(std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes_ += static_cast<char>(number | 0x80);
  bytes_ += static_cast<char>(number);
}

void PageColumn::add(std::uint64_t number) {
  varint(number);
  ++count_;
}

void PageColumn::add_signed(std::int64_t number) {
  std::int64_t shown = number;
  if (form_ == ColumnForm::Differences) {
    shown = static_cast<std::int64_t>(static_cast<std::uint64_t>(number) - static_cast<std::uint64_t>(last_));
    last_ = number;
  }
  varint((static_cast<std::uint64_t>(shown) << 1) ^ static_cast<std::uint64_t>(shown >> 63));
  ++count_;
}

void PageColumn::add_real(double number) {
  const auto bits = std::bit_cast<std::uint64_t>(number);
  for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(bits >> shift);
  ++count_;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t word = 0;
    const std::size_t size = std::min<std::size_t>(3, bytes.size() - at);
    for (std::size_t i = 0; i < 3; ++i)
      word = word << 8 | (i < size ? static_cast<std::uint8_t>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i) text += i <= size ? kDigits[word >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

namespace {

// Bytes of an element: a multiple of 3, so that its base64 needs no padding.
constexpr std::size_t kElement = std::size_t{3} << 20;
constexpr std::size_t kBlock = std::size_t{256} << 10;      // bytes that one worker compresses at a time
constexpr std::size_t kBlocks = 16;                         // blocks that are compressed in parallel
constexpr std::size_t kDictionary = std::size_t{32} << 10;  // bytes before a block that are its dictionary

struct PackedBlock {
  std::string bytes;
  std::uint32_t checksum = 0;
};

// A part of a deflate stream, up to a byte's end.
Result<PackedBlock> pack_block(std::string_view dictionary, std::string_view block, bool is_last) {
  constexpr int kLevel = 6, kRaw = -MAX_WBITS, kMemory = 9;
  const auto start = [](std::string_view bytes) {
    return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  };
  z_stream stream{};
  if (::deflateInit2(&stream, kLevel, Z_DEFLATED, kRaw, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return Error{"zlib has no memory to pack the page's data"};
  if (!dictionary.empty())
    ::deflateSetDictionary(&stream, start(dictionary), static_cast<uInt>(dictionary.size()));
  PackedBlock packed;
  stream.next_in = start(block);
  stream.avail_in = static_cast<uInt>(block.size());
  do {
    const std::size_t size = packed.bytes.size();
    packed.bytes.resize(size + kBlock / 2);
    stream.next_out = reinterpret_cast<Bytef*>(packed.bytes.data() + size);
    stream.avail_out = static_cast<uInt>(kBlock / 2);
    ::deflate(&stream, is_last ? Z_FINISH : Z_SYNC_FLUSH);
    packed.bytes.resize(packed.bytes.size() - stream.avail_out);
  } while (stream.avail_out == 0);
  ::deflateEnd(&stream);
  packed.checksum = static_cast<std::uint32_t>(::crc32(0, start(block), static_cast<uInt>(block.size())));
  return packed;
}

std::string little_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(number >> shift);
  return bytes;
}

// Writes the columns: compresses what is added into elements <script type="application/octet-stream"
// class="data"> of some megabytes each: one gzip stream, whose blocks the workers of a pool compress in
// parallel. The end of the previous block is a block's dictionary, so the stream is the same for any number
// of workers.
class PackedElements {
 public:
  // Both must outlive it.
  PackedElements(TextOutput& out, format::WorkerPool& pool) : out_(out), pool_(pool) {
    constexpr std::string_view kGzipHeader("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);  // deflate, no time, Unix
    packed_ = kGzipHeader;
  }

  void add(std::string_view bytes) {
    while (!bytes.empty() && result_) {
      const std::size_t taken = std::min(bytes.size(), dictionary_ + kBlocks * kBlock - pending_.size());
      pending_ += bytes.substr(0, taken);
      bytes.remove_prefix(taken);
      if (pending_.size() == dictionary_ + kBlocks * kBlock) result_ = pack(false);
    }
  }

  Result<> finish() {
    if (result_) result_ = pack(true);
    if (!result_) return result_;
    packed_ += little_endian(checksum_) + little_endian(size_);
    write_element(packed_.size());
    return Done{};
  }

 private:
  Result<> pack(bool is_last) {
    const std::string_view all = pending_;
    const std::size_t size = all.size() - dictionary_;
    const std::size_t blocks = std::max<std::size_t>((size + kBlock - 1) / kBlock, 1);
    std::vector<PackedBlock> packed(blocks);
    auto done = pool_.run(blocks, [&](std::size_t number, unsigned) -> Result<> {
      const std::size_t begin = dictionary_ + number * kBlock, before = std::min(begin, kDictionary);
      auto block = pack_block(all.substr(begin - before, before), all.substr(begin, kBlock),
                              is_last && number + 1 == blocks);
      if (!block) return std::move(block.error());
      packed[number] = std::move(*block);
      return Done{};
    });
    if (!done) return done;
    for (std::size_t number = 0; number < blocks; ++number) {
      const std::size_t length = std::min(kBlock, size - number * kBlock);
      checksum_ = static_cast<std::uint32_t>(
          ::crc32_combine(checksum_, packed[number].checksum, static_cast<z_off_t>(length)));
      packed_ += packed[number].bytes;
      while (packed_.size() >= kElement) write_element(kElement);
    }
    size_ += static_cast<std::uint32_t>(size);
    pending_.erase(0, pending_.size() - std::min(pending_.size(), kDictionary));
    dictionary_ = pending_.size();
    return Done{};
  }

  void write_element(std::size_t size) {
    out_.text("<script type=\"application/octet-stream\" class=\"data\">");
    out_.text(base64(std::string_view(packed_).substr(0, size)));
    out_.text("</script>\n");
    out_.line_end();
    packed_.erase(0, size);
  }

  TextOutput& out_;
  format::WorkerPool& pool_;
  std::string pending_;         // the dictionary (the last bytes already compressed), then bytes to compress
  std::size_t dictionary_ = 0;  // its size in `pending_`
  std::string packed_;
  std::uint32_t checksum_ = 0;
  std::uint32_t size_ = 0;  // bytes compressed so far, modulo 2^32
  Result<> result_ = Done{};
};

namespace abi = format::abi;
using format::FieldKind;

constexpr std::size_t kMostText = std::size_t{256} << 20;  // bytes of all texts of a page
constexpr std::size_t kMostLines = 2000;                   // functions whose source lines are looked up
constexpr std::string_view kHidden = "[hidden]";
constexpr std::string_view kTooMuch = "[left out: too much text]";

FrameNames page_names(Session& session, PageParts& parts, const PageNames& names,
                      std::vector<FrameAddress>& addresses) {
  const auto make = [&](const symbolize::Frame& frame, const FrameAddress& address, bool is_java,
                        std::vector<std::uint32_t>& numbers) {
    const std::uint32_t module =
        frame.module == nullptr ? 0 : parts.texts.number_of(names.path(frame.module->short_name));
    const std::vector<std::string> found = names_of_frame(frame, {}, is_java);
    for (std::size_t i = found.size(); i-- > 0;) {  // several where a JIT wrote "outer->inner" into one name
      std::string_view name = found[i];
      const bool is_inlined = i > 0 && name.ends_with(kInlinedMark);
      if (is_inlined) name.remove_suffix(kInlinedMark.size());
      // PageKind has the letters of code_kind().
      const PageKind kind = is_inlined ? PageKind::Inlined : PageKind{static_cast<char>(code_kind(frame))};
      const std::string shown =
          kind == PageKind::Unnamed ? names.text_with_paths(name) : std::string(printable(name));
      numbers.push_back(parts.tree.frame_of({parts.texts.number_of(shown), module, kind}));
      if (numbers.back() >= addresses.size()) addresses.resize(numbers.back() + 1);
      FrameAddress& first = addresses[numbers.back()];
      if (first.location == FrameAddress::kNone) first = address;
    }
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
    if (attr.samples(abi::kSampleRaw) && schemas.of(i) != nullptr) return true;
  }
  return false;
}

}  // namespace

std::string PageNames::of(Content content, std::string_view text) const {
  switch (how(content)) {
    case How::Keep:
      return printable(text);
    case How::Hash:
      return aliases_->of(text);
    default:
      return std::string(text.empty() ? "" : kHidden);
  }
}
std::string PageNames::path(std::string_view path) const {
  return printable(hidden_path(path, redaction_->path_rule(), *aliases_));
}
std::string PageNames::event(std::string_view name) const {
  return printable(hidden_event(name, redaction_->path_rule(), *aliases_));
}
std::string PageNames::text_with_paths(std::string_view text) const {
  return printable(hidden_paths_in(text, redaction_->path_rule(), *aliases_));
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
      frames_(page_names(session, parts, names, addresses_of_frames_)),
      merge_by_(stack_merge_by(session, false)),
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
  const std::uint32_t row = row_of(sample);
  rows_[row].weight += weight;
  ++rows_[row].samples;
  if (samples_++ == 0) first_time_ = sample.fields->time;
  if (take_ == Take::Everything) add_columns(event, sample, row, weight);
  if (merge_by_ == MergeBy::Address) name_new_rows();  // at once, while others read on
  return Flow::Continue;
}

void PageSamples::add_columns(EventColumns& event, const ResolvedSample& sample, std::uint32_t row,
                              std::uint64_t weight) {
  const format::EventAttr& attr = sample.event().attr;
  times_.add_signed(static_cast<std::int64_t>(sample.fields->time - first_time_));
  cpus_.add(attr.samples(abi::kSampleCpu) ? std::uint64_t{sample.fields->cpu} + 1 : 0);
  of_threads_.add(thread_of(sample));
  of_events_.add(sample.event_index);
  weights_of_samples_.add(weight);
  rows_of_samples_.add(row);
  if (!reads_payloads_) return;
  const bool has_cgroup = attr.samples(abi::kSampleCgroup);
  has_cgroups_ |= has_cgroup;
  cgroups_.add(has_cgroup ? parts_.texts.number_of(names_.of(Content::Containers, sample.cgroup())) : 0);
  add_payload(event, sample);
}

PageSamples::EventColumns& PageSamples::event_of(const ResolvedSample& sample) {
  if (sample.event_index >= events_.size()) events_.resize(sample.event_index + 1);
  EventColumns& event = events_[sample.event_index];
  if (event.is_known) return event;
  event.is_known = true;
  const PayloadSchema* const schema = schemas_.of(sample.event_index);
  if (schema == nullptr || take_ == Take::Stacks) return event;
  for (const PayloadField& field : schema->fields) {
    const bool is_text = is_shown_as_text(field);
    const ColumnForm form = is_text                          ? ColumnForm::Numbers
                            : field.kind == FieldKind::Float ? ColumnForm::Reals
                                                             : ColumnForm::Signed;
    const std::string number = fmt::format("{}.{}", sample.event_index, event.fields.size());
    event.fields.push_back({&field, is_text, PageColumn("field." + number, form),
                            PageColumn("missing." + number, ColumnForm::Byte), false});
  }
  return event;
}

std::string PageSamples::text_of(const PayloadField& field, const ResolvedSample& sample) const {
  const format::Bytes raw = sample.fields->raw;
  const bool is_hidden = is_named_address(field) && names_.how(Content::Kernel) != How::Keep;
  const auto one = [&](const FieldValue& value) {
    const auto* const text = std::get_if<std::string_view>(&value);
    return is_hidden         ? std::string(kHidden)
           : text != nullptr ? names_.of(Content::Payload, *text)
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
      column.values.add(parts_.texts.number_of(text));
    } else if (column.values.form() == ColumnForm::Reals) {
      const auto* const real = value ? std::get_if<double>(&*value) : nullptr;
      column.values.add_real(real == nullptr ? 0 : *real);
    } else {
      column.values.add_signed(read_number(field, sample.fields->raw, sample.order).value_or(0));
    }
  }
}

std::uint32_t PageSamples::row_of(const ResolvedSample& sample) {
  const auto [comm, is_new] =
      comm_numbers_.try_emplace(sample.comm.data(), static_cast<std::uint32_t>(comms_.size()));
  if (is_new) {
    const std::string name = names_.of(Content::Comm, sample.comm);
    const std::uint32_t text = parts_.texts.number_of(name.empty() ? "[unnamed]" : name);
    comms_.push_back({parts_.tree.frame_of({text, 0, PageKind::Thread}), sample.comm.starts_with("java")});
  }
  const Row row{static_cast<std::uint32_t>(sample.event_index), comm->second, sample.stack,
                sample.stack == nullptr ? sample.location_number : 0};
  const std::uint64_t chain = row.stack == nullptr ? row.location : row.stack->number;
  return by_row_.find_or_make(
      by_row_.hash(row.event, row.comm, chain, row.stack == nullptr),
      [&](std::uint32_t known) {
        const Row& other = rows_[known];
        return other.event == row.event && other.comm == row.comm && other.stack == row.stack &&
               other.location == row.location;
      },
      [&] {
        rows_.push_back(row);
        return static_cast<std::uint32_t>(rows_.size() - 1);
      });
}

std::uint32_t PageSamples::thread_of(const ResolvedSample& sample) {
  const std::uint64_t key = std::uint64_t{sample.pid()} << 32 | sample.tid();
  const auto [known, is_new] = thread_numbers_.try_emplace(key, static_cast<std::uint32_t>(threads_.size()));
  if (is_new) threads_.push_back({sample.pid(), sample.tid(), 0});
  ThreadName& thread = threads_[known->second];
  // The last name of the thread: that of the program after its last exec.
  const auto comm = comm_numbers_.find(sample.comm.data());
  if (comm != comm_numbers_.end())
    thread.comm = parts_.tree.frames()[comms_[comm->second].frame].name;
  else
    thread.comm = parts_.texts.number_of(names_.of(Content::Comm, sample.comm));
  return known->second;
}

void PageSamples::name_new_rows() {
  for (std::size_t row = row_nodes_.size(); row < rows_.size(); ++row) {
    const Row& one = rows_[row];
    const Comm& comm = comms_[one.comm];
    chain_.clear();
    if (roots_ == Roots::Comm) chain_.push_back(comm.frame);
    const auto chain = one.stack == nullptr ? std::span(&one.location, 1) : one.stack->frames;
    frames_.append(chain, FrameNames::Order::RootFirst, comm.is_java, chain_);
    row_nodes_.push_back(parts_.tree.node_of(chain_));
  }
}

std::vector<bool> PageSamples::used_frames() const {
  const std::vector<PageTree::Node>& nodes = parts_.tree.nodes();
  std::vector<bool> are_used(nodes.size()), frames(parts_.tree.frames().size());
  for (const std::uint32_t node : row_nodes_) are_used[node] = true;
  for (std::size_t node = nodes.size(); node-- > 0;) {
    if (!are_used[node]) continue;
    are_used[nodes[node].parent] = true;
    frames[nodes[node].frame] = true;
  }
  return frames;
}

std::vector<std::uint32_t> PageSamples::lines() {
  const std::vector<PageTree::Node>& nodes = parts_.tree.nodes();
  std::vector<std::uint64_t> weights(nodes.size());
  for (std::size_t row = 0; row < rows_.size(); ++row) weights[row_nodes_[row]] += rows_[row].weight;
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
  std::vector<std::uint32_t> lines(parts_.tree.frames().size());
  if (names_.how(Content::Paths) == How::Hash) return lines;
  for (const auto& [weight, frame] : std::span(heaviest).first(count))
    lines[frame] = parts_.texts.number_of(source_line(session_.resolver(), addresses_of_frames_[frame]));
  return lines;
}

std::vector<PageColumn> PageSamples::columns(const PageTree::Order& order) {
  std::vector<PageColumn> columns;
  PageColumn node("node", ColumnForm::Numbers);
  rows_of_samples_.each([&](std::uint32_t row) { node.add(order.positions[row_nodes_[row]]); });
  for (PageColumn* column : {&times_, &cpus_, &of_threads_, &of_events_, &node, &weights_of_samples_})
    columns.push_back(std::move(*column));
  if (has_cgroups_) columns.push_back(std::move(cgroups_));
  PageColumn pid("threads.pid", ColumnForm::Signed), tid("threads.tid", ColumnForm::Signed),
      comm("threads.comm", ColumnForm::Numbers);
  for (const ThreadName& one : threads_) {
    pid.add_signed(static_cast<std::int32_t>(one.pid));
    tid.add_signed(static_cast<std::int32_t>(one.tid));
    comm.add(one.comm);
  }
  for (PageColumn* column : {&pid, &tid, &comm}) columns.push_back(std::move(*column));
  for (EventColumns& event : events_)
    for (FieldColumn& field : event.fields) {
      columns.push_back(std::move(field.values));
      if (field.has_missing) columns.push_back(std::move(field.missing));
    }
  return columns;
}

std::vector<PageColumn> PageSamples::sums(const PageTree::Order& order, const std::string& prefix) const {
  struct Sum {
    std::uint64_t weight = 0, samples = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Sum> sums;  // by event and position
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    Sum& sum = sums[{rows_[row].event, order.positions[row_nodes_[row]]}];
    sum.weight += rows_[row].weight;
    sum.samples += rows_[row].samples;
  }
  std::vector<PageColumn> columns;
  for (std::size_t event = 0; event < events_.size(); ++event) {
    const std::string start = fmt::format("{}{}.", prefix, event);
    PageColumn node(start + "node", ColumnForm::Differences), weight(start + "weight", ColumnForm::Wide),
        samples(start + "samples", ColumnForm::Numbers);
    for (const auto& [key, sum] : sums) {
      if (key.first != event) continue;
      node.add_signed(key.second);
      weight.add(sum.weight);
      samples.add(sum.samples);
    }
    for (PageColumn* column : {&node, &weight, &samples}) columns.push_back(std::move(*column));
  }
  return columns;
}

std::string PageSamples::unit_of(std::size_t event) {
  const format::Event& described = session_.events()[event];
  const std::string unit = weight_unit({}, described, schemas_.of(event), periods_.of(event));
  return unit == printable(described.name) ? names_.event(described.name) : unit;
}

void PageSamples::describe(JsonFields& to) {
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

// The script and the style of pages with their SHA-256 in hexadecimal (cmake/join_modules.cmake).
extern const std::string_view kPageScript, kPageScriptHash, kPageStyle, kPageStyleHash;

namespace {

std::string policy_hash(std::string_view hex) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
    const auto digit = [&](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    bytes += static_cast<char>(digit(hex[at]) << 4 | digit(hex[at + 1]));
  }
  return "'sha256-" + base64(bytes) + "'";
}

std::vector<PageColumn> shared_columns(const PageParts& parts, const PageTree::Order& order) {
  std::vector<PageColumn> columns;
  PageColumn sizes("text.size", ColumnForm::Numbers), bytes("text.bytes", ColumnForm::Byte);
  for (std::uint32_t i = 0; i < parts.texts.size(); ++i) {
    sizes.add(parts.texts[i].size());
    bytes.add_bytes(parts.texts[i]);
  }
  PageColumn name("frame.name", ColumnForm::Numbers), module("frame.module", ColumnForm::Numbers),
      kind("frame.kind", ColumnForm::Byte);
  for (const PageFrame& frame : parts.tree.frames()) {
    name.add(frame.name);
    module.add(frame.module);
    kind.add_byte(static_cast<char>(frame.kind));
  }
  // The distance to the caller, which is after its callees.
  PageColumn parent("node.parent", ColumnForm::Numbers), frame("node.frame", ColumnForm::Numbers);
  for (std::size_t i = 0; i < order.nodes.size(); ++i) {
    const PageTree::Node& node = parts.tree.nodes()[order.nodes[i]];
    parent.add(order.positions[node.parent] - i);
    frame.add(node.frame);
  }
  for (PageColumn* column : {&sizes, &bytes, &name, &module, &kind, &parent, &frame})
    columns.push_back(std::move(*column));
  return columns;
}

}  // namespace

Result<> write_page(TextOutput& out, const std::string& head, const PageParts& parts,
                    const PageTree::Order& order, std::vector<PageColumn> columns, format::WorkerPool& pool) {
  std::vector<PageColumn> all = shared_columns(parts, order);
  std::ranges::move(columns, std::back_inserter(all));
  std::string list;
  for (const PageColumn& column : all)
    list += fmt::format("{}[\"{}\",\"{}\",{},{}]", list.empty() ? "" : ",", column.name(),
                        static_cast<char>(column.form()), column.count(), column.bytes().size());
  const std::string json = fmt::format("{{\"columns\":[{}],\"head\":{}}}", list, head);

  out.text("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
  out.text(
      fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; "
                  "style-src {}; base-uri 'none'; form-action 'none'\">\n",
                  policy_hash(kPageScriptHash), policy_hash(kPageStyleHash)));
  out.text(
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>tacho page</title>\n<style>");
  out.text(kPageStyle);
  out.text(
      "</style>\n</head>\n<body>\n<main id=\"page\"><p id=\"opening\">Opening ...</p>"
      "<noscript><p>This page shows a capture of tacho with a script, and this browser does not run scripts. "
      "The script needs no network.</p></noscript></main>\n");
  PackedElements packed(out, pool);
  packed.add(little_endian(static_cast<std::uint32_t>(json.size())));
  packed.add(json);
  for (const PageColumn& column : all) packed.add(column.bytes());
  if (auto done = packed.finish(); !done) return std::move(done.error());
  out.text("<script>");
  out.text(kPageScript);
  out.text("</script>\n</body>\n</html>\n");
  return Done{};
}

}  // namespace tacho::report
