/**
 * The block types of quantized tensors, one row each: a block is a fixed number of consecutive elements that share scales.
 * This is the only table of them, and the build generates the native core's table from it. So the file holds literal data
 * and imports nothing.
 *
 * Source: the package gguf 0.19 (`GGML_QUANT_SIZES`, `GGMLQuantizationType`); q2_0: `ggml-common.h` of llama.cpp. Q8_1 is
 * missing on purpose: these two disagree on its size, and no model file has it.
 */

// biome-ignore format: a table is read by its columns.
export const BLOCK_TYPE_TABLE = [
  // name     GGML  elements  bytes of a block
  ['q4_0',     2,   32,     18],
  ['q4_1',     3,   32,     20],
  ['q5_0',     6,   32,     22],
  ['q5_1',     7,   32,     24],
  ['q8_0',     8,   32,     34],
  ['q2_k',     10,  256,    84],
  ['q3_k',     11,  256,   110],
  ['q4_k',     12,  256,   144],
  ['q5_k',     13,  256,   176],
  ['q6_k',     14,  256,   210],
  ['q8_k',     15,  256,   292],
  ['iq2_xxs',  16,  256,    66],
  ['iq2_xs',   17,  256,    74],
  ['iq3_xxs',  18,  256,    98],
  ['iq1_s',    19,  256,    50],
  ['iq4_nl',   20,  32,     18],
  ['iq3_s',    21,  256,   110],
  ['iq2_s',    22,  256,    82],
  ['iq4_xs',   23,  256,   136],
  ['iq1_m',    29,  256,    56],
  ['tq1_0',    34,  256,    54],
  ['tq2_0',    35,  256,    66],
  ['mxfp4',    39,  32,     17],
  ['nvfp4',    40,  64,     36],
  ['q1_0',     41,  128,    18],
  ['q2_0',     42,  64,     18],
] as const
