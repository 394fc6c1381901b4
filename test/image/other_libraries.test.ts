/**
 * Results of Pillow 13.0, OpenCV 5.0, torchvision 0.29 and transformers 5.24 by their hashes: equal to the last bit. Made by
 * `python3 test/programs/interop/images.py 50 400 150 sha256`, but for the last, for which torch's two kernels of nearest differ;
 * `npm run test:interop` draws more.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import * as tilework from '../../lib/index.js'
import { answerOf } from '../programs/image_cases.mjs'

interface Case {
  readonly op: string
  readonly peer: string
  readonly expected: { readonly shape: number[]; readonly dtype: string; readonly sha256: string }
}

const lines = readFileSync(new URL('../fixtures/images/cases.jsonl', import.meta.url), 'utf8')
const cases = lines
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Case)
const kinds = new Set(cases.map(({ peer, op }) => `${peer} ${op}`))

it.each([...kinds])('%s', async (kind) => {
  for (const each of cases) {
    if (`${each.peer} ${each.op}` !== kind) continue
    const { shape, dtype, bytes } = await answerOf(tilework, each)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    expect({ ...each, expected: { shape, dtype, sha256 } }).toEqual(each)
  }
})
