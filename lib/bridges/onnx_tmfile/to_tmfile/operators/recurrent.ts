/** LSTM and GRU, of one direction. */
import type { TmfileTensor } from '../../../../models/tmfile/index.js'
import { Constant } from '../constant.js'
import { refuse } from '../refusal.js'
import { reshape, slice } from '../shaping.js'
import type { Converted, OperatorRow, Step } from '../step.js'

const zeros = (...shape: number[]): Constant => Constant.filled(shape, 0)

/** Refuses what both kernels lack. @param activations - the defaults of ONNX */
function checkForm(step: Step, activations: readonly string[]): void {
  if (step.text('direction', 'forward') !== 'forward') refuse(`direction ${step.text('direction', '')}`)
  if (step.number('layout', 0) !== 0) refuse('layout 1')
  if (step.view.attribute('clip')) refuse('clip')
  const given = step.view.attribute('activations')
  if (given && given.type !== 'STRINGS') refuse(`activations of type ${given.type}`)
  const names = (given?.value as readonly Uint8Array[] | undefined)?.map((name) =>
    Buffer.from(name).toString().toLowerCase(),
  )
  if (names && String(names) !== String(activations)) refuse(`activations ${names.join(', ')}`)
  const lengths = step.values(4, 'sequence_lens')
  if (lengths?.some((length) => length !== step.shape(0)[0])) refuse('sequence_lens')
}

/** An initial state, which the kernels ignore. */
function checkZero(step: Step, input: number, name: string): void {
  const state = step.values(input, name)
  if (state?.some((value) => value !== 0)) refuse(`${name} is not zero; the kernel ignores it`)
}

/** [steps, 1, batch, hidden], and the last step of it. */
function outputs(step: Step, made: TmfileTensor): readonly (TmfileTensor | undefined)[] {
  const steps = made.shape![0]!
  const last = step.isUsed(1) ? slice(step.b, made, 0, { start: steps - 1, count: 1, step: 1 }) : undefined
  const state = last && reshape(step.b, last, step.output(1))
  return [made, state && state === made ? reshape(step.b, made, step.output(1)) : state]
}

/** Parameters of both operators that have one value in every converted model. */
const COMMON = { output_len: 1, sequence_len: 1, input_size: 1, mxnet_flag: 0 }

function lstm(step: Step): Converted {
  checkForm(step, ['sigmoid', 'tanh', 'tanh'])
  if (step.number('input_forget', 0) !== 0) refuse('input_forget')
  if (step.has(7)) refuse('peepholes')
  if (step.isUsed(2)) refuse('the output Y_c is used')
  checkZero(step, 5, 'initial_h')
  checkZero(step, 6, 'initial_c')
  const x = step.tensor(0)
  const [weight, recurrence] = [step.required(1, 'W'), step.required(2, 'R')]
  const hidden = recurrence.shape[2]!
  const bias = step.has(3) ? step.required(3, 'B') : zeros(1, 8 * hidden)
  const state = zeros(1, x.shape![1]!, hidden)
  // With fewer inputs the kernel writes the last step alone.
  const inputs = [x, weight, recurrence, bias, state, zeros(1, x.shape![1]!, hidden)]
  const params = { ...COMMON, hidden_size: hidden, cell_size: hidden }
  return outputs(step, step.b.emit('LSTM', inputs, params, step.output(), { fixesBatch: true }))
}

function gru(step: Step): Converted {
  checkForm(step, ['sigmoid', 'tanh'])
  checkZero(step, 5, 'initial_h')
  const x = step.tensor(0)
  const isAfter = step.number('linear_before_reset', 0) !== 0
  if (!isAfter && x.shape![0] !== 1) refuse('linear_before_reset 0 with more than one step')
  const [weight, recurrence] = [step.required(1, 'W'), step.required(2, 'R')]
  const hidden = recurrence.shape[2]!
  const bias = step.has(3) ? step.required(3, 'B') : zeros(1, 6 * hidden)
  // The number of inputs selects where the reset gate is applied.
  const states = isAfter ? [zeros(1, x.shape![1]!, hidden)] : []
  const params = { ...COMMON, hidden_size: hidden }
  const made = step.b.emit('GRU', [x, weight, recurrence, bias, ...states], params, step.output(), {
    fixesBatch: true,
  })
  return outputs(step, made)
}

export const RECURRENT_ROWS: readonly OperatorRow[] = [
  {
    operator: 'LSTM',
    target: 'LSTM',
    note: 'forward, default activations, initial states of zeros; the last cell state must be unused',
    convert: lstm,
  },
  { operator: 'GRU', target: 'GRU', note: 'forward, linear_before_reset 1, or one step', convert: gru },
]
