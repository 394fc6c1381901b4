/** IRs that openvino wrote, with the values that it reads, and files that attack a reader. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type AnyTensor, cast, check, type DenseTensor, open, TileworkError } from '../../../lib/index.js'
import { hasThirdPartyFiles, THIRD_PARTY, thirdPartyPath } from '../../shared_fixtures.js'

interface ExpectedTensor {
  readonly name: string
  readonly dtype: string
  readonly shape: readonly number[]
  readonly bytes: number
  /** Of the bytes in the file. */
  readonly sha256?: string
  /** Of the values as float32. */
  readonly float32?: string
  readonly strings?: readonly string[]
}

interface ExpectedPort {
  readonly names: readonly string[]
  readonly dtype: string
  readonly shape: string
}

interface ExpectedFile {
  readonly version: number
  readonly name: string
  readonly tensors: readonly ExpectedTensor[]
  readonly inputs: readonly ExpectedPort[]
  readonly outputs: readonly ExpectedPort[]
  readonly ops: number
}

const folder = (name: string) => thirdPartyPath(`openvino-ir/${name}`)
const load = (name: string) => (hasThirdPartyFiles ? JSON.parse(readFileSync(folder(name), 'utf8')) : {})
const files: Record<string, ExpectedFile> = load('files/expected.json').files ?? {}
const hostile: Record<string, { reject: boolean | null; reference: string }> = load('hostile.json')

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

/** Types whose bytes are recoded when they are read. */
const RECODED = ['u1', 'u3', 'u6', 'nf4']

/** The values as float32, with one NaN for all. */
async function float32Digest(tensor: DenseTensor): Promise<string> {
  const values = Float32Array.from(
    tensor.dtype === 'float32' ? await tensor.toTypedArray() : await cast(tensor, 'float32').toTypedArray(),
    Number,
  )
  for (const [index, value] of values.entries()) if (Number.isNaN(value)) values[index] = Number.NaN
  return sha256(new Uint8Array(values.buffer))
}

async function compare(tensor: AnyTensor, wanted: ExpectedTensor): Promise<void> {
  expect(tensor.shape, wanted.name).toEqual(wanted.shape)
  if (tensor.kind === 'string') {
    expect(await tensor.strings()).toEqual(wanted.strings)
    return
  }
  if (tensor.kind !== 'dense') throw new Error(wanted.name)
  expect(tensor.metadata.get('openvino.type')).toBe(RECODED.includes(wanted.dtype) ? wanted.dtype : undefined)
  if (!RECODED.includes(wanted.dtype)) expect(sha256(await tensor.bytes()), wanted.name).toBe(wanted.sha256)
  if (wanted.float32) expect(await float32Digest(tensor), wanted.name).toBe(wanted.float32)
}

const portOf = ({ names, dtype, shape }: ExpectedPort) => [[...names].sort(), dtype, shape]

describe.skipIf(!hasThirdPartyFiles)('an OpenVINO IR', THIRD_PARTY, () => {
  it.each(Object.keys(files))('%s', async (name) => {
    const wanted = files[name]!
    const file = await open(folder(`files/${name}`))
    const { openvino: model } = file
    expect([file.format, model?.version, model?.name, model?.layerCount]).toEqual([
      ...['openvino', wanted.version, wanted.name, wanted.ops],
    ])
    expect(Array.from(file.tensors, (tensor) => tensor.name).sort()).toEqual(
      wanted.tensors.map((tensor) => tensor.name).sort(),
    )
    for (const tensor of wanted.tensors) await compare(file.tensors.get(tensor.name)!, tensor)
    expect(
      model!.inputs.map(({ tensorNames, type, shape }) => [[...tensorNames].sort(), type, `[${shape}]`]),
    ).toEqual(wanted.inputs.map(portOf))
    // A port says -1 for a range of sizes; the reference infers the range again.
    expect(model!.outputs.map(({ tensorNames, type }) => [[...tensorNames].sort(), type])).toEqual(
      wanted.outputs.map((port) => portOf(port).slice(0, 2)),
    )
    expect(await check(folder(`files/${name}`), { level: 'strict' })).toEqual([])
    file.close()
  })
})

describe.skipIf(!hasThirdPartyFiles)('hostile IRs', THIRD_PARTY, () => {
  it.each(Object.entries(hostile))('%s', async (name, { reject }) => {
    const path = folder(`hostile/${name}`)
    let refusal: unknown
    try {
      const file = await open(path)
      for (const tensor of file.tensors) {
        if (tensor.kind === 'dense') await tensor.bytes()
        else if (tensor.kind === 'string') await tensor.strings()
      }
      file.close()
    } catch (error) {
      refusal = error
    }
    if (refusal !== undefined) expect(refusal).toBeInstanceOf(TileworkError)
    if (reject !== null) expect(refusal !== undefined, String(refusal)).toBe(reject)
    const isBad = (await check(path).catch(() => [{ severity: 'error' }])).some(
      ({ severity }) => severity === 'error',
    )
    expect(isBad).toBe(refusal !== undefined)
  })
})
