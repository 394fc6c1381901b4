/** Converts the graph of a model to another model format, where there is a bridge between the formats. */

import type { TmfileToOnnxReport } from '../bridges/onnx_tmfile/to_onnx/index.js'
import type { OnnxToTmfileReport } from '../bridges/onnx_tmfile/to_tmfile/index.js'
import { resolveDtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import type { OnnxModel } from '../models/onnx/index.js'
import type { TmfileModel } from '../models/tmfile/index.js'
import type { TensorChanges } from './change_tensors.js'
import type { OpenFile } from './open.js'
import type { FormatName } from './registry.js'

/** Options of a graph that becomes one of another format. */
export interface GraphOptions {
  /** Shapes of inputs by name, where the file leaves them open; see `onnxToTmfile` and `tmfileToOnnx`. */
  readonly inputShapes?: Readonly<Record<string, readonly number[]>>
  /** First extent of every input; for an ONNX model also the name of a dimension that is set later. */
  readonly batch?: number | string
  /** How a quantized model is written; see `onnxToTmfile` and `tmfileToOnnx`. */
  readonly quantized?: 'keep' | 'dequantize'
}

/** The options of `convert` that concern graphs. */
type Options = GraphOptions & TensorChanges & { readonly quantizeTo?: unknown }

export interface ConvertedGraph {
  readonly model: OnnxModel | TmfileModel
  readonly report: OnnxToTmfileReport | TmfileToOnnxReport
}

type Bridge = (file: OpenFile, options: Options) => Promise<ConvertedGraph>

/** Bridges by source and target format. */
const BRIDGES: Readonly<
  Record<string, { readonly nodesOf: (file: OpenFile) => number; readonly convert: Bridge }>
> = {
  'onnx tmfile': {
    nodesOf: ({ onnx }) => onnx?.graph.nodes.length ?? 0,
    convert: async ({ onnx }, options) => {
      const { onnxToTmfile } = await import('../bridges/onnx_tmfile/to_tmfile/index.js')
      // The bridge refuses a batch that is not a number.
      const batch = options.batch as number | undefined
      return onnxToTmfile(onnx!, { ...graphOptions(options), ...(batch !== undefined && { batch }) })
    },
  },
  'tmfile onnx': {
    nodesOf: ({ tmfile }) => tmfile?.graph.nodes.filter(({ operator }) => operator !== 'Const').length ?? 0,
    convert: async ({ tmfile }, options) => {
      const { tmfileToOnnx } = await import('../bridges/onnx_tmfile/to_onnx/index.js')
      const { batch } = options
      return tmfileToOnnx(tmfile!, { ...graphOptions(options), ...(batch !== undefined && { batch }) })
    },
  },
}

function graphOptions(options: Options) {
  const { inputShapes, quantized } = options
  const weights = weightsOf(options)
  return { ...(inputShapes && { inputShapes }), ...(quantized && { quantized }), ...(weights && { weights }) }
}

function weightsOf({ dtype }: Options): 'float32' | 'float16' | undefined {
  const weights = dtype === undefined ? undefined : resolveDtype(dtype)
  if (weights === undefined || weights === 'float32' || weights === 'float16') return weights
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    `the weights of the graph can be cast to float32 or float16, not ${weights}.`,
  )
}

/** @throws TileworkError ERR_ARGUMENT for graph options where no graph is converted to another format */
export function refuseGraphOptions(options: GraphOptions): void {
  const given = (['inputShapes', 'batch', 'quantized'] as const).find((name) => options[name] !== undefined)
  if (given === undefined) return
  throw new TileworkError(
    'ERR_ARGUMENT',
    `${given} applies only to conversions of a graph to another format, between ONNX and tmfile.`,
  )
}

/** Whether the graph of a file is converted to the format: it has nodes, and there is a bridge. */
export function hasBridge(file: OpenFile, format: string): boolean {
  return (BRIDGES[`${file.format} ${format}`]?.nodesOf(file) ?? 0) > 0
}

/** @throws TileworkError ERR_UNSUPPORTED for nodes without a counterpart, and for options that change tensors */
export async function convertGraph(
  file: OpenFile,
  format: FormatName,
  options: Options,
): Promise<ConvertedGraph> {
  const other = (['layout', 'fromLayout', 'quantize', 'quantizeTo', 'device'] as const).find(
    (name) => options[name] !== undefined,
  )
  if (other !== undefined) {
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `${other} changes tensors, which would no longer fit the graph. Write the weights alone by the option weightsOnly, or select tensors with the option tensors.`,
    )
  }
  return BRIDGES[`${file.format} ${format}`]!.convert(file, options)
}
