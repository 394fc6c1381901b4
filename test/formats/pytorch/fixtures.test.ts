/** Files that torch 2.14 wrote, with the values that torch loads from them, and files that it refuses. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { PytorchValue } from '../../../lib/formats.js'
import { type AnyTensor, check, type OpenFile, open } from '../../../lib/index.js'
import { hasThirdPartyFiles, THIRD_PARTY, thirdPartyPath } from '../../shared_fixtures.js'

interface ExpectedTensor {
  readonly name: string
  readonly kind: string
  readonly dtype: string
  readonly shape: readonly number[]
  readonly sha256?: string
  readonly requiresGrad?: boolean
  readonly storage?: number
  readonly scale?: number
  readonly zeroPoint?: number
  readonly scales?: readonly number[]
  readonly zeroPoints?: readonly number[]
  readonly axis?: number
  readonly nnz?: number
  readonly values?: string
  readonly indices?: string
  readonly valuesShape?: readonly number[]
  readonly parts?: readonly { readonly shape: readonly number[]; readonly sha256: string }[]
}

interface Expected {
  readonly files: Record<
    string,
    {
      readonly format: string
      readonly tensors: readonly ExpectedTensor[]
      readonly values?: readonly { readonly path: readonly (string | number)[]; readonly value: unknown }[]
    }
  >
  readonly refused: Record<string, { readonly refuse: string }>
}

const folder = (name: string) => thirdPartyPath(`pytorch/files/${name}`)
const expected: Expected = hasThirdPartyFiles
  ? JSON.parse(readFileSync(folder('expected.json'), 'utf8'))
  : { files: {}, refused: {} }

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

/** Types that tilework shows by another name: what they are here, and the axes that are added. */
const SHOWN: Record<string, [dtype: string, shape: (shape: readonly number[]) => number[]]> = {
  qint8: ['int8', (shape) => [...shape]],
  quint8: ['uint8', (shape) => [...shape]],
  qint32: ['int32', (shape) => [...shape]],
  complex32: ['uint16', (shape) => [...shape, 2]],
  float4_e2m1fn_x2: ['float4_e2m1fn', (shape) => [...shape.slice(0, -1), 2 * shape.at(-1)!]],
  bits8: ['uint8', (shape) => [...shape]],
  bits1x8: ['uint8', (shape) => [...shape]],
  bits2x4: ['uint8', (shape) => [...shape]],
  bits4x2: ['uint8', (shape) => [...shape]],
  bits16: ['uint16', (shape) => [...shape]],
  uint1: ['uint8', (shape) => [...shape]],
  uint7: ['uint8', (shape) => [...shape]],
  int4: ['int8', (shape) => [...shape]],
}

async function compare(tensor: AnyTensor | undefined, wanted: ExpectedTensor): Promise<void> {
  const [dtype, shapeOf] = SHOWN[wanted.dtype] ?? [wanted.dtype, (shape: readonly number[]) => [...shape]]
  expect(tensor, wanted.name).toBeDefined()
  expect([tensor!.dtype, tensor!.shape], wanted.name).toEqual([dtype, shapeOf(wanted.shape)])
  if (tensor!.kind === 'sparse') {
    expect(tensor!.entryCount).toBe(wanted.valuesShape!.reduce((product, extent) => product * extent, 1))
    expect(sha256(await tensor!.values()), wanted.name).toBe(wanted.values)
    return
  }
  if (tensor!.kind !== 'dense') throw new Error(wanted.name)
  if (wanted.kind === 'meta') {
    expect(tensor!.hasData).toBe(false)
    return
  }
  expect(sha256(await tensor!.bytes()), wanted.name).toBe(wanted.sha256)
  expect(tensor!.metadata.get('pytorch.requires_grad'), wanted.name).toBe(String(wanted.requiresGrad))
  if (wanted.kind !== 'quantized') return
  const { scale, zeroPoint, axis } = tensor!.quantization!
  expect([scale, zeroPoint, axis]).toEqual([
    wanted.scale ?? wanted.scales,
    wanted.zeroPoint ?? wanted.zeroPoints,
    wanted.axis,
  ])
}

async function plain(value: PytorchValue | undefined): Promise<unknown> {
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString('hex') }
  if (value instanceof Set) return { set: [...value].sort() }
  if (typeof value === 'bigint') return { int: String(value) }
  if (typeof value === 'number' && !Number.isFinite(value)) {
    return { float: Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf' }
  }
  if (value !== null && typeof value === 'object' && 'bytes' in value)
    return { storage: sha256(await value.bytes()) }
  return value
}

describe.skipIf(!hasThirdPartyFiles)('a checkpoint that torch wrote', THIRD_PARTY, () => {
  it.each(Object.keys(expected.files))('%s', async (name) => {
    const { format, tensors, values = [] } = expected.files[name]!
    const file = (await open(folder(name))) as Extract<OpenFile, { format: 'pytorch' }>
    expect(file.format).toBe('pytorch')
    expect(file.pytorch.container).toBe(format)
    let count = 0
    for (const wanted of tensors) {
      if (!wanted.parts) {
        await compare(file.tensors.get(wanted.name), wanted)
        count++
        continue
      }
      for (const [part, { shape, sha256: hash }] of wanted.parts.entries()) {
        const tensor = file.dense(`${wanted.name}.${part}`)
        expect(tensor.shape).toEqual(shape)
        expect(sha256(await tensor.bytes())).toBe(hash)
        count++
      }
    }
    expect(file.tensors.length).toBe(count)
    for (const { path, value } of values) {
      expect(await plain(file.pytorch.values.get(path.join('.'))), path.join('.')).toEqual(value)
    }
    expect(file.pytorch.values.size).toBe(values.length)
    expect((await check(folder(name))).filter(({ severity }) => severity === 'error')).toEqual([])
    file.close()
  })

  it.each(Object.keys(expected.refused))('%s is refused by name', async (name) => {
    const { refuse } = expected.refused[name]!
    await expect(open(folder(name))).rejects.toThrow(refuse)
    const findings = await check(folder(name))
    expect(findings.some(({ severity, message }) => severity === 'error' && message.includes(refuse))).toBe(
      true,
    )
  })
})
