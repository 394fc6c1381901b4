/** Element types that attributes name by their codes. */
import { DTYPES } from '../../../../dtype/dtypes.js'
import { DTYPE_OF_CODE } from '../../../../formats/onnx/schema.js'
import type { NodeView } from '../../infer/node_view.js'
import type { ExtentRule } from './rule.js'

function codeProblem(node: NodeView, name: string): string | undefined {
  const code = node.int(name)
  return code === undefined || DTYPE_OF_CODE.has(code)
    ? undefined
    : `has ${code} for ${name}, which is the code of no element type`
}

const codeRule =
  (name: string): ExtentRule =>
  (node) =>
    codeProblem(node, name)

/** Only the mean and the deviation have the type. */
const stashType: ExtentRule = (node) =>
  node.outputs.length > 1 ? codeProblem(node, 'stash_type') : undefined

const bitCast: ExtentRule = (node) => {
  const wrong = codeProblem(node, 'to')
  const [from, to] = [node.dtype(0), DTYPE_OF_CODE.get(node.int('to', 0))]
  if (wrong !== undefined || typeof from !== 'string' || !to) return wrong
  const [one, other] = [DTYPES[from].bits, DTYPES[to].bits]
  return one === other ? undefined : `casts ${one} bits to ${other} bits`
}

export const TYPE_RULES: Readonly<Record<string, ExtentRule>> = {
  Bernoulli: codeRule('dtype'),
  BitCast: bitCast,
  BlackmanWindow: codeRule('output_datatype'),
  Cast: codeRule('to'),
  EyeLike: codeRule('dtype'),
  HammingWindow: codeRule('output_datatype'),
  HannWindow: codeRule('output_datatype'),
  LayerNormalization: stashType,
  MelWeightMatrix: codeRule('output_datatype'),
  Multinomial: codeRule('dtype'),
  RandomNormal: codeRule('dtype'),
  RandomNormalLike: codeRule('dtype'),
  RandomUniform: codeRule('dtype'),
  RandomUniformLike: codeRule('dtype'),
}
