/** Pad in its three modes, and the paddings with zeros that a convolution takes over. */
import type { TmfileTensor } from '../../../../models/tmfile/index.js'
import { positions } from '../engine_limits.js'
import { refuse } from '../refusal.js'
import { gather, type Padding, padConstant, reshape, slice } from '../shaping.js'
import type { OperatorRow, Step } from '../step.js'

interface PadSource extends Padding {
  readonly tensor: TmfileTensor
}

/** Tensors that a Pad with zeros gave, and what they are made of. */
const ZERO_PADDED = new WeakMap<TmfileTensor, PadSource>()

/** What a convolution computes from: the tensor behind a Pad of spatial axes with zeros, and that padding. */
export function takePadding(
  step: Step,
  tensor: TmfileTensor,
  rank: number,
): { tensor: TmfileTensor; padding?: Padding } {
  const source = ZERO_PADDED.get(tensor)
  const isSpatial =
    source?.before.length === rank && [0, 1].every((axis) => !source.before[axis] && !source.after[axis])
  if (!source || !isSpatial || step.text('auto_pad', 'NOTSET') !== 'NOTSET') return { tensor }
  return { tensor: source.tensor, padding: source }
}

interface PadArguments extends Padding {
  readonly value: number
}

function padArguments(step: Step): PadArguments {
  const rank = step.shape(0).length
  const { opset } = step
  const isOld = opset < 11
  const pads = isOld ? (step.numbers('pads') ?? step.numbers('paddings')) : step.values(1, 'the padding')
  if (!pads) refuse('pads are missing')
  const value = isOld ? step.number('value', 0) : (step.values(2, 'the value')?.[0] ?? 0)
  const axes = (opset < 18 ? undefined : step.values(3, 'the list of axes'))?.map((axis) =>
    step.axisOf(axis, rank),
  )
  const used = axes ?? Array.from({ length: rank }, (_, axis) => axis)
  if (pads.length !== 2 * used.length) refuse(`pads has ${pads.length} entries for ${used.length} axes`)
  const [before, after] = [Array<number>(rank).fill(0), Array<number>(rank).fill(0)]
  for (const [at, axis] of used.entries()) {
    before[axis] = pads[at]!
    after[axis] = pads[at + used.length]!
  }
  return { before, after, value }
}

/** Removes what negative pads cut off. */
function cropped(
  step: Step,
  { before, after, value }: PadArguments,
): { tensor: TmfileTensor; rest: PadArguments } {
  let tensor = step.tensor(0)
  for (const [axis, extent] of step.shape(0).entries()) {
    const start = Math.max(0, -before[axis]!)
    const count = extent - start - Math.max(0, -after[axis]!)
    tensor = slice(step.b, tensor, axis, { start, count, step: 1 })
  }
  const positive = (counts: readonly number[]): number[] => counts.map((count) => Math.max(0, count))
  return { tensor, rest: { before: positive(before), after: positive(after), value } }
}

function pad(step: Step): TmfileTensor {
  const { tensor, rest } = cropped(step, padArguments(step))
  const { before, after, value } = rest
  const mode = step.text('mode', 'constant')
  if (mode === 'constant') {
    const made = padConstant(step.b, tensor, rest, value)
    if (value === 0 && made !== tensor) ZERO_PADDED.set(made, { tensor, before, after })
    return made
  }
  const isPlane =
    tensor.shape!.length === 4 && [0, 1].every((axis) => before[axis] === 0 && after[axis] === 0)
  if (mode === 'reflect' && isPlane && before[3] === after[3]) {
    const params = { pad_h_0: before[2]!, pad_h_1: after[2]!, pad_w_0: before[3]!, pad_w_1: after[3]! }
    return step.b.emit('Pad', [tensor], { ...params, mode: 2 }, step.output())
  }
  const position = POSITIONS[mode] ?? refuse(`mode ${mode}`)
  let made = tensor
  for (const [axis, extent] of tensor.shape!.entries()) {
    const count = before[axis]! + extent + after[axis]!
    if (count === extent) continue
    const indices = positions(count, (at) => position(at - before[axis]!, extent))
    made = gather(step.b, made, axis, indices)
  }
  return reshape(step.b, made, step.output())
}

/** The element that stands at a position outside of an axis. */
const POSITIONS: Readonly<Record<string, (at: number, extent: number) => number>> = {
  edge: (at, extent) => Math.min(Math.max(at, 0), extent - 1),
  reflect: (at, extent) => {
    if (extent === 1) return 0
    const period = 2 * (extent - 1)
    const inside = ((at % period) + period) % period
    return Math.min(inside, period - inside)
  },
  wrap: (at, extent) => ((at % extent) + extent) % extent,
}

export const PAD_ROWS: readonly OperatorRow[] = [
  {
    operator: 'Pad',
    target: 'Pad, Concat or Gather',
    note: 'constant pads; constant, reflect, edge and wrap; the kernel pads a plane with equal columns left and right, other paddings are joined',
    convert: pad,
  },
]
