/** ONNX to tmfile: what other folders import. */
export { type ConvertedToTmfile, onnxToTmfile } from './convert.js'
export type { OnnxToTmfileOptions } from './options.js'
export type { FusedNode, OnnxToTmfileReport, ReplacedNode } from './report.js'
