// What a forward pass works on: a step of rows (tokens) of any number of sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "cupel/attention/backend.h"
#include "cupel/checkpoint/config.h"
#include "cupel/kernels/device_array.h"
#include "cupel/kernels/rope.h"

namespace cupel {

// The pending rows of one compressor (kernels/compress_windows.h): values and gates with ape added.
struct CompressorState {
  DeviceArray<float> values, gates;  // [compressor_state_rows(ratio), C]
};

// Everything a sequence carries from step to step besides the rows its backend stores.
struct SequenceState {
  int slot = -1;                                   // of the attention backend
  std::int64_t length = 0;                         // tokens processed
  std::vector<CompressorState> compressors;        // by layer; empty states where ratio is 0
  std::vector<CompressorState> index_compressors;  // by layer; ratio 4 only
};

// Rows of one sequence: positions state->length ... + rows.
struct Segment {
  SequenceState* state = nullptr;
  std::size_t rows = 0;
  std::size_t first_row = 0;
};

// Values seen on the way, for tests and for locating differences. `values` is [rows, width]; `name`
// is, for layer >= 0:
//   "attn_out", "ffn_out", "streams"
//   "ffn_in"         what the experts get, before it is quantised
//   "router_logits"  [rows, experts], of hash layers too, which do not choose by them
//   "expert_hidden"  what w2 gets, before it is quantised: rows of the routed experts by ascending
//                    expert, then of the shared ones
// and for layer -1 "final_hidden".
using Tap = std::function<void(std::string_view name, int layer, std::span<const float> values,
                               std::size_t width)>;
// The indexer's choice in a ratio-4 layer, [rows, index_topk], -1 = none.
using SelectionTap = std::function<void(int layer, std::span<const std::int32_t> chosen)>;
// All that the backend of a layer is given, before it stores anything; `out` is not written yet.
using AttentionTap = std::function<void(const AttentionStep& step)>;

struct StepTaps {
  Tap values;
  SelectionTap selection;
  AttentionTap attention;
};

// The rows of a step with everything the layers derive from positions alone.
struct StepContext {
  DeviceArray<std::int32_t> ids;  // [rows]
  std::vector<Segment> segments;
  std::vector<AttentionSegment> attention_segments;
  std::vector<std::int64_t> positions;  // [rows]
  RopeTable plain_rope;                 // rows' positions, base rope_theta
  RopeTable compressed_rope;            // rows' positions, base compress_rope_theta, YaRN
  const StepTaps* taps = nullptr;

  std::size_t rows() const { return positions.size(); }
};

}  // namespace cupel
