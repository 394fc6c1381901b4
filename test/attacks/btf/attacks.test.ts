import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import { btf } from '../../../lib/formats/btf/index.js'
import { MAX_FINDINGS } from '../../../lib/formats/report.js'
import type { SparseTensor, Tensor } from '../../../lib/tensor/tensor.js'
import { btfFile, denseRecord, readOptions } from '../../formats/btf/btf_bytes.js'
import { codeOf } from '../refusal.js'
import { ATTACKS, hugeSparseFile } from './attacks.js'

/** Uses everything that a tensor offers. */
async function useTensor(tensor: Tensor): Promise<void> {
  if (tensor.kind === 'dense') await tensor.toTypedArray()
  if (tensor.kind === 'sparse') await tensor.toDense({ maxBytes: 1 << 20 })
}

async function walkEntries(tensor: SparseTensor): Promise<void> {
  for await (const { index } of tensor.entries()) expect(index.length).toBe(tensor.shape.length)
}

describe.each(['lenient', 'strict'] as const)('%s', (level) => {
  it.each(ATTACKS)('$name (rule $rule): $reason', async (attack) => {
    const expected = attack[level]
    const bytes = attack.bytes()
    const source = new MemorySource(bytes)
    const code = await codeOf(() => btf.read(source, readOptions(level)))
    expect(code).toBe(attack.at === 'read' ? expected : null)
    const findings = await btf.check(source, readOptions(level))
    const errors = findings.filter(({ severity }) => severity === 'error')
    if (expected === null) {
      expect(errors).toEqual([])
      // Lenient must report what it accepts.
      if (level === 'lenient') expect(findings.length).toBeGreaterThan(0)
    } else {
      expect(errors.map((finding) => finding.code)).toContain(expected)
    }
    for (const { message, offset } of findings) {
      expect(message).toMatch(/\.$/)
      expect(offset).toBeGreaterThanOrEqual(0)
      expect(offset).toBeLessThanOrEqual(bytes.length)
    }
  })
})

describe('faults in payload, which an open does not read', () => {
  const lateAttacks = ATTACKS.filter(({ at, rule }) => at === 'check' && (rule === 12 || rule === 13))

  it.each(lateAttacks)('$name is detected when the tensor is used', async (attack) => {
    for (const level of ['lenient', 'strict'] as const) {
      const { tensors } = await btf.read(new MemorySource(attack.bytes()), readOptions(level))
      const tensor = tensors.at(0) as SparseTensor
      expect(await codeOf(() => useTensor(tensor))).toBe(attack[level])
      expect(await codeOf(() => tensor.indices())).toBe(attack[level])
      expect(await codeOf(() => walkEntries(tensor))).toBe(attack[level])
    }
  })

  it('the last of several entries at one index wins', async () => {
    const attack = ATTACKS.find(({ name }) => name === 'coo-duplicate')!
    const { tensors } = await btf.read(new MemorySource(attack.bytes()), readOptions('lenient'))
    const dense = await (tensors.at(0) as SparseTensor).toDense({ maxBytes: 24 })
    expect(await dense.toTypedArray()).toEqual(Float32Array.of(0, 2, 0, 0, 0, 0))
  })
})

it('rule 16: toDense refuses more bytes than the caller allows', async () => {
  const { tensors } = await btf.read(new MemorySource(hugeSparseFile()), readOptions('strict'))
  const tensor = tensors.at(0) as SparseTensor
  await expect(tensor.toDense({ maxBytes: 2 ** 30 })).rejects.toMatchObject({
    code: 'ERR_LIMIT',
    message: expect.stringContaining(String(2n ** 60n)),
  })
  await expect(tensor.toDense({ maxBytes: Number.NaN })).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
})

it('rule 17: 64-bit elements are big integers and large numbers keep every digit in messages', async () => {
  const bytes = btfFile(denseRecord({ dims: [2n ** 53n + 1n] }))
  await expect(btf.read(new MemorySource(bytes), readOptions('lenient'))).rejects.toMatchObject({
    message: expect.stringContaining('9007199254740993'),
    path: 'tensors[0].dims[0]',
    offset: 32,
  })
})

it('limits of the caller replace the defaults', async () => {
  const record = denseRecord({ dims: [2], data: Int32Array.of(1, 2) })
  const source = new MemorySource(btfFile(record, record))
  const lenient = (limits: object) => btf.read(source, readOptions('lenient', limits))
  await expect(lenient({ tensors: 1 })).rejects.toMatchObject({ code: 'ERR_LIMIT', path: 'count' })
  await expect(lenient({ headerBytes: 40 })).rejects.toMatchObject({ code: 'ERR_LIMIT' })
  await expect(lenient({ totalBytes: 15 })).rejects.toMatchObject({ code: 'ERR_LIMIT', path: 'tensors[1]' })
  expect((await lenient({ tensors: 2, totalBytes: 16 })).tensors.length).toBe(2)
})

it('findings are bounded, and an omitted error still shows in the last one', async () => {
  const odd = denseRecord({ dims: [0], reserved: [1, 0, 0, 0, 0, 0] })
  const records = Array.from({ length: MAX_FINDINGS + 50 }, () => odd)
  const broken = denseRecord({ dims: [9] })
  const findings = await btf.check(new MemorySource(btfFile(...records, broken)), readOptions('lenient'))
  expect(findings.length).toBe(MAX_FINDINGS + 1)
  expect(findings.at(-1)).toMatchObject({
    code: 'ERR_LIMIT',
    severity: 'error',
    message: expect.stringContaining('51 more findings (1 of them errors)'),
  })
})

it('a check continues after a record that cannot be read', async () => {
  const bytes = btfFile(
    denseRecord({ dtype: 99, dims: [2], data: Int32Array.of(1, 2) }),
    denseRecord({ dims: [2], data: Int32Array.of(1, 2), reserved: [1, 0, 0, 0, 0, 0] }),
    denseRecord({ dims: [5] }),
  )
  const findings = await btf.check(new MemorySource(bytes), readOptions('strict'))
  expect(findings.map(({ code, path }) => [code, path])).toEqual([
    ['ERR_DTYPE', 'tensors[0].dtype'],
    ['ERR_GAP', 'tensors[1].reserved'],
    ['ERR_TRUNCATED', 'tensors[2].data'],
  ])
})
