/**
 * Messages are read and written by runs of fields of one number. Random messages, valid and invalid, must read, edit and
 * fail exactly as their fields do one by one; fields of another wire type than the schema's are unknown fields.
 */
import { expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import { TileworkError } from '../../../lib/errors.js'
import { FileFault } from '../../../lib/formats/file_fault.js'
import type { MessageFile } from '../../../lib/formats/onnx/protobuf/edited_bytes.js'
import { Message } from '../../../lib/formats/onnx/protobuf/message.js'
import { canBe } from '../../../lib/formats/onnx/protobuf/message_kind.js'
import { eachField, WireCursor, walkSourceSync } from '../../../lib/formats/onnx/protobuf/wire.js'
import {
  type FieldInfo,
  isMessageKind,
  MESSAGES,
  type MessageName,
} from '../../../lib/formats/onnx/schema.js'
import { bytesOfPlan, field, fixed, int, join, varint } from '../../formats/onnx/onnx_bytes.js'
import { ANY_FORMAT, mutate, mutationCount } from '../mutations.js'
import { fuzzSeed, type Random, randomNumbers } from '../random_numbers.js'

const COUNT = mutationCount(1500)

/** Messages with lists of every kind. */
const TYPES = ['NodeProto', 'AttributeProto', 'FunctionProto', 'ShardingSpecProto', 'MapProto'] as const

function fileOf(bytes: Uint8Array): MessageFile {
  const source = new MemorySource(bytes)
  return { source, cursor: new WireCursor(source), files: new Map(), depthLimit: 100 }
}

function messageOf(type: MessageName, file: MessageFile, start: number, end: number): Message {
  return new Message(type, { file, start, end })
}

/** A field of the expected or another wire type, with a valid or invalid value. */
function randomField({ number, kind }: Pick<FieldInfo, 'number' | 'kind'>, random: Random): Uint8Array {
  switch (random(12) === 0 ? random(4) : isMessageKind(kind) ? 3 : SHAPE_OF_KIND[kind]) {
    case 0:
      return random(4) === 0
        ? field(number, join(varint(random(300)), varint(-random(3))))
        : int(number, random(2 ** 20))
    case 1:
      return random(4) === 0
        ? field(number, new Uint8Array(4 * random(3) + (random(9) === 0 ? 1 : 0)))
        : fixed(
            number,
            Uint8Array.from({ length: 4 }, () => random(256)),
          )
    case 2:
      return fixed(number, new Uint8Array(8))
    default:
      return field(
        number,
        Uint8Array.from({ length: random(6) }, () => random(random(4) === 0 ? 256 : 128)),
      )
  }
}

const SHAPE_OF_KIND = {
  int32: 0,
  int64: 0,
  uint64: 0,
  enum: 0,
  float: 1,
  double: 2,
  string: 3,
  bytes: 3,
} as const

const GROUP = Uint8Array.from([(30 << 3) | 3, 0x08, 0x01, (30 << 3) | 4].flatMap((tag) => [...varint(tag)]))

/** Short and long runs of fields of one number, in random order. */
function randomMessage(type: MessageName, random: Random): Uint8Array {
  const known = MESSAGES[type].filter((info) => info !== undefined)
  const runs = Array.from({ length: 1 + random(6) }, () => {
    const info = random(8) === 0 ? ({ number: 77, kind: 'bytes' } as const) : known[random(known.length)]!
    const count = random(3) === 0 ? 1 + random(60) : 1 + random(4)
    return join(...Array.from({ length: count }, () => randomField(info, random)))
  })
  return join(...runs, random(5) === 0 ? GROUP : [], random(3) === 0 ? runs[0]! : [])
}

/** A field as a message of its own. */
interface Fragment {
  readonly message: Message
  /** 0 for a group. */
  readonly number: number
  readonly wireType: number
}

/** Each field, or the bytes between two fields; undefined for bytes that are not a message. */
function fragmentsOf(type: MessageName, file: MessageFile): Fragment[] | undefined {
  const cursor = new WireCursor(file.source)
  const { byteLength } = file.source
  const bounds = [0]
  const heads = new Map<number, { number: number; wireType: number }>()
  const note = (offset: number): void => {
    if (offset > bounds.at(-1)!) bounds.push(offset)
  }
  const steps = eachField(cursor, byteLength, () => {
    note(cursor.start)
    heads.set(cursor.start, { number: cursor.number, wireType: cursor.wireType })
    note(cursor.position)
    return undefined
  })
  try {
    walkSourceSync(steps, cursor)
  } catch (error) {
    if (error instanceof FileFault) return undefined
    throw error
  }
  note(byteLength)
  return bounds.slice(1).map((end, at) => ({
    message: messageOf(type, file, bounds[at]!, end),
    ...(heads.get(bounds[at]!) ?? { number: 0, wireType: 3 }),
  }))
}

/** The result of an action, or its error code. */
function resultOf<T>(action: () => T): T | { readonly refused: string } {
  try {
    return action()
  } catch (error) {
    if (!(error instanceof TileworkError)) throw error
    return { refused: error.code }
  }
}

function placesOfEach(message: Message, name: string): unknown[] {
  return [...message.eachOf(name)].map((field) => (field as Message).origin).map((at) => [at!.start, at!.end])
}

function placesOfAll(message: Message, name: string): unknown[] {
  return message.messages(name).map(({ origin }) => [origin!.start, origin!.end])
}

/** Readers by field type; each returns a list. */
function readersOf({ name, kind, isRepeated }: FieldInfo): ((message: Message) => unknown[])[] {
  if (isMessageKind(kind)) {
    // The second remembers the messages, so the first reads them.
    return isRepeated ? [placesOfEach, placesOfAll].map((places) => (message) => places(message, name)) : []
  }
  if (kind === 'float') return [(message) => message.floats(name)]
  if (kind !== 'string' && kind !== 'bytes') return [(message) => message.ints(name)]
  return [(message) => message.texts(name), (message) => message.byteValues(name)]
}

function expectSameValues(whole: Message, fragments: readonly Message[], info: FieldInfo): void {
  for (const reader of readersOf(info)) {
    expect(resultOf(() => reader(whole))).toEqual(resultOf(() => fragments.flatMap(reader)))
  }
  const holders = fragments.filter((fragment) => fragment.has(info.name))
  expect(whole.has(info.name)).toBe(holders.length > 0)
  if (isMessageKind(info.kind) && !info.isRepeated)
    expect(whole.messages(info.name)).toHaveLength(Math.min(1, holders.length))
  if (info.kind === 'string') expect(whole.text(info.name)).toBe(holders.at(-1)?.text(info.name) ?? '')
}

/** Edits of a list, and the fields that they write. */
const CHANGES: readonly ((message: Message, name: string) => void)[] = [
  (message, name) => message.clear(name),
  (message, name) => message.setTexts(name, ['one', '', 'two']),
  (message, name) => message.setInts(name, [1, -1, 300]),
  (message, name) => message.setFloats(name, [0.5, Number.NaN]),
  (message, name) => message.setBytes(name, [new Uint8Array(3)]),
]

/** Expected bytes after an edit: new fields are at the position of the first old one. */
async function changedBytes(
  type: MessageName,
  fragments: readonly Fragment[],
  info: FieldInfo,
  change: (message: Message, name: string) => void,
): Promise<Uint8Array> {
  const { name, number } = info
  const made = new Message(type)
  change(made, name)
  const numbers = fragments.map((fragment) => fragment.number)
  const first = numbers.indexOf(number)
  const next = numbers.findIndex((each) => each > number)
  const at = first >= 0 ? first : next >= 0 ? next : fragments.length
  const kept = fragments.map(async (fragment) =>
    fragment.number === number && canBe(info, fragment.wireType)
      ? new Uint8Array(0)
      : bytesOfPlan(await fragment.message.plan()),
  )
  const parts = await Promise.all(kept)
  parts.splice(at, 0, await bytesOfPlan(await made.plan()))
  return join(...parts)
}

it(`${COUNT} messages with runs are read and edited as single fields are`, {
  timeout: 60_000 + 20 * COUNT,
}, async () => {
  const random = randomNumbers(fuzzSeed(20_261_123))
  const seen = { refused: 0, runs: 0 }
  for (let round = 0; round < COUNT; round++) {
    const type = TYPES[random(TYPES.length)]!
    const made = randomMessage(type, random)
    const bytes = random(3) === 0 ? mutate(made, ANY_FORMAT, 2, random) : made
    const file = fileOf(bytes)
    const whole = messageOf(type, file, 0, bytes.length)
    const fragments = fragmentsOf(type, file)
    if (!fragments) {
      expect(() => whole.has(MESSAGES[type].find(Boolean)!.name)).toThrow(TileworkError)
      seen.refused += 1
      continue
    }
    seen.runs += fragments.length > 60 ? 1 : 0
    const infos = MESSAGES[type].filter((info) => info !== undefined)
    for (const info of infos) {
      expectSameValues(
        whole,
        fragments.map(({ message }) => message),
        info,
      )
    }
    const info = infos[random(infos.length)]!
    const change = CHANGES[random(CHANGES.length)]!
    const expected = await changedBytes(type, fragments, info, change)
    change(whole, info.name)
    expect(await bytesOfPlan(await whole.plan())).toEqual(expected)
  }
  expect(seen.refused).toBeGreaterThan(COUNT / 50)
  expect(seen.runs).toBeGreaterThan(COUNT / 10)
})

it.each([1, 255, 256, 257, 512, 700])(
  '%i messages before and after another field are walked as they are listed',
  (count) => {
    const run = join(...Array.from({ length: count }, (_, at) => field(5, field(8, `w${at}`))))
    const bytes = join(run, field(2, 'graph'), field(5, field(8, 'last')))
    const walked = [...messageOf('GraphProto', fileOf(bytes), 0, bytes.length).eachOf('initializer')]
    expect(walked.map((each) => (each as Message).text('name'))).toEqual([
      ...Array.from({ length: count }, (_, at) => `w${at}`),
      'last',
    ])
  },
)
