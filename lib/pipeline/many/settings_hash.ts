/** One hash for everything that decides what is written from given bytes. */
import { createHash } from 'node:crypto'

/**
 * Hexadecimal SHA-256 of the settings, independent of the order of their keys; undefined settings count as absent. The
 * version is a part of it, because a later version may write other bytes.
 */
export function settingsHash(settings: object, version: string): string {
  return createHash('sha256').update(canonical({ settings, version })).digest('hex')
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => {
    if (typeof inner === 'bigint') return `${inner}n`
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).sort(([one], [other]) => (one < other ? -1 : 1)))
  })
}
