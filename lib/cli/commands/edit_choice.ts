/** The changes that `tilework edit` can make. */

import type { Dimension, OptimizePass } from '../../onnx.js'
import type { WriteMode } from '../../tmfile.js'
import type { DeclaredType, InputShape, JsonObject, Named, NewName } from './edit_arguments.js'

/** The requested changes, by flag. */
export interface EditChoice {
  readonly from?: readonly string[]
  readonly to?: readonly string[]
  readonly outputs?: readonly string[]
  readonly removeNode?: readonly string[]
  readonly replaceNode?: readonly Named<JsonObject>[]
  readonly insertNode?: readonly JsonObject[]
  readonly replaceConstant?: readonly Named<string>[]
  readonly weights?: string
  readonly fillWeights?: string
  readonly dequantize?: readonly string[]
  readonly quantize?: readonly Named<JsonObject>[]
  readonly setInput?: readonly InputShape[]
  readonly setBatch?: readonly [Dimension]
  /** Of an ONNX model: nodes that do not fit the new shapes stay as they are. */
  readonly allowPartial?: boolean
  readonly rename?: readonly NewName[]
  readonly castWeights?: 'float32' | 'float16'
  readonly mergeConstants?: boolean
  readonly removeUnused?: boolean
  /** Passes of an ONNX model; true for those that run by default. */
  readonly optimize?: readonly OptimizePass[] | true
  /** int64 constants of an ONNX model become int32. */
  readonly channelsLast?: boolean
  readonly narrowInts?: boolean
  readonly stripWeights?: boolean
  readonly stripNames?: boolean
  /** Types of values of an ONNX model. */
  readonly setType?: readonly DeclaredType[]
  /** Of an ONNX model. */
  readonly metadata?: readonly Named<string>[]
  /** Versions of operator sets by domain, of an ONNX model. */
  readonly opset?: readonly Named<number>[]
  /** Replaces constants by others of any shape and element type. */
  readonly force?: boolean
  readonly write?: WriteMode
}
