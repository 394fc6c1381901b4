/** safetensors by its grammar: a length, JSON with entries and metadata in every spelling that JSON allows, data. */
import { joined, le, type Random } from '../random.js'

const WIDTHS: Readonly<Record<string, number>> = {
  ...{ BOOL: 1, U8: 1, I8: 1, F8_E4M3: 1, F8_E5M2: 1, I16: 2, U16: 2, F16: 2, BF16: 2 },
  ...{ I32: 4, U32: 4, F32: 4, F64: 8, I64: 8, U64: 8 },
}

export function safetensors(random: Random): Uint8Array {
  let end = 0
  const fields = random.times(5, () => {
    const dtype = random.once(20) ? random.pick(['F4', 'X', 'f32', '']) : random.pick(Object.keys(WIDTHS))
    const shape = random.times(3, () => (random.once(15) ? random.number() : BigInt(random.below(4))))
    const size =
      Number(
        BigInt.asUintN(
          8,
          shape.reduce((product, dim) => product * dim, 1n),
        ),
      ) * (WIDTHS[dtype] ?? 1)
    const start = random.once(12) ? Math.max(0, end + random.below(9) - 4) : end
    end = start + size
    return `${text(random, random.name())}${blank(random)}:${entry(random, dtype, shape, start, end)}`
  })
  if (random.once(3)) fields.splice(random.below(fields.length + 1), 0, `"__metadata__":${metadata(random)}`)
  if (random.once(6)) fields.reverse()
  let json = `{${blank(random)}${fields.join(`${blank(random)},`)}}`
  if (random.once(25)) json = json.slice(0, random.below(json.length))
  const header = Buffer.from(
    json + ' '.repeat(random.once(2) ? (8 - (Buffer.byteLength(json) % 8)) % 8 : random.below(9)),
  )
  const length = random.once(15) ? random.number(200) : BigInt(header.length)
  return joined(le(length, 8), header, new Uint8Array(random.once(10) ? random.below(end + 9) : end).fill(1))
}

function entry(random: Random, dtype: string, shape: readonly bigint[], start: number, end: number): string {
  if (random.once(25)) return value(random, 3)
  const fields = [
    `"dtype":${text(random, dtype)}`,
    `"shape":[${shape.map((dim) => number(random, dim)).join(',')}]`,
    `"data_offsets":[${number(random, start)},${number(random, end)}]`,
  ]
  if (random.once(8)) fields.push(`${text(random, random.name())}:${value(random, 3)}`)
  if (random.once(20)) fields.splice(random.below(fields.length), 1)
  if (random.once(20)) fields.push(random.pick(fields))
  if (random.once(4)) fields.reverse()
  return `{${fields.join(`,${blank(random)}`)}}`
}

/** The metadata that tilework itself writes for blocked layouts, and any other. */
function metadata(random: Random): string {
  const fields = random.times(3, () => {
    const key = random.once(3) ? `tilework.layout.${random.name()}` : random.name()
    return `${text(random, key)}:${random.once(8) ? value(random, 2) : text(random, random.pick(['bfyx', '{}', '{"layout":"b_fs_yx_fsv16"}', 'pt']))}`
  })
  return `{${fields.join(',')}}`
}

function number(random: Random, given: bigint | number): string {
  const spelled = String(given)
  return random.once(30)
    ? random.pick([
        `-${spelled}`,
        `${spelled}.0`,
        `${spelled}e0`,
        `0${spelled}`,
        `"${spelled}"`,
        'null',
        '1e400',
      ])
    : spelled
}

function text(random: Random, given: string): string {
  if (random.once(40))
    return random.pick(['"\\ud800"', '"\\udc00\\ud800"', '"\\x"', '"\t"', '"unterminated', "'a'"])
  if (!random.once(8)) return JSON.stringify(given)
  return `"${[...given].map((letter) => [...Array(letter.length).keys()].map((at) => `\\u${letter.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')).join('')}"`
}

function value(random: Random, depth: number): string {
  if (depth === 0 || random.once(2)) return random.pick(['null', 'true', '1', '"a"', '-1.5e3', '{}', '[]'])
  if (random.once(15)) return '['.repeat(130) + ']'.repeat(130)
  return random.once(2)
    ? `[${random.times(3, () => value(random, depth - 1)).join(',')}]`
    : `{${random.times(3, () => `${text(random, random.name())}:${value(random, depth - 1)}`).join(',')}}`
}

function blank(random: Random): string {
  return random.once(6) ? random.pick([' ', '\n', '\t', '\r\n', '\u00a0', '/**/', '\ufeff']) : ''
}
