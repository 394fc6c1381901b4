/** Files of opcodes that attack a reader: what each must not do, and what torch's safe loader makes of it. */
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { check, open, TileworkError } from '../../../lib/index.js'
import { hasThirdPartyFiles, THIRD_PARTY, thirdPartyPath } from '../../shared_fixtures.js'

interface Verdict {
  readonly mustName: string
  readonly why: string
  /** True, or `lazy`: it may open, and its elements need not be readable. */
  readonly mayAccept?: boolean | 'lazy'
  readonly mustAccept?: readonly string[]
}

const folder = (name: string) => thirdPartyPath(`pytorch/hostile/${name}`)
const verdicts: Record<string, Verdict> = hasThirdPartyFiles
  ? JSON.parse(readFileSync(folder('hostile.json'), 'utf8'))
  : {}

/** A file that a run would make: no verdict is good after it. */
const CANARY = '/tmp/tilework_canary'

/** Bytes that a reader may load of one tensor here. */
const MOST_BYTES = 2 ** 24

async function readAll(path: string): Promise<string[]> {
  const file = await open(path)
  try {
    const names: string[] = []
    for (const tensor of file.tensors) {
      names.push(tensor.name)
      if (tensor.kind === 'sparse') await tensor.values()
      else if (tensor.kind === 'dense' && tensor.hasData && tensor.storage.byteLength < MOST_BYTES)
        await tensor.bytes()
    }
    return names
  } finally {
    file.close()
  }
}

describe.skipIf(!hasThirdPartyFiles)('hostile checkpoints', THIRD_PARTY, () => {
  it.each(Object.entries(verdicts))('%s', async (name, { mustName, mayAccept, mustAccept }) => {
    const outcome = await readAll(folder(name)).catch((error: unknown) => error)
    if (outcome instanceof Error) {
      expect(outcome).toBeInstanceOf(TileworkError)
      expect(outcome.message).toContain(mustName)
      expect(mustAccept).toBeUndefined()
      const findings = await check(folder(name))
      const errors = findings.filter(({ severity }) => severity === 'error')
      expect(errors.length).toBeGreaterThan(0)
      expect(errors.map(({ message }) => message).join('\n')).toContain(mustName)
    } else {
      expect(mayAccept ?? false, `it opened with ${outcome}`).not.toBe(false)
      if (mustAccept) expect(outcome).toEqual(mustAccept)
    }
    expect(existsSync(CANARY)).toBe(false)
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })
})
