/** Checkpoints as safetensors: tied tensors are stored once, views are copied, and nothing else changes. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { type AnyTensor, affine, convert, open, save, slice } from '../../../lib/index.js'
import { hasThirdPartyFiles, THIRD_PARTY, thirdPartyPath } from '../../shared_fixtures.js'

const folder = mkdtempSync(join(tmpdir(), 'tilework-'))
afterAll(() => rmSync(folder, { recursive: true }))

const fixture = (name: string) => thirdPartyPath(`pytorch/files/${name}`)

/** The metadata of a safetensors file, read without the library. */
function headerOf(path: string): Record<string, Record<string, string>> {
  const bytes = readFileSync(path)
  const length = Number(bytes.readBigUInt64LE())
  return JSON.parse(bytes.subarray(8, 8 + length).toString())
}

const bytesOf = async (tensor: AnyTensor | undefined) =>
  tensor?.kind === 'dense' ? tensor.bytes() : undefined

describe.skipIf(!hasThirdPartyFiles)('a checkpoint', THIRD_PARTY, () => {
  it('becomes safetensors with its tied tensors once', async () => {
    const target = join(folder, 'tied.safetensors')
    const source = await open(fixture('state_dict.pt'))
    expect(source.pytorch?.shared).toEqual([
      ['fc.weight', 'tied.weight'],
      ['fc.bias', 'tied.bias'],
    ])
    await convert(fixture('state_dict.pt'), target)
    const header = headerOf(target)
    expect(header.__metadata__).toEqual({
      format: 'pt',
      'tied.weight': 'fc.weight',
      'tied.bias': 'fc.bias',
    })
    const written = await open(target)
    const kept = [...source.tensors].filter(({ name }) => !name.startsWith('tied.'))
    expect([...written.tensors].map(({ name }) => name).sort()).toEqual(kept.map(({ name }) => name).sort())
    for (const tensor of kept)
      expect(await bytesOf(written.tensors.get(tensor.name))).toEqual(await bytesOf(tensor))
  })

  it('keeps views that are parts of a tensor as copies', async () => {
    const target = join(folder, 'views.safetensors')
    await convert(fixture('views.pt'), target)
    const source = await open(fixture('views.pt'))
    const written = await open(target)
    const aliases = headerOf(target).__metadata__!
    for (const tensor of source.tensors) {
      const kept = aliases[tensor.name] ?? tensor.name
      expect(await bytesOf(written.tensors.get(kept)), tensor.name).toEqual(await bytesOf(tensor))
    }
    expect(aliases.tied).toBe('w')
    expect(written.tensors.get('slice')).toBeDefined()
  })

  it('a tied tensor that was changed is no alias any more', async () => {
    const target = join(folder, 'changed.safetensors')
    const { tensors } = await open(fixture('state_dict.pt'))
    const changed = [...tensors].map((tensor) =>
      tensor.name === 'tied.weight' && tensor.kind === 'dense' ? affine(tensor, { scale: 2 }) : tensor,
    )
    await save(target, changed)
    const written = await open(target)
    const [one, other] = ['fc.weight', 'tied.weight'].map((name) => written.dense(name))
    const doubled = Float32Array.from((await one!.toTypedArray()) as Float32Array, (value) => 2 * value)
    expect(await other!.toTypedArray()).toEqual(doubled)
    expect(headerOf(target).__metadata__).not.toHaveProperty(['tied.weight'])
  })

  it('a tied tensor is stored where its first name is not', async () => {
    const target = join(folder, 'selected.safetensors')
    await convert(fixture('state_dict.pt'), target, { tensors: ['tied.weight', 'tied.bias'] })
    const written = await open(target)
    expect(written.tensors.length).toBe(2)
    const source = await open(fixture('state_dict.pt'))
    expect(await bytesOf(written.tensors.get('tied.weight'))).toEqual(
      await bytesOf(source.tensors.get('fc.weight')),
    )
  })

  it('converts its dtype with the ties', async () => {
    const target = join(folder, 'half.safetensors')
    const tensors = ['state_dict.fc.weight', 'state_dict.tied.weight', 'state_dict.bn.weight']
    await convert(fixture('checkpoint.ckpt'), target, { tensors, dtype: 'float16' })
    const written = await open(target)
    expect(new Set([...written.tensors].map(({ dtype }) => dtype)).has('float16')).toBe(true)
    expect(headerOf(target).__metadata__).toMatchObject({ 'state_dict.tied.weight': 'state_dict.fc.weight' })
  })

  it('is not written, and is copied byte for byte', async () => {
    const { tensors } = await open(fixture('list.pt'))
    await expect(save(join(folder, 'x.pt'), tensors)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
    const target = join(folder, 'copy.pt')
    await convert(fixture('list.pt'), target)
    expect(readFileSync(target)).toEqual(readFileSync(fixture('list.pt')))
  })

  it('gives every tensor to an npz, one copy per name', async () => {
    const target = join(folder, 'all.npz')
    await convert(fixture('state_dict.pt'), target)
    const [written, source] = [await open(target), await open(fixture('state_dict.pt'))]
    expect(written.tensors.length).toBe(source.tensors.length)
    for (const tensor of source.tensors) {
      expect(await bytesOf(written.tensors.get(tensor.name))).toEqual(await bytesOf(tensor))
    }
  })

  it('can be sliced like any tensor', async () => {
    const { tensors } = await open(fixture('views.pt'))
    const view = tensors.get('t')!
    const whole = (await (view as never as { toTypedArray(): Promise<Float32Array> }).toTypedArray())!
    const part = await slice(view, [[0, 1]]).toTypedArray()
    expect(part).toEqual(whole.subarray(0, part.length))
  })
})
