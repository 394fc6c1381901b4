import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import type { Level } from '../../../lib/errors.js'
import { safetensors } from '../../../lib/formats/safetensors/index.js'
import { MAX_METADATA_ENTRIES } from '../../../lib/formats/safetensors/schema.js'
import type { DenseTensor } from '../../../lib/tensor/tensor.js'
import { headerText, readOptions, safetensorsFile } from '../../formats/safetensors/safetensors_bytes.js'
import { codeOf } from '../refusal.js'
import { ATTACKS } from './attacks.js'

const readText = (header: string, data: number[] = [], level: Level = 'lenient') =>
  safetensors.read(new MemorySource(safetensorsFile(header, data)), readOptions(level))

describe.each(['lenient', 'strict'] as const)('%s', (level) => {
  it.each(ATTACKS)('$name (rule $rule): $reason', async (attack) => {
    const expected = attack[level]
    const bytes = attack.bytes()
    const source = new MemorySource(bytes)
    const code = await codeOf(() => safetensors.read(source, readOptions(level)))
    const findings = await safetensors.check(source, readOptions(level))
    const errors = findings.filter(({ severity }) => severity === 'error')
    // Strict may refuse a payload attack by a rule of the header first.
    if (attack.at === 'read') expect(code).toBe(expected)
    if (expected === null) {
      expect(errors).toEqual([])
      // An accepted fault must still be reported.
      expect(findings.length).toBeGreaterThan(0)
    } else {
      expect(errors.map((finding) => finding.code)).toContain(expected)
    }
    for (const { message, offset } of findings) {
      expect(message).toMatch(/[.…]$/)
      expect(message.length).toBeLessThan(1000)
      expect(offset).toBeGreaterThanOrEqual(0)
      expect(offset).toBeLessThanOrEqual(bytes.length)
    }
  })
})

describe('lenient reads what its finding says', () => {
  const U8 = '"dtype":"U8","shape":[1],"data_offsets"'

  it('the last of two tensors with one name', async () => {
    const { tensors } = await readText(`{"a":{${U8}:[0,1]},"\\u0061":{${U8}:[1,2]}}`, [7, 8])
    expect(tensors.length).toBe(1)
    expect((tensors.get('a') as DenseTensor).at(0)).toBe(8)
    expect((tensors.at(0) as DenseTensor).at(0)).toBe(8)
  })

  it('the last of two values of a metadata key, and the last of two metadata objects', async () => {
    const header = `{"__metadata__":{"x":"0","y":"0"},"a":{${U8}:[0,1]},"__metadata__":{"x":"1","x":"2","z":3}}`
    const { tensors } = await readText(header, [7])
    expect([...tensors.at(0)!.metadata]).toEqual([['x', '2']])
  })

  it('all tensors but the one of unknown type', async () => {
    const header = `{"a":{"dtype":"Q2","shape":[3],"data_offsets":[0,1]},"b":{${U8}:[1,2]}}`
    const { tensors, findings } = await readText(header, [7, 8])
    expect([...tensors].map(({ name }) => name)).toEqual(['b'])
    expect(tensors.get('a')).toBeUndefined()
    expect(findings.map(({ code }) => code)).toEqual(['ERR_DTYPE'])
  })

  it('three elements of four bits', async () => {
    const { tensors } = await readText('{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}', [0x21, 0x03])
    expect([...(await (tensors.at(0) as DenseTensor).bits())]).toEqual([1, 2, 3])
  })
})

it('offsets of findings count bytes, also after multi-byte characters', async () => {
  const header =
    '{"🎲ü":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"X9","shape":[],"data_offsets":[1,1]}}'
  const bytes = safetensorsFile(header, [1])
  const findings = await safetensors.check(new MemorySource(bytes), readOptions('strict'))
  const [finding] = findings
  expect(finding).toMatchObject({ code: 'ERR_DTYPE', path: 'tensors["b"].dtype' })
  expect(
    Buffer.from(bytes)
      .subarray(finding!.offset, finding!.offset + 4)
      .toString(),
  ).toBe('"X9"')
})

it('a check continues after an entry that cannot be read, and does not report its bytes as a gap', async () => {
  const header = headerText([
    { name: 'a', dtype: 'U8', shape: [2], offsets: [0, 1] },
    { name: 'b', dtype: 'U8', shape: [1], offsets: [1, 2] },
    { name: 'c', dtype: 'U8', shape: [9], offsets: [2, 11] },
  ])
  const findings = await safetensors.check(new MemorySource(safetensorsFile(header, [1, 2])), readOptions())
  expect(findings.map(({ code, path }) => [code, path])).toEqual([
    ['ERR_OFFSET_RANGE', 'tensors["a"].data_offsets'],
    ['ERR_TRUNCATED', 'tensors["c"].data_offsets'],
  ])
})

it('findings are bounded, and an omitted error still shows in the last one', async () => {
  const odd = Array.from({ length: 1200 }, (_, at) => ({
    name: `t${at}`,
    dtype: '?',
    shape: [],
    offsets: [0, 0],
  }))
  const header = headerText([...odd, { name: 'last', dtype: 'U8', shape: [9], offsets: [0, 9] }])
  const findings = await safetensors.check(new MemorySource(safetensorsFile(header)), readOptions('lenient'))
  expect(findings.length).toBe(1001)
  expect(findings.at(-1)).toMatchObject({ code: 'ERR_LIMIT', severity: 'error' })
})

it('metadata with more entries than a file can have tensors are refused, by the writer too', async () => {
  const metadata = Object.fromEntries(
    Array.from({ length: MAX_METADATA_ENTRIES + 1 }, (_, at) => [`k${at}`, '']),
  )
  const bytes = safetensorsFile(headerText([], metadata))
  const code = 'ERR_LIMIT'
  await expect(safetensors.read(new MemorySource(bytes), readOptions('lenient'))).rejects.toMatchObject({
    code,
  })
  await expect(safetensors.plan([], { metadata })).rejects.toMatchObject({ code })
  delete metadata.k0
  const whole = new MemorySource(safetensorsFile(headerText([], metadata)))
  expect((await safetensors.read(whole, readOptions('lenient'))).findings).toEqual([])
})

it('limits of the caller replace the defaults', async () => {
  const entries = [0, 1].map((at) => ({ name: `t${at}`, dtype: 'U8', shape: [1], offsets: [at, at + 1] }))
  const bytes = safetensorsFile(headerText(entries), [1, 2])
  const lenient = (limits: object) =>
    safetensors.read(new MemorySource(bytes), readOptions('lenient', {}, limits))
  for (const limits of [{ tensors: 1 }, { headerBytes: 50 }, { totalBytes: 1 }]) {
    await expect(lenient(limits)).rejects.toMatchObject({ code: 'ERR_LIMIT' })
  }
  expect((await lenient({ tensors: 2, totalBytes: 2 })).tensors.length).toBe(2)
})
