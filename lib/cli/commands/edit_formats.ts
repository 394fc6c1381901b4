/** Options of `tilework edit` that only one format supports: they are marked in the help and refused for the other format. */
import type { Command } from 'commander'
import { TileworkError } from '../../index.js'
import type { EditChoice } from './edit_choice.js'

/** Formats of models that `edit` changes. */
export type ModelFormat = 'onnx' | 'tmfile'

type Reasons = Readonly<Partial<Record<keyof EditChoice, string>>>

/** Why each option is of this format alone. */
const ONLY: Readonly<Record<ModelFormat, Reasons>> = {
  tmfile: {
    castWeights:
      'the nodes of an ONNX model fix the types of its weights; tilework compress --to fp16 changes both',
    quantize: 'an ONNX model needs other nodes for quantized weights',
    dequantize: 'an ONNX model has nodes that dequantize',
    insertNode: 'programs add nodes with graph.addNode',
    replaceNode: 'programs change nodes through graph.nodes',
    stripNames: 'names are the only links of an ONNX graph',
    write: 'an ONNX model keeps all bytes that no change affects',
  },
  onnx: {
    setType: 'every tensor of a tmfile has a type already; --set-input changes its shape',
    metadata: 'a tmfile has no metadata',
    opset: 'a tmfile has no opsets',
    optimize: 'its passes are for ONNX operators',
    channelsLast: 'it moves Transposes of ONNX graphs',
    narrowInts: 'a tmfile has no int64',
    allowPartial: 'edits of a tmfile change shapes even if nodes do not fit them, and list these nodes',
  },
}

/** Options that change more than values of constants. An OpenVINO IR takes none of them. */
const GRAPH_CHANGES = {
  from: true,
  to: true,
  outputs: true,
  removeNode: true,
  replaceNode: true,
  insertNode: true,
  fillWeights: true,
  dequantize: true,
  quantize: true,
  setInput: true,
  setBatch: true,
  allowPartial: true,
  rename: true,
  castWeights: true,
  mergeConstants: true,
  removeUnused: true,
  optimize: true,
  channelsLast: true,
  narrowInts: true,
  stripWeights: true,
  stripNames: true,
  setType: true,
  metadata: true,
  opset: true,
  write: true,
} as const satisfies Record<Exclude<keyof EditChoice, 'replaceConstant' | 'weights' | 'force'>, true>

/** @throws TileworkError ERR_UNSUPPORTED for an option that changes the graph of an OpenVINO IR */
export function refuseGraphChanges(choice: EditChoice): void {
  for (const key of Object.keys(GRAPH_CHANGES) as (keyof typeof GRAPH_CHANGES)[]) {
    const value = choice[key]
    if (value === undefined || value === DEFAULTS[key]) continue
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `${flagOf(key)} edits tmfiles and ONNX models only: of an OpenVINO IR --weights and --replace-constant change values.`,
    )
  }
}

/** The name of a format in the help, and in an error. */
const NAMES: Readonly<Record<ModelFormat, readonly [mark: string, models: string]>> = {
  tmfile: ['tmfile', 'tmfiles'],
  onnx: ['ONNX', 'ONNX models'],
}

const FORMATS = ['tmfile', 'onnx'] as const

/** Default values, which are equivalent to no option. */
const DEFAULTS: Readonly<Partial<Record<keyof EditChoice, string>>> = { write: 'exact' }

/** Adds "(tmfile only)" or "(ONNX only)" to the descriptions of options that only one format supports. */
export function markOptions({ options }: Command): void {
  for (const option of options) {
    const format = FORMATS.find((each) => Object.hasOwn(ONLY[each], option.attributeName()))
    if (format) option.description += ` (${NAMES[format][0]} only)`
  }
}

/** @throws TileworkError ERR_UNSUPPORTED for an option that models of this format do not support */
export function refuseOptionsOfOthers(choice: EditChoice, format: ModelFormat): void {
  for (const other of FORMATS.filter((each) => each !== format)) {
    for (const [key, reason] of Object.entries(ONLY[other])) {
      const value = choice[key as keyof EditChoice]
      if (value === undefined || value === DEFAULTS[key as keyof EditChoice]) continue
      throw new TileworkError('ERR_UNSUPPORTED', `${flagOf(key)} edits ${NAMES[other][1]} only: ${reason}.`)
    }
  }
}

function flagOf(key: string): string {
  return `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}
