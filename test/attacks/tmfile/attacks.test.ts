import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import { tmfile } from '../../../lib/models/tmfile/index.js'
import { readOptions, smallFile } from '../../formats/tmfile/tmfile_bytes.js'
import { codeOf } from '../refusal.js'
import { ATTACKS } from './attacks.js'

it('the base file of the attacks is valid', async () => {
  const source = new MemorySource(await smallFile())
  expect(await tmfile.check(source, readOptions('strict'))).toEqual([])
  expect((await tmfile.read(source, readOptions('strict'))).findings).toEqual([])
})

describe.each(['lenient', 'strict'] as const)('%s', (level) => {
  it.each(ATTACKS)('$name (rule $rule, $kind): $reason', async ({ kind, code, bytes }) => {
    const hostile = await bytes()
    const source = new MemorySource(hostile)
    const refusal = await codeOf(() => tmfile.read(source, readOptions(level)))
    const findings = await tmfile.check(source, readOptions(level))
    const errors = findings.filter(({ severity }) => severity === 'error')
    const isRefused = kind === 'damaged' || (kind === 'crashes' && level === 'strict')
    expect(findings.map((finding) => finding.code)).toContain(code)
    if (isRefused) {
      expect(errors.map((finding) => finding.code)).toContain(code)
      expect(refusal).not.toBeNull()
      if (kind === 'damaged' && level === 'lenient') expect(refusal).toBe(code)
    } else if (level === 'lenient') {
      expect(errors).toEqual([])
      expect(refusal).toBeNull()
      // A file that opens must be usable.
      const { tensors } = await tmfile.read(source, readOptions(level))
      for (const tensor of tensors) expect(tensor.size).toBeGreaterThanOrEqual(0)
    }
    for (const { message, offset } of findings) {
      expect(message).toMatch(/[.…]$/)
      expect(message.length).toBeLessThan(1000)
      expect(offset).toBeGreaterThanOrEqual(0)
    }
  })
})

it('every rule of README.md has an attack', () => {
  const rules = new Set(ATTACKS.map(({ rule }) => rule))
  expect([...rules].sort((one, other) => one - other)).toEqual(Array.from({ length: 28 }, (_, at) => at + 1))
})

it('limits of the caller override the defaults', async () => {
  const bytes = await smallFile()
  const read = (limits: object) => tmfile.read(new MemorySource(bytes), readOptions('lenient', limits))
  for (const limits of [{ tensors: 3 }, { headerBytes: 100 }, { totalBytes: 10 }]) {
    await expect(read(limits)).rejects.toMatchObject({ code: 'ERR_LIMIT', format: 'tmfile' })
  }
  expect((await read({ tensors: 4, totalBytes: 32 })).tensors.length).toBe(4)
})
