#include "reorder/cast/fused_cast.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "cpu/cache.h"
#include "dtype/parameter_map.h"
#include "error.h"
#include "io/checked_math.h"
#include "memory/streaming_copy.h"
#include "policy/thresholds.h"
#include "reorder/kernels.h"

namespace tilework {
namespace {

// Memory of a thread, got with its first run that needs so much.
class ThreadBuffer {
 public:
  uint8_t* of(int64_t bytes) {
    if (bytes > size_) {
      memory_.reset(new uint8_t[static_cast<size_t>(bytes)]);
      size_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<uint8_t[]> memory_;
  int64_t size_ = 0;
};

uint8_t* moved_buffer(int64_t bytes) {
  thread_local ThreadBuffer buffer;
  return buffer.of(at_least(bytes, kMovedBytes));
}

uint8_t* coverage_buffer(int64_t elements) {
  thread_local ThreadBuffer buffer;
  return buffer.of(elements);
}

ReorderDescription moves_of(ReorderDescription description) {
  description.casts.clear();
  return description;
}

std::vector<ElementStep> steps_of(const ReorderDescription& description) {
  std::vector<ElementStep> steps;
  for (const ElementChange& change : description.casts) {
    if (const auto* cast = std::get_if<Cast>(&change)) {
      steps.emplace_back(*cast);
      continue;
    }
    const auto& scaling = std::get<ScalingDescription>(change);
    for (ElementStep& step : scaling_steps(scaling, parameter_map(description, scaling))) {
      steps.push_back(std::move(step));
    }
  }
  return steps;
}

int64_t volume_of(const std::vector<int64_t>& shape) {
  int64_t volume = 1;
  for (const int64_t extent : shape) volume = checked_mul(volume, extent, "The number of elements");
  return volume;
}

// The nest that takes one byte again and again where another takes its elements.
LoopNest covering(LoopNest nest) {
  for (Node& node : nest.nodes) node.source_stride = 0;
  nest.source_base = 0;
  const auto covered = [](int64_t offset) { return offset == kHole || offset == kSkip ? offset : 0; };
  for (Lookup& lookup : nest.lookups) {
    for (int64_t& offset : lookup.table) offset = covered(offset);
    if (lookup.compute) {
      lookup.compute = [compute = std::move(lookup.compute), covered](int64_t index) {
        return covered(compute(index));
      };
    }
  }
  return nest;
}

std::unique_ptr<const ReorderPlan> coverage_of(const ReorderPlan& moves) {
  std::vector<LoopNest> nests;
  for (const LoopNest& nest : moves.nests()) nests.push_back(covering(nest));
  return std::make_unique<ReorderPlan>(8, std::move(nests), 1, moves.destination_elements());
}

void clear_holes(const uint8_t* covered, uint8_t* destination, int bits, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (covered[i] != 0) continue;
    if (bits >= 8) {
      std::memset(destination + i * (bits / 8), 0, static_cast<size_t>(bits / 8));
    } else {
      const unsigned mask = ((1u << bits) - 1) << (i * bits % 8);
      uint8_t* byte = destination + i * bits / 8;
      *byte = static_cast<uint8_t>(*byte & ~mask);
      if (mask > 0xff) byte[1] = static_cast<uint8_t>(byte[1] & ~(mask >> 8));
    }
  }
}

}  // namespace

FusedCast::FusedCast(const ReorderDescription& description)
    : moves_(moves_of(description)), cast_(steps_of(description)) {
  if (info_of(cast_.from()).bits != description.element_bits) {
    throw Error(ErrorCode::kArgument, "'elementBits' is " + std::to_string(description.element_bits) +
                                          " and the elements are " + std::string(info_of(cast_.from()).name) +
                                          ".");
  }
  pixels_ = PixelCast::make(moves_, cast_);
  const bool has_holes = moves_.destination_elements() > volume_of(description.shape);
  if (has_holes && !cast_.keeps_zero_bits()) coverage_ = coverage_of(moves_);
  if (!moves_.copy_offset() && pixels_ == nullptr) make_programs();
}

int64_t FusedCast::destination_bytes() const {
  return packed_bytes(cast_.to(), moves_.destination_elements());
}

int64_t FusedCast::range_quantum() const { return packed_bytes(cast_.to(), cast_.whole_elements()); }

int64_t FusedCast::moved_bytes(int64_t at) const {
  if (at == destination_bytes()) return moves_.destination_bytes();
  return packed_bytes(cast_.from(), at / range_quantum() * cast_.whole_elements());
}

int64_t FusedCast::range_unit(int64_t most) const {
  // Whole cache lines and whole quanta, which may be of 3 bytes.
  const int64_t line_unit = std::lcm(kLineBytes, range_quantum());
  if (!programs_.empty()) {
    const int64_t bytes = conversion_->destination_bytes(reach_of(programs_.front()->tiling()));
    return bytes < kLineBytes || bytes > most || bytes % range_quantum() != 0 ? line_unit : bytes;
  }
  const int64_t from = info_of(cast_.from()).bits;
  const int64_t to = info_of(cast_.to()).bits;
  // Whole units of the moves that are whole cache lines of the destination, where that is not too much.
  const int64_t unit = std::max<int64_t>(moves_.range_unit(std::max(most / to * from, kLineBytes)), 1);
  const int64_t bytes = unit * to / from;
  const bool is_whole = unit * to % from == 0 && bytes >= kLineBytes && bytes <= most;
  return is_whole && bytes % range_quantum() == 0 ? bytes : line_unit;
}

std::string FusedCast::kernels() const {
  if (moves_.copy_offset()) return cast_.kernels();
  if (pixels_ != nullptr) return pixels_->kernel();
  if (is_cast_first()) return cast_.kernels() + ", " + moves_.kernel().name;
  return moves_.kernel().name + std::string(", ") + cast_.kernels();
}

std::string FusedCast::reason() const {
  const std::string what =
      "cast from " + std::string(info_of(cast_.from()).name) + " to " + std::string(info_of(cast_.to()).name);
  if (moves_.copy_offset()) return what + " in the order of the source";
  if (pixels_ != nullptr) return "pixels are divided and scaled in registers; " + what;
  const std::string moves = moves_.reason_of(programs_);
  if (conversion_ != nullptr && conversion_->has_registers())
    return moves + "; " + what + ", in registers where panels have whole blocks";
  if (is_cast_first()) return moves + "; " + what + " before the elements move";
  return moves + "; " + what + " before the elements leave the caches";
}

WayShares FusedCast::ways(Stores stores) const {
  WayShares shares;
  if (moves_.copy_offset() || pixels_ != nullptr) return shares;
  for (const auto& program : programs_) program->add_ways(stores, shares);
  if (programs_.empty()) shares[Way::kCastPieces] = destination_bytes();
  return shares;
}

void FusedCast::run(const ReorderArguments& all) const {
  const int64_t quantum = range_quantum();
  const auto elements = [&](int64_t at) { return at / quantum * cast_.whole_elements(); };
  if (const auto offset = moves_.copy_offset()) {
    const bool is_end = all.end == destination_bytes();
    const int64_t last = is_end ? moves_.destination_elements() : elements(all.end);
    const int64_t first = elements(all.begin);
    return run_cast(all.source + *offset + moved_bytes(all.begin), all.destination, {first, last},
                    all.stores);
  }
  if (pixels_ != nullptr) return pixels_->run(all);
  if (!programs_.empty()) return run_programs(all);
  run_wide(all);
}

bool FusedCast::is_cast_first() const {
  return !programs_.empty() && conversion_->order() == PanelConversion::Order::kCastFirst;
}

// Narrow elements move faster, so what becomes narrower is cast first: where the source keeps enough of a
// tile together for a call of the cast, and where what becomes of an element does not depend on its place.
void FusedCast::make_programs() {
  using Order = PanelConversion::Order;
  const int from = info_of(cast_.from()).bits;
  const int to = info_of(cast_.to()).bits;
  if (!moves_elements(from) || to < 8) return;
  const bool can_cast_first = from >= 8 && to <= from && !cast_.depends_on_position();
  if (can_cast_first && add_programs(Order::kCastFirst)) return;
  add_programs(Order::kMoveFirst);
}

// False where a program would cast too few elements at a time before they move.
bool FusedCast::add_programs(PanelConversion::Order order) {
  const bool is_cast_first = order == PanelConversion::Order::kCastFirst;
  conversion_ = std::make_unique<const PanelConversion>(cast_, order);
  const int bits = conversion_->base_bits();
  programs_.clear();
  for (const LoopNest& nest : moves_.nests()) {
    programs_.push_back(std::make_shared<const TileProgram>(
        nest, bits, is_cast_first ? destination_bytes() : moves_.destination_bytes(), best_leaves(),
        conversion_.get()));
    const int64_t together = programs_.back()->tiling().direct_column_bytes / offsets_of_element(bits);
    if (is_cast_first && together < kFewestCastElements) return false;
  }
  return true;
}

void FusedCast::run_programs(const ReorderArguments& all) const {
  const bool has_base_of_target = is_cast_first();
  const int64_t begin = has_base_of_target ? all.begin : moved_bytes(all.begin);
  const int64_t end = has_base_of_target ? all.end : moved_bytes(all.end);
  for (const auto& program : programs_) {
    program->run(all.source, all.destination, begin, end, all.stores, all.part);
  }
  if (all.stores == Stores::kStreaming) end_streaming();
}

void FusedCast::run_wide(const ReorderArguments& all) const {
  const int64_t begin = moved_bytes(all.begin);
  const int64_t end = moved_bytes(all.end);
  // Pieces end where rectangles of the moves end.
  const int64_t whole = std::max<int64_t>(packed_bytes(cast_.from(), cast_.whole_elements()), 1);
  int64_t unit = moves_.range_unit(kMostMovedBytes.value);
  if (unit % whole != 0) unit = 64 * whole;
  const int64_t piece = std::max<int64_t>(kMovedBytes.value / unit, 1) * unit;
  const int bits = info_of(cast_.from()).bits;
  for (int64_t at = begin; at < end;) {
    const int64_t next = std::min((at / unit) * unit + piece, end);
    const int64_t first = at * 8 / bits;
    uint8_t* destination = all.destination + packed_bytes(cast_.to(), first) - all.begin;
    run_piece({moves_, all.source, destination, at, next, all.stores});
    at = next;
  }
}

void FusedCast::run_cast(const uint8_t* source, uint8_t* destination, Elements elements,
                         Stores stores) const {
  cast_.run(source, destination, elements.first, elements.last - elements.first, stores);
  if (stores == Stores::kStreaming) end_streaming();
}

// `piece` is a range of the moves, with the place of its elements after the cast.
void FusedCast::run_piece(const ReorderArguments& piece) const {
  TILEWORK_TAKES(Way::kCastPieces);
  if (coverage_ != nullptr) TILEWORK_WAY("cast: pieces with holes");
  const int64_t begin = piece.begin;
  const int64_t end = piece.end;
  uint8_t* moved = moved_buffer(end - begin);
  moves_.run(piece.source, moved, begin, end);
  const int bits = info_of(cast_.from()).bits;
  const int64_t first = begin * 8 / bits;
  const int64_t last = std::min(end * 8 / bits, moves_.destination_elements());
  run_cast(moved, piece.destination, {first, last}, coverage_ == nullptr ? piece.stores : Stores::kCached);
  if (coverage_ == nullptr) return;
  constexpr uint8_t kOnes = 0xff;
  uint8_t* covered = coverage_buffer(last - first);
  coverage_->run(&kOnes, covered, first, last);
  clear_holes(covered, piece.destination, info_of(cast_.to()).bits, last - first);
}

}  // namespace tilework
