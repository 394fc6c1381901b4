import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import { onnx } from '../../../lib/models/onnx/index.js'
import { readOptions } from '../../formats/onnx/onnx_bytes.js'
import { codeOf } from '../refusal.js'
import { ATTACKS, FOLDER } from './attacks.js'

describe.each(['lenient', 'strict'] as const)('%s', (level) => {
  it.each(ATTACKS)('$name (rule $rule): $reason', async (attack) => {
    const expected = attack[level]
    const bytes = attack.bytes()
    const source = new MemorySource(bytes)
    const options = readOptions(level, FOLDER)
    const code = await codeOf(() => onnx.read(source, options))
    const findings = await onnx.check(source, options)
    const errors = findings.filter(({ severity }) => severity === 'error')
    if (attack.at === 'read') expect(code).toBe(expected)
    if (expected === null) expect(errors).toEqual([])
    else expect(errors.map((finding) => finding.code)).toContain(expected)
    // Lenient must report what strict refuses.
    if (expected === null && attack.strict !== null) expect(findings.length).toBeGreaterThan(0)
    for (const { message, offset } of findings) {
      expect(message).toMatch(/[.…]$/)
      expect(message.length).toBeLessThan(1000)
      expect(offset).toBeGreaterThanOrEqual(0)
      expect(offset).toBeLessThanOrEqual(bytes.length)
    }
  })
})

describe('limits', () => {
  const bytes = ATTACKS.find(({ name }) => name === 'name-twice')!.bytes()

  it.each([
    [{ tensors: 1 }, 'ERR_LIMIT'],
    [{ totalBytes: 3 }, 'ERR_LIMIT'],
    [{ headerBytes: 8 }, 'ERR_LIMIT'],
    [{ tensors: 2, totalBytes: 4 }, null],
  ])('%j', async (limits, code) => {
    const read = () => onnx.read(new MemorySource(bytes), readOptions('lenient', {}, limits))
    expect(await codeOf(read)).toBe(code)
  })
})
