/** tmfile to ONNX: what other folders import. */
export { type ConvertedToOnnx, tmfileToOnnx } from './convert.js'
export { type TmfileToOnnxOptions, TO_ONNX_OPTIONS } from './options.js'
export type { TmfileToOnnxReport } from './report.js'
