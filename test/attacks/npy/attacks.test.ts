import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import { npy, npz } from '../../../lib/formats/npy/index.js'
import type { DenseTensor } from '../../../lib/tensor/tensor.js'
import { npyBytes, readOptions } from '../../formats/npy/npy_bytes.js'
import { zipBytes } from '../../formats/npy/zip_bytes.js'
import { codeOf } from '../refusal.js'
import { ATTACKS } from './attacks.js'

const FORMATS = { npy, npz }

describe.each(['lenient', 'strict'] as const)('%s', (level) => {
  it.each(ATTACKS)('$format $name (rule $rule): $reason', async (attack) => {
    const expected = attack[level]
    const bytes = attack.bytes()
    const source = new MemorySource(bytes)
    const format = FORMATS[attack.format]
    const code = await codeOf(() => format.read(source, readOptions(level)))
    expect(code).toBe(attack.at === 'read' ? expected : null)
    const findings = await format.check(source, readOptions(level))
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
      expect(message.length).toBeLessThan(400)
      expect(offset).toBeGreaterThanOrEqual(0)
      expect(offset).toBeLessThanOrEqual(bytes.length)
    }
  })
})

it('a stream shorter than declared is an error when the tensor is used', async () => {
  const attack = ATTACKS.find(({ name }) => name === 'less-comes-out-of-much')
  const { tensors } = await npz.read(new MemorySource(attack!.bytes()), readOptions('lenient'))
  const tensor = tensors.at(0) as DenseTensor
  expect(await tensor.bytes({ start: 0, end: 100_000 })).toEqual(new Uint8Array(100_000))
  await expect(tensor.bytes()).rejects.toMatchObject({
    code: 'ERR_COMPRESSED',
    format: 'npz',
    path: 'members[0]',
  })
})

it('of two members with one name the last is read', async () => {
  const attack = ATTACKS.find(({ name }) => name === 'name-twice')
  const { tensors } = await npz.read(new MemorySource(attack!.bytes()), readOptions('lenient'))
  expect(tensors.length).toBe(1)
  expect(await (tensors.at(0) as DenseTensor).toTypedArray()).toEqual(Int32Array.of(8, 9))
})

it('a check continues after a member that cannot be read', async () => {
  const bytes = zipBytes([
    { name: 'a.npy', content: npyBytes({ descr: '<f3' }) },
    { name: 'b.npy', content: npyBytes(), local: { crc: 1 } },
    { name: 'c.npy', content: npyBytes({ descr: '|b1', data: Uint8Array.of(1, 3) }), method: 8 },
    { name: 'd.npy', content: npyBytes(), method: 8, stored: new Uint8Array(50) },
  ])
  const findings = await npz.check(new MemorySource(bytes), readOptions('strict'))
  expect(findings.map(({ code, path }) => [code, path])).toEqual([
    ['ERR_DTYPE', 'members[0].descr'],
    ['ERR_HEADER', 'members[1]'],
    ['ERR_DTYPE', 'members[2].data'],
    ['ERR_COMPRESSED', 'members[3].header'],
  ])
})

it('a member that is not an array is never inflated, and its checksum is compared only if it is stored', async () => {
  const bytes = zipBytes([
    { name: 'bomb.bin', content: new Uint8Array(1), method: 8, stored: new Uint8Array(50) },
    { name: 'notes.txt', content: new Uint8Array(9), local: { crc: 1 }, entry: { crc: 1 } },
    { name: 'a.npy', content: npyBytes() },
  ])
  const findings = await npz.check(new MemorySource(bytes), readOptions('lenient'))
  expect(findings.map(({ code, path }) => [code, path])).toEqual([
    ['ERR_UNSUPPORTED', 'members[0]'],
    ['ERR_UNSUPPORTED', 'members[1]'],
    ['ERR_CHECKSUM', 'members[1]'],
  ])
})

it('an overlap bomb reads no more bytes than its directory has', async () => {
  const attack = ATTACKS.find(({ name }) => name === 'overlap-bomb')
  const bytes = attack!.bytes()
  let bytesRead = 0
  const source = {
    byteLength: bytes.length,
    read: async (start: number, end: number) => {
      bytesRead += end - start
      return bytes.subarray(start, end)
    },
  }
  await npz.check(source, readOptions('lenient'))
  expect(bytesRead).toBeLessThan(3 * bytes.length)
})
