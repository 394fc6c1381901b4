/** Each hostile file is refused with its code, or reported by a lenient open and refused by a strict one. */
import { expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import { gguf } from '../../../lib/formats/gguf/index.js'
import { readOptions } from '../../formats/gguf/gguf_bytes.js'
import { ATTACKS, seedFiles } from './attacks.js'

const code = (expected: string) => expect.objectContaining({ code: expected })

it.each(ATTACKS)('$name', async ({ bytes, lenient, strict }) => {
  const read = (level: 'lenient' | 'strict') => gguf.read(new MemorySource(bytes()), readOptions(level))
  const check = (level: 'lenient' | 'strict') => gguf.check(new MemorySource(bytes()), readOptions(level))
  if (lenient === null) expect((await read('lenient')).tensors.length).toBeLessThan(3)
  else await expect(read('lenient')).rejects.toThrow(code(lenient))
  await expect(read('strict')).rejects.toThrow(code(strict!))
  const found = (await check('strict')).filter(({ severity }) => severity === 'error')
  expect(found.map((finding) => finding.code)).toContain(strict)
  expect((await check('lenient')).map((finding) => finding.code)).toContain(strict)
})

it.each(seedFiles().map((bytes, index) => ({ index, bytes })))('file $index is right', async ({ bytes }) => {
  const { findings } = await gguf.read(new MemorySource(bytes), readOptions('strict'))
  expect(findings).toEqual([])
  const found = await gguf.check(new MemorySource(bytes), readOptions('strict'))
  expect(found.filter(({ severity }) => severity === 'error')).toEqual([])
})
