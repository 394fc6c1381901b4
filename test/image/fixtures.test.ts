/** Cases whose results were made by Pillow, OpenCV, torchvision, ultralytics and transformers themselves: equal to the last bit. */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import * as tilework from '../../lib/index.js'
import { answerOf } from '../programs/image_cases.mjs'
import { THIRD_PARTY, thirdPartyPath } from '../shared_fixtures.js'

interface Case {
  readonly id: string
  readonly op: string
  readonly expected: { readonly shape: number[]; readonly dtype: string; readonly sha256: string }
}

const path = thirdPartyPath('resize/cases.json')
/** Without the file one case that is left out: a suite without tests is an error. */
const cases: readonly Pick<Case, 'id' | 'expected'>[] = existsSync(path)
  ? (JSON.parse(readFileSync(path, 'utf8')) as Case[])
  : [{ id: 'cases', expected: { shape: [], dtype: '', sha256: '' } }]

describe('images like other libraries', THIRD_PARTY, () => {
  it.each(cases)('$id', async (given) => {
    const { shape, dtype, bytes } = await answerOf(tilework, given)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    expect({ shape, dtype, sha256 }).toEqual({
      shape: given.expected.shape,
      dtype: given.expected.dtype,
      sha256: given.expected.sha256,
    })
  })
})
