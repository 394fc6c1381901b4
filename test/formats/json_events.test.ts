import fc from 'fast-check'
import { expect, it } from 'vitest'
import { READER_WINDOW_BYTES } from '../../lib/bytes/reader.js'
import type { ByteSource } from '../../lib/bytes/source.js'
import { FileFault } from '../../lib/formats/file_fault.js'
import { type JsonHandler, readJson } from '../../lib/formats/json_events.js'

/** A source that returns copies, so that no code can rely on adjacent windows. */
function sourceOf(bytes: Uint8Array): ByteSource {
  return { byteLength: bytes.byteLength, read: async (start, end) => bytes.slice(start, end) }
}

/** Builds the value of the events and records their offsets. */
class ValueOfEvents implements JsonHandler {
  readonly offsets: number[] = []
  readonly #open: { add: (value: unknown) => void; value: unknown }[] = []
  #key = ''
  result: unknown

  beginObject(at: number): void {
    const members = new Map<string, unknown>()
    this.#begin(members, (value) => members.set(this.#key, value), at)
  }

  beginArray(at: number): void {
    const elements: unknown[] = []
    this.#begin(elements, (value) => elements.push(value), at)
  }

  endObject(): void {
    this.#end()
  }

  endArray(): void {
    this.#end()
  }

  key(name: string, at: number): void {
    this.offsets.push(at)
    this.#key = name
  }

  value(kind: 'string' | 'number' | 'literal', text: string, at: number): void {
    this.offsets.push(at)
    this.#add(kind === 'string' ? text : JSON.parse(text))
  }

  #begin(value: unknown, add: (value: unknown) => void, at: number): void {
    this.offsets.push(at)
    const key = this.#key
    this.#open.push({ value, add })
    this.#keys.push(key)
  }

  readonly #keys: string[] = []

  #end(): void {
    const { value } = this.#open.pop()!
    this.#key = this.#keys.pop()!
    this.#add(value)
  }

  #add(value: unknown): void {
    const outer = this.#open.at(-1)
    if (outer) outer.add(value)
    else this.result = value
  }
}

/** The value of JSON.parse with maps for objects, which keep the order of keys and allow `__proto__`. */
function parseAsMaps(text: string): unknown {
  const toMaps = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(toMaps)
    if (typeof value !== 'object' || value === null) return value
    return new Map(Object.entries(value).map(([key, member]) => [key, toMaps(member)]))
  }
  return toMaps(JSON.parse(text))
}

async function eventsOf(bytes: Uint8Array): Promise<ValueOfEvents> {
  const events = new ValueOfEvents()
  await readJson(sourceOf(bytes), 0, bytes.byteLength, events)
  return events
}

it('gives the value of JSON.parse', async () => {
  await fc.assert(
    fc.asyncProperty(fc.json({ stringUnit: 'grapheme' }), fc.nat({ max: 2 }), async (text, spaces) => {
      const spaced = JSON.stringify(JSON.parse(text), null, spaces)
      const events = await eventsOf(Buffer.from(spaced))
      expect(sorted(events.result)).toEqual(sorted(parseAsMaps(spaced)))
      const bytes = Buffer.from(spaced)
      for (const at of events.offsets) expect(bytes.subarray(at, at + 1).toString()).toMatch(/["[{\-\dtfn]/)
    }),
    { numRuns: 200 },
  )
})

/** Maps compare by order too, and JSON.parse moves keys like `10` to the front. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!(value instanceof Map)) return value
  const members = [...value].map(([key, member]) => [key, sorted(member)] as const)
  return members.toSorted(([one], [other]) => (one < other ? -1 : 1))
}

it('accepts what JSON.parse accepts, and nothing else', async () => {
  const fragments = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"\\u00e9"',
    '"\\x"',
    '1',
    '-0',
    '01',
    '1.',
    '1e5',
    '.5',
    '+1',
    'true',
    'nul',
  ]
  const odd = [
    ' ',
    '\n',
    '\t',
    '\u00a0',
    '\ufeff',
    '/**/',
    '"',
    '\\',
    '\u0000',
    '"\u0001"',
    '"\u007f"',
    'NaN',
    '-',
    '"\\ud800"',
  ]
  const texts = fc.array(fc.constantFrom(...fragments, ...odd), { maxLength: 9 }).map((some) => some.join(''))
  await fc.assert(
    fc.asyncProperty(texts, async (text) => {
      const expected = outcomeOf(() => JSON.parse(text))
      const found = await eventsOf(Buffer.from(text)).then(
        () => true,
        (error: unknown) => {
          expect(error).toBeInstanceOf(FileFault)
          return false
        },
      )
      expect(found).toBe(expected)
    }),
    { numRuns: 5000 },
  )
})

function outcomeOf(action: () => unknown): boolean {
  try {
    action()
    return true
  } catch {
    return false
  }
}

it('accepts UTF-8 and nothing else', async () => {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const bytes = fc.uint8Array({ maxLength: 6 }).filter((some) => some.every((byte) => byte >= 0x80))
  await fc.assert(
    fc.asyncProperty(bytes, async (some) => {
      const isText = outcomeOf(() => decoder.decode(some))
      const text = Buffer.concat([Buffer.from('"'), some, Buffer.from('"')])
      const found = await eventsOf(text).then(
        ({ result }) => result,
        () => undefined,
      )
      expect(found).toBe(isText ? decoder.decode(some) : undefined)
    }),
    { numRuns: 2000 },
  )
})

it('texts and numbers may cross window boundaries', async () => {
  for (let shift = 0; shift < 8; shift++) {
    const name = `${'x'.repeat(READER_WINDOW_BYTES - 8 + shift)}\u{1f3b2}\u00fc\\n"`
    const text = `${JSON.stringify([name, 1234567, name.slice(0, -40), true])}`
    expect((await eventsOf(Buffer.from(text))).result).toEqual(JSON.parse(text))
  }
})

it.each([
  ['{"a": 1, b": 2}', 9],
  ['{"ü": 1,, "b": 2}', 9],
  ['{"ü": tru }', 10],
  ['{"a": "\u0001"}', 7],
  ['[1] [2]', 4],
  ['{"a": 1', 7],
  ['{"a": "b', 6],
])('%j is refused at byte %i', async (text, offset) => {
  await expect(eventsOf(Buffer.from(text))).rejects.toMatchObject({ code: 'ERR_HEADER', offset })
})
