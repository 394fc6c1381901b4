/**
 * The dtypes, one row each. This is the only table: `dtypes.ts` derives DTYPES from it, and the build generates the native
 * core's table from it. So this file contains literal data and imports nothing.
 *
 * Names are numpy's, and ml_dtypes' where numpy has no such type. Short names are those of LLVM's MLIR in lower case.
 * A short name is an alias as well; the last column holds further aliases, in lower case.
 *
 * Sources. Bits of floats: IEEE 754; the OCP 8-bit floating point specification (e4m3fn, e5m2); the ONNX notes on float8
 * float6 and float4 (FNUZ types, e8m0, e2m3, e3m2, e2m1); bfloat16 is the upper half of binary32. Codes: `onnx.proto`
 * (TensorProto.DataType), TFRT's `btf.h`, Tengine's `tm2_format.h`, numpy's array interface, `safetensors/src/tensor.rs`,
 * DLDataTypeCode in `dlpack.h` 1.1.
 */

// biome-ignore format: a table is read by its columns.
export const DTYPE_TABLE = [
  // name               bits  kind       mantissa bias specials short         ONNX  BTF tmfile numpy  safetensors   DLPack  aliases
  ['float32',            32, 'float',   [23,  127, 'ieee'],   'f32',           1,    4,    0, 'f4',  'F32',             2, ['fp32', 'float', 'single']],
  ['float64',            64, 'float',   [52, 1023, 'ieee'],   'f64',          11,    5, null, 'f8',  'F64',             2, ['fp64', 'double']],
  ['float16',            16, 'float',   [10,   15, 'ieee'],   'f16',          10, null,    1, 'f2',  'F16',             2, ['fp16', 'half']],
  ['bfloat16',           16, 'float',   [ 7,  127, 'ieee'],   'bf16',         16, null, null, null,  'BF16',            4, []],
  ['int8',                8, 'int',     null,                 'i8',            3,    0,    2, 'i1',  'I8',              0, []],
  ['int16',              16, 'int',     null,                 'i16',           5,    1,    5, 'i2',  'I16',             0, []],
  ['int32',              32, 'int',     null,                 'i32',           6,    2,    4, 'i4',  'I32',             0, []],
  ['int64',              64, 'int',     null,                 'i64',           7,    3, null, 'i8',  'I64',             0, []],
  ['uint8',               8, 'uint',    null,                 'u8',            2,    6,    3, 'u1',  'U8',              1, []],
  ['uint16',             16, 'uint',    null,                 'u16',           4,    7, null, 'u2',  'U16',             1, []],
  ['uint32',             32, 'uint',    null,                 'u32',          12,    8, null, 'u4',  'U32',             1, []],
  ['uint64',             64, 'uint',    null,                 'u64',          13,    9, null, 'u8',  'U64',             1, []],
  ['bool',                8, 'bool',    null,                 'bool',          9, null, null, 'b1',  'BOOL',            6, ['boolean']],
  ['complex64',          64, 'complex', [23,  127, 'ieee'],   'c64',          14, null, null, 'c8',  'C64',             5, []],
  ['complex128',        128, 'complex', [52, 1023, 'ieee'],   'c128',         15, null, null, 'c16', null,              5, []],
  ['string',              0, 'string',  null,                 'str',           8, null, null, null,  null,           null, []],
  ['float8_e4m3fn',       8, 'float',   [ 3,    7, 'fn'],     'f8e4m3fn',     17, null, null, null,  'F8_E4M3',        10, ['f8_e4m3fn', 'f8_e4m3', 'float8_e4m3', 'float8e4m3fn']],
  ['float8_e4m3fnuz',     8, 'float',   [ 3,    8, 'fnuz'],   'f8e4m3fnuz',   18, null, null, null,  'F8_E4M3FNUZ',    11, ['f8_e4m3fnuz', 'float8e4m3fnuz']],
  ['float8_e5m2',         8, 'float',   [ 2,   15, 'ieee'],   'f8e5m2',       19, null, null, null,  'F8_E5M2',        12, ['f8_e5m2', 'float8e5m2']],
  ['float8_e5m2fnuz',     8, 'float',   [ 2,   16, 'fnuz'],   'f8e5m2fnuz',   20, null, null, null,  'F8_E5M2FNUZ',    13, ['f8_e5m2fnuz', 'float8e5m2fnuz']],
  ['float8_e8m0fnu',      8, 'float',   [ 0,  127, 'scale'],  'f8e8m0fnu',    24, null, null, null,  'F8_E8M0',        14, ['f8_e8m0fnu', 'f8_e8m0', 'float8_e8m0', 'float8e8m0']],
  ['float6_e2m3fn',       6, 'float',   [ 3,    1, 'finite'], 'f6e2m3fn',     27, null, null, null,  'F6_E2M3',        15, ['f6_e2m3fn', 'f6_e2m3', 'float6_e2m3', 'float6e2m3']],
  ['float6_e3m2fn',       6, 'float',   [ 2,    3, 'finite'], 'f6e3m2fn',     28, null, null, null,  'F6_E3M2',        16, ['f6_e3m2fn', 'f6_e3m2', 'float6_e3m2', 'float6e3m2']],
  ['float4_e2m1fn',       4, 'float',   [ 1,    1, 'finite'], 'f4e2m1fn',     23, null, null, null,  'F4',             17, ['f4_e2m1fn', 'f4_e2m1', 'float4_e2m1', 'float4e2m1', 'f4']],
  ['int4',                4, 'int',     null,                 'i4',           22, null, null, null,  null,              0, []],
  ['uint4',               4, 'uint',    null,                 'u4',           21, null, null, null,  null,              1, []],
  ['int2',                2, 'int',     null,                 'i2',           26, null, null, null,  null,              0, []],
  ['uint2',               2, 'uint',    null,                 'u2',           25, null, null, null,  null,              1, []],
] as const
