/** Files that the TFLite package wrote, with the values of its interpreter, and files that attack a reader. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type AnyTensor, check, convert, dequantize, open, TileworkError } from '../../../lib/index.js'
import { hasThirdPartyFiles, THIRD_PARTY, thirdPartyPath } from '../../shared_fixtures.js'

interface ExpectedTensor {
  readonly name: string
  readonly subgraph: number
  readonly dtype: string
  readonly shape: readonly number[]
  readonly hasData: boolean
  readonly signature: readonly number[] | null
  readonly sha256?: string
  /** Of the dense form of a sparse tensor. */
  readonly dense?: string
  readonly strings?: readonly string[]
  readonly codes?: readonly number[]
  readonly scale?: readonly number[]
  readonly zeroPoint?: readonly number[]
  readonly axis?: number
}

const folder = (name: string) => thirdPartyPath(`tflite/${name}`)
const load = (name: string) => (hasThirdPartyFiles ? JSON.parse(readFileSync(folder(name), 'utf8')) : {})
const files: Record<string, { tensors: ExpectedTensor[]; description: string; subgraphs: string[] }> =
  load('files/expected.json').files ?? {}
const hostile: Record<string, { reject: boolean | null; reference: string }> = load('hostile/hostile.json')

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

async function compare(tensor: AnyTensor, wanted: ExpectedTensor): Promise<void> {
  expect(tensor.shape).toEqual(wanted.shape)
  expect(tensor.dtype).toBe(wanted.dtype.toLowerCase())
  if (tensor.kind === 'string') {
    expect(await tensor.strings()).toEqual(wanted.strings)
    return
  }
  if (tensor.kind !== 'dense') throw new Error(wanted.name)
  expect(sha256(await tensor.bytes()), wanted.name).toBe(wanted.dense ?? wanted.sha256)
  if (wanted.codes) expect([...(await tensor.toTypedArray())].map(Number), wanted.name).toEqual(wanted.codes)
  if (!wanted.scale || wanted.scale.length === 0) return
  const { scale, zeroPoint, axis } = tensor.quantization!
  const [scales, zeroPoints] = [scale, zeroPoint].map((value) =>
    typeof value === 'number' ? [value] : value,
  )
  expect([scales, zeroPoints]).toEqual([wanted.scale, wanted.zeroPoint])
  if (wanted.scale.length > 1) expect(axis).toBe(wanted.axis)
  expect(dequantize(tensor, tensor.quantization!).dtype).toBe('float32')
}

describe.skipIf(!hasThirdPartyFiles)('a TFLite file', THIRD_PARTY, () => {
  it.each(Object.keys(files))('%s', async (name) => {
    const { tensors, description, subgraphs } = files[name]!
    const file = await open(folder(`files/${name}`))
    expect([file.format, file.tflite?.description]).toEqual(['tflite', description])
    expect(file.tflite?.subgraphs.map((subgraph) => subgraph.name)).toEqual(subgraphs)
    const listed = file.tflite!.subgraphs.flatMap((subgraph) => subgraph.tensors)
    expect(
      listed.map((tensor) => [tensor.name, tensor.type, tensor.shape, tensor.key !== undefined]),
    ).toEqual(tensors.map((tensor) => [tensor.name, tensor.dtype, tensor.shape, tensor.hasData]))
    for (const [index, { key }] of listed.entries()) {
      if (key !== undefined) await compare(file.tensors.get(key)!, tensors[index]!)
    }
    expect(file.tensors.length).toBe(tensors.filter(({ hasData }) => hasData).length)
    expect(await check(folder(`files/${name}`))).toEqual([])
    file.close()
  })

  it('becomes safetensors', async () => {
    const target = join(tmpdir(), `tilework-${process.pid}.safetensors`)
    await convert(folder('files/subgraphs.tflite'), target)
    const [written, source] = [await open(target), await open(folder('files/subgraphs.tflite'))]
    expect([...written.tensors].map(({ name }) => name).sort()).toEqual(['a', 'second/a', 'second/b'])
    for (const tensor of source.tensors) {
      if (tensor.kind === 'dense')
        expect(await written.dense(tensor.name).bytes()).toEqual(await tensor.bytes())
    }
  })
})

describe.skipIf(!hasThirdPartyFiles)('hostile TFLite files', THIRD_PARTY, () => {
  it.each(Object.entries(hostile))('%s', async (name, { reject }) => {
    const path = folder(`hostile/${name}`)
    let refusal: unknown
    try {
      const file = await open(path)
      for (const tensor of file.tensors) {
        if (tensor.kind === 'dense') await tensor.bytes()
        else if (tensor.kind === 'string')
          await tensor.strings().catch((error) => expect(error.code).toBe('ERR_DTYPE'))
      }
      file.close()
    } catch (error) {
      refusal = error
    }
    if (refusal !== undefined) expect(refusal).toBeInstanceOf(TileworkError)
    if (reject) expect(refusal).toBeDefined()
    const isBad = (await check(path)).some(({ severity }) => severity === 'error')
    expect(isBad).toBe(refusal !== undefined)
  })
})
