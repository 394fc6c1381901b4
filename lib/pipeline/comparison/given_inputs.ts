/** The values that a caller gives for inputs of the models, by name. */
import { readInput } from '../../caller_input.js'
import { TileworkError } from '../../errors.js'
import { asTensor, type TensorLike } from '../../tensor/adapters.js'
import { checkTensor } from '../../tensor/check_tensor.js'
import type { AnyTensor } from '../../tensor/tensor.js'
import { valueText } from '../../value_text.js'

/**
 * @param inputs - tensors with the names of the inputs, or an object with a value for each name
 * @throws TileworkError ERR_ARGUMENT for anything else: values that are not used would be taken for a proof
 */
export function givenInputs(inputs: unknown): Map<string, AnyTensor> {
  return readInput('inputs', () => {
    if (typeof inputs !== 'object' || inputs === null || ArrayBuffer.isView(inputs)) refuse(inputs)
    if (Symbol.iterator in inputs) return new Map(Array.from(inputs as Iterable<unknown>, namedTensor))
    // A text is a field of one tensor, of this library or another; an input of a model may have such a name.
    const { kind, dtype, type } = inputs as Record<string, unknown>
    if ([kind, dtype, type].some((field) => typeof field === 'string')) refuse(inputs)
    return new Map(Object.entries(inputs).map(([name, value]) => [name, tensorOf(name, value)]))
  })
}

function namedTensor(value: unknown): [string, AnyTensor] {
  const given = checkTensor(value, 'inputs', 'or blocks')
  if (given.name !== '') return [given.name, given]
  throw new TileworkError(
    'ERR_ARGUMENT',
    'inputs has a tensor without a name; give { name of the input: tensor }.',
  )
}

function tensorOf(name: string, value: unknown): AnyTensor {
  if (typeof value === 'object' && value !== null && 'kind' in value)
    return checkTensor(value, 'inputs', 'or blocks')
  try {
    return asTensor(value as TensorLike)
  } catch (cause) {
    if (!(cause instanceof TileworkError)) throw cause
    throw new TileworkError('ERR_ARGUMENT', `inputs, ${valueText(name)}: ${cause.message}`, { cause })
  }
}

function refuse(inputs: unknown): never {
  throw new TileworkError(
    'ERR_ARGUMENT',
    `inputs is ${valueText(inputs)}; it must be { name of an input: tensor }, or a list of tensors with such names.`,
  )
}
