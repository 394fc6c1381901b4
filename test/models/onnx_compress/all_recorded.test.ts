/**
 * Every quantized tensor that the tools recorded, counted: codes, scales and zero points of each weight and bias in every
 * variant, and scales and zero points of activations with given ranges, bit for bit.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  type Node,
  type OnnxModel,
  type QuantizeDynamicOptions,
  type QuantizeStaticOptions,
  type QuantizeWeightsOptions,
  quantizeDynamic,
  quantizeStatic,
  quantizeWeights,
  toFloat16,
} from '../../../lib/onnx.js'
import {
  CASES,
  initializersOf,
  recorded,
  recordedPath,
  recordedRanges,
  recordedTypes,
  type StoredValue,
} from './recorded.js'

/** What the recording program compares in `check_formulas.py`, and the biases of QLinearConv and QGemm, which it leaves out. */
const RECORDED_TENSORS = 999 + 3

const BLOCKS: Readonly<Record<string, QuantizeWeightsOptions>> = {
  gather: { gather: true },
  qdq: { format: 'qdq' },
  nf4: { format: 'bnb4' },
  fp4: { format: 'bnb4', bnb4: 'fp4' },
  level4: { accuracyLevel: 4 },
}

describe('recorded tensors', () => {
  it(`are equal bit for bit, all ${RECORDED_TENSORS}`, async () => {
    let compared = 0
    for (const name of CASES) {
      const variants = readdirSync(dirname(recordedPath(name, 'before')))
        .filter((file) => /^(q|dyn|bnb4).*\.onnx$/.test(file))
        .map((file) => file.slice(0, -5))
      for (const variant of variants) compared += await compare(name, variant)
    }
    console.log(`${compared} recorded tensors compared, all equal`)
    expect(compared).toBe(RECORDED_TENSORS)
  })
})

/** @returns number of tensors that were compared */
async function compare(name: string, variant: string): Promise<number> {
  const expected = await recorded(name, variant)
  const made = await recorded(name)
  await compress(made, name, variant, expected)
  const [found, wanted] = [await initializersOf(made.graph), await initializersOf(expected.graph)]
  let count = 0
  for (const [key, part] of quantizedOf(expected, variant, wanted, name)) {
    const bytes = (value: StoredValue | undefined): Uint8Array | undefined =>
      value && withoutPadding(value, part)
    expect(bytes(found.get(key)), `${name} ${variant} ${key}`).toEqual(bytes(wanted.get(key)))
    count++
  }
  return count
}

async function compress(model: OnnxModel, name: string, variant: string, expected: OnnxModel): Promise<void> {
  if (variant.startsWith('dyn-')) {
    await quantizeDynamic(model, dynamicOptions(variant))
  } else if (/^q(dq|op)-/.test(variant)) {
    const ranges = variant.endsWith('percentile') ? await recordedRanges(expected) : rangesFile(name)!
    await quantizeStatic(model, { ...staticOptions(variant), ranges })
  } else {
    await quantizeWeights(model, weightOptions(variant, expected))
    if (variant === 'q4f16') await toFloat16(model)
  }
}

function dynamicOptions(variant: string): QuantizeDynamicOptions {
  return {
    weightType: variant.includes('uint8') ? 'uint8' : 'int8',
    perChannel: /perchannel|reduced/.test(variant),
    reduceRange: variant.endsWith('reduced'),
    subgraphs: variant.endsWith('-sub'),
  }
}

function staticOptions(variant: string): Omit<QuantizeStaticOptions, 'ranges'> {
  return { ...recordedTypes(variant), perChannel: variant.endsWith('perchannel') }
}

/** Some cases were made with a smaller block; the tool leaves the head that is tied to the table. */
function weightOptions(variant: string, expected: OnnxModel): QuantizeWeightsOptions {
  const nodes = [...expected.graph.allNodes()]
  const blockSize = nodes
    .map((node) => node.attribute('block_size')?.value)
    .find((size) => size !== undefined)
  const [, bits = '4'] = /^q(\d)/.exec(variant) ?? []
  const exclude = nodes.filter(({ opType }) => opType === 'MatMul').map((node) => node.name)
  const kind = Object.keys(BLOCKS).find((part) => variant.includes(part))
  return {
    bits: Number(bits) as 2 | 4 | 8,
    symmetric: !variant.includes('asym'),
    blockSize: Number(blockSize),
    nodes: { exclude },
    ...(kind !== undefined && BLOCKS[kind]),
  }
}

function rangesFile(name: string): Record<string, { min: number; max: number }> | undefined {
  const path = join(dirname(recordedPath(name, 'before')), 'ranges.json')
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined
}

/** The recorded tensors that quantization made, with the node that takes the codes. */
function* quantizedOf(
  expected: OnnxModel,
  variant: string,
  wanted: ReadonlyMap<string, StoredValue>,
  name: string,
): Generator<[string, Node | undefined]> {
  const users = new Map<string, Node>()
  for (const node of expected.graph.allNodes())
    for (const input of node.inputs) if (!users.has(input)) users.set(input, node)
  const ranges = variant === 'qdq-u8s8' ? (rangesFile(name) ?? {}) : {}
  for (const [key, { dtype }] of wanted) {
    const user = users.get(key)
    if (!user) continue
    const [, base = ''] = /^(.*)_(?:quantized|Q\d|DQ_Q4|Bnb4)$/.exec(key) ?? []
    if (base === '') continue
    if (user.opType === 'DynamicQuantizeLSTM') continue
    yield [key, user]
    if (dtype === 'int32') continue
    for (const suffix of [
      '_scale',
      '_zero_point',
      '_scales',
      '_zero_points',
      '_DQ_scales',
      '_DQ_zero_points',
      '_absmax',
    ]) {
      // A scale of float16 is that of float32, rounded; check_formulas.py leaves it out.
      if (wanted.has(base + suffix) && wanted.get(base + suffix)!.dtype !== 'float16')
        yield [base + suffix, undefined]
    }
  }
  for (const value of Object.keys(ranges)) {
    for (const suffix of ['_scale', '_zero_point'])
      if (wanted.has(value + suffix) && !wanted.has(`${value}_quantized`)) yield [value + suffix, undefined]
  }
}

/** Codes beyond K have any value: the tools leave what was there, tilework writes 0. */
function withoutPadding(value: StoredValue, user: Node | undefined): Uint8Array {
  if (user?.opType !== 'MatMulNBits') return value.bytes
  const number = (name: string): number => Number(user.attribute(name)!.value)
  const [k, bits, rowBytes] = [number('K'), number('bits'), value.bytes.length / number('N')]
  return value.bytes.map((byte, at) => {
    const used = Math.min(8, Math.max(0, k * bits - (at % rowBytes) * 8))
    return byte & (2 ** used - 1)
  })
}
