// Scalar reference quantisers of activations, KV rows and index keys: groups of consecutive
// elements that share a scale. Each comes as an encoder to the bytes as stored, a decoder, and a
// fake quantiser (decode(encode(x)) in place, bit for bit).
//
// Special values, for every quantiser here and in weight_blocks.h:
// - Signed zeros and signs of elements that round to zero are kept (as -0).
// - Subnormal floats are ordinary values; they lie below the smallest scale and become signed
// zeros,
//   except in indexer FP4 groups, whose scales reach down to 2^-126.
// - A NaN or an infinity anywhere in a group poisons the whole group: amax propagates NaN, and both
//   have an all-ones exponent, from which the power-of-two rule makes the NaN scale (E8M0 byte
//   255). Every element decodes to NaN (its stored code is NaN for e4m3, 0 for e2m1). A broken
//   activation is thus never clamped into a plausible one.
// - An element whose decoded magnitude reaches 2^128 becomes infinity with its sign. That needs
//   |x| >= 248 * 2^120 (e4m3) or 3.5 * 2^126 (e2m1).
//
// Inputs are meant to be bf16 values held as float. The decoded value of a power-of-two quantiser
// is then exact in bf16 as well: at most 4 significant bits and no smaller than 2^-127.
//
// Lengths that do not match throw std::invalid_argument: a defect of the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cupel/formats/e2m1.h"
#include "cupel/formats/e4m3.h"
#include "cupel/formats/e8m0.h"

namespace cupel {

inline constexpr std::size_t kActivationGroup = 128;  // spec/model.md 3.3
inline constexpr std::size_t kKvGroup = 64;           // 3.5.6
inline constexpr std::size_t kIndexerGroup = 32;      // 3.8.3
inline constexpr std::size_t kIndexKeyWidth = 128;    // spec/serving-stack.md A.2

inline constexpr float kE4m3AmaxFloor = 1e-4f;
inline constexpr float kE2m1AmaxFloor = 6.0f * 0x1p-126f;
inline constexpr int kNanScaleExponent = kE8m0Nan - kE8m0Bias;

// max |x|, 0 for an empty span. NaN when an element is NaN.
float magnitude_max(std::span<const float> values);

// Exponent e of the scale 2^e of a group with this amax >= 0, after the floor: the rule of 3.3 on
// the bit pattern of float(amax * float(1/448)), or of 3.8.3 with 1/6. For bf16 amax this is the
// smallest e with amax <= 448 * 2^e (6 * 2^e); for an amax of more bits that just exceeds such a
// product, the float multiplication can hide the excess, and that element saturates. Range -22..120
// (e4m3), -126..126 (e2m1); NaN and infinity give kNanScaleExponent.
int e4m3_scale_exponent(float amax);
int e2m1_scale_exponent(float amax);

constexpr std::uint8_t e8m0_from_exponent(int exponent) {
  return static_cast<std::uint8_t>(exponent + kE8m0Bias);
}

// e4m3 codes with one E8M0 scale a group. `values`, `codes` [n], `scales` [n / group], n a multiple
// of `group`. values[i] ~ codes[i] * scales[i / group].
void encode_e4m3(std::span<const float> values, std::size_t group, std::span<std::uint8_t> codes,
                 std::span<std::uint8_t> scales);
void decode_e4m3(std::span<const std::uint8_t> codes, std::span<const std::uint8_t> scales,
                 std::size_t group, std::span<float> values);
void fake_quantise_e4m3(std::span<float> values, std::size_t group);

// e2m1 codes, two a byte, with one E8M0 scale a group. `values` [n], `packed` [n / 2], `scales`
// [n / group], n a multiple of `group`, `group` even.
void encode_e2m1(std::span<const float> values, std::size_t group, std::span<std::uint8_t> packed,
                 std::span<std::uint8_t> scales);
void decode_e2m1(std::span<const std::uint8_t> packed, std::span<const std::uint8_t> scales,
                 std::size_t group, std::span<float> values);
void fake_quantise_e2m1(std::span<float> values, std::size_t group);

// Input of an FP8 or FP4 linear layer, [.., K] with K a multiple of 128 (3.3).
inline void fake_quantise_activation(std::span<float> values) {
  fake_quantise_e4m3(values, kActivationGroup);
}
// Nope part of a KV row: the first 448 of 512 elements, without the rope part (3.5.6).
inline void fake_quantise_kv(std::span<float> nope) {
  fake_quantise_e4m3(nope, kKvGroup);
}
// Indexer queries and keys after the Hadamard transform, [.., 128] (3.8.3).
inline void fake_quantise_indexer(std::span<float> values) {
  fake_quantise_e2m1(values, kIndexerGroup);
}

// One fp8 index row of 128 elements: scale = max(amax, 1e-4) / 448 in float, not a power of two;
// code = e4m3(x / scale), a float division. Returns the scale; a poisoned row has a NaN or infinite
// one and NaN codes.
float encode_index_key(std::span<const float> row, std::span<std::uint8_t> codes);
// row[i] = codes[i] * scale in float, generally not exact in bf16.
void decode_index_key(std::span<const std::uint8_t> codes, float scale, std::span<float> row);
void fake_quantise_index_key(std::span<float> row);

}  // namespace cupel
